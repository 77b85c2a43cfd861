// SPDX-License-Identifier: Apache-2.0

// Error messages for users, followed in parentheses by the library's reason, which can be searched for.

import Glibc
import URLLoading

enum ErrorWords {
    /// - Parameter grammar: the one whose options the message names.
    static func make(_ failure: Report.Failure, in grammar: Grammar) -> String {
        if failure.reason == Report.Failure.ownReason { return failure.detail ?? failure.reason }
        switch failure.exit {
        case .httpError, .write, .read, .file: return failure.detail ?? failure.reason
        default: break
        }
        let name = failure.phase.map { "\(failure.reason), \($0)" } ?? failure.reason
        let place = grammar == .curl ? "" : "with the options of 'urlload URL': "
        let remedy = failure.remedy.map { "; \(place)\($0)" } ?? ""
        if let proxy = failure.proxy { return atProxy(proxy, failure, name, grammar) + remedy }
        return told(failure.reason, sentences[failure.reason].map(grammar.naming), failure.detail, name) + remedy
    }

    /// The sentence, the name of the reason, and the detail. Details of reasons without a sentence are sentences.
    private static func told(_ reason: String, _ sentence: String?, _ detail: String?, _ name: String) -> String {
        guard let detail, !reasonsWithoutDetail.contains(reason) else {
            return sentence.map { "\($0) (\(name))" } ?? name
        }
        guard let sentence, !reasonsToldByDetail.contains(reason) else { return "\(detail) (\(name))" }
        return "\(sentence) (\(name)): \(detail)"
    }

    /// The options with which the load could succeed, as a clause; `nil` for none.
    static func remedy(_ error: LoadError) -> String? {
        let options = error.tlsRemedies.map { remedy in
            switch remedy {
            // The server has ended the handshake without a reason, for which its age is only one explanation.
            case .minimumVersion where error.reason == .secureConnectionFailed:
                "if the server is an old one, --tlsv1.0 accepts TLS 1.0 and 1.1"
            case .minimumVersion: "--tlsv1.0 accepts TLS 1.0 and 1.1"
            case .minimumStrength: "--ciphers DEFAULT@SECLEVEL=0 accepts weak keys and signatures"
            case .insecureRenegotiation: "--insecure-renegotiation accepts it"
            case .missingCloseNotify: "--missing-close-notify accepts such an end"
            case .missingIssuer(let location): "--fetch-issuers fetches the issuer from \(location)"
            }
        }
        return options.isEmpty ? nil : options.joined(separator: ", or ")
    }

    /// The message for an error of a proxy.
    private static func atProxy(
        _ proxy: String, _ failure: Report.Failure, _ name: String, _ grammar: Grammar
    ) -> String {
        let sentence = (proxySentences[failure.reason] ?? sentences[failure.reason]).map(grammar.naming)
        return "at the proxy \(proxy): " + told(failure.reason, sentence, failure.proxyDetail, name)
    }

    /// Sentences that differ for proxies.
    private static let proxySentences: [String: String] = [
        "proxyNotFound": "its host name does not exist",
        "proxyRefused": "it refused to connect to the server",
        "proxyAuthenticationRequired": "it requires a user and password; -U gives them",
        "connectionLost": "it closed the connection",
        "idleTimeout": "it was silent for longer than the idle timeout (--timeout)",
        "notHTTP": "its answer is not HTTP",
        "notSOCKS": "its answer is not SOCKS",
        "clientCertificateRequired": "it requires a client certificate; --cert gives one",
    ]

    /// The message for a client certificate that cannot be read.
    static func identity(_ error: LoadError, in grammar: Grammar) -> String {
        guard let words = sentence(error.reason).map(grammar.naming) else { return "\(error)" }
        guard let detail = error.detail, error.reason != .wrongPassphrase else { return words }
        return "\(words): \(detail)"
    }

    /// A message that a saved file contains an error page; `nil` if it does not.
    static func savedPage(_ report: Report, in grammar: Grammar) -> String? {
        guard let file = report.file, isRegular(file), report.bytes > 0, let status = report.head?.status,
            status.code >= 400
        else { return nil }
        return
            "\(report.effectiveURL ?? report.url): the server answered \(status), "
            + "and \(file) holds that page; \(grammar.naming("-f saves none"))"
    }

    private static func isRegular(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    static func sentence(_ reason: LoadError.Reason) -> String? { sentences[reason.name] }

    /// The sentence of an error and its detail, without the name of the reason; `nil` for a reason without a sentence.
    static func summary(_ error: LoadError) -> String? {
        guard let detail = error.detail else { return sentence(error.reason) }
        return sentence(error.reason).map {
            reasonsToldByDetail.contains(error.reason.name) ? detail : "\($0): \(detail)"
        }
    }

    /// Reasons whose detail adds nothing for the user.
    private static let reasonsWithoutDetail: Set<String> = [
        "truncated", "hostNotFound", "proxyNotFound", "notHTTP", "unsupportedScheme",
        "tooManyRedirects",
        "contentDecodingFailed",
    ]

    /// Reasons whose sentence is for errors without a detail: that of a Unix socket says whether its file exists.
    private static let reasonsToldByDetail: Set<String> = ["connectionRefused"]

    private static let sentences: [String: String] = [
        "badProxy": "the address of the proxy is not valid",
        "proxyResolutionFailed": "the desktop's proxy settings cannot be read; -x names a proxy",
        "badURL": "the URL is not valid",
        "unsupportedScheme": "only http, https, ftp, ftps, file and data can be loaded",
        "hostNotFound": "the host name does not exist",
        "lookupFailed": "the lookup of the host name failed; it may succeed later",
        "connectionRefused": "no program listens there",
        "unreachable": "the host or its network cannot be reached",
        "connectionLost": "the connection was lost",
        "streamReset": "the server ended the stream before the response was complete",
        "userAuthenticationRequired": "the server requires a user and password; -u gives them",
        "ftpServiceUnavailable": "the ftp server accepts no users at the moment; try again later",
        "ftpStorageFull": "the ftp server has no room for the file",
        "ftpStoreRefused": "the ftp server refused to store a file at this path",
        "webSocketRefused": "the server refused to open a WebSocket",
        "webSocketClosed": "the server closed the WebSocket",
        "pingTimeout": "the server did not answer a ping in time",
        "closeTimeout": "the server did not complete the closing handshake in time",
        "truncated": "the connection ended before the response did",
        "idleTimeout": "the server was silent for longer than the idle timeout (--timeout)",
        "connectTimeout": "connecting took longer than --connect-timeout",
        "resourceTimeout": "the load took longer than --max-time",
        "notHTTP": "the server's answer is not HTTP",
        "notHTTP2": "the server does not speak HTTP/2; without --http2-prior-knowledge it can choose",
        "notHTTP3": "this load cannot use HTTP/3; with --http3 in place of --http3-only it takes TCP",
        "notTLS": "the server's answer is not TLS; this port may be for http",
        "secureConnectionFailed": "the server and urlload have not agreed on a secure connection",
        "noCommonTLSVersion": "the server supports none of the TLS versions and ciphers that are offered",
        "weakHandshake": "the server's signature of the handshake, or its key exchange, is too weak",
        "insecureRenegotiation": "the server does not support secure renegotiation (RFC 5746)",
        "certificateNameMismatch": "the certificate is for another host",
        "certificateUntrusted": "the certificate is not issued by a trusted authority; --cacert names one",
        "certificateExpired": "the certificate has expired",
        "certificateNotYetValid": "the certificate is not valid yet",
        "certificateSelfSigned": "the certificate is self-signed and not trusted",
        "certificateSignatureInvalid": "a signature in the chain is not its issuer's",
        "certificateWeak": "a key or signature in the chain is too weak",
        "certificateInvalid": "a certificate in the chain may not issue certificates, or not be used for a server",
        "certificateRevoked": "the certificate was revoked",
        "certificatePinMismatch": "no certificate in the chain has a key of --pin",
        "certificateStatusMissing": "the server stapled no good OCSP status to its certificate (--cert-status)",
        "clientCertificateRequired": "the server requires a client certificate; --cert gives one",
        "clientCertificateRefused": "the server refused the certificate of --cert",
        "badClientIdentity": "--cert and --key do not contain a certificate and its private key",
        "wrongPassphrase": "the private key of --cert is encrypted, and --pass is missing or wrong",
        "trustRootsUnavailable": "the trusted certificates cannot be read",
        "tooManyRedirects": "too many redirects; --max-redirects allows more",
        "badRedirect": "the redirect leads to an invalid URL",
        "unacceptableStatus": "the server answered with an error",
        "resumeMismatch": "the response does not continue the partial file; delete the partial file to start anew",
        "invalidResumeToken": "the partial file is damaged or was changed; delete it to start anew",
        "addressRefused": "connections to this address are not allowed",
        "redirectRefused": "the redirect leads to a URL that must not be followed",
        "invalidUploadToken": "the state file of --resumable is damaged, or is no state of an upload",
        "uploadTokenMismatch": "the state file of --resumable belongs to an upload to another URL",
        "uploadSourceChanged":
            "the file has changed since its upload began; delete the state file of --resumable to start anew",
        "notPossibleInBackground": "the background agent does not support this",
        "backgroundSessionInUse": "another program uses the background session",
        "backgroundAgentUnavailable": "there is no background agent; 'urlload bg doctor' says why",
        "uploadNotFound": "the server does not know the upload any more; repeat the command to start anew",
        "uploadTooLarge": "the server accepts no file of this size",
        "uploadRefused": "the server refused to continue the upload",
        "contentDecodingFailed": "the compressed body is damaged",
        "digestMismatch": "the body is not the one that its digest says",
        "bodyTooLarge": "the body is larger than allowed",
        "unacceptableContentType": "the response has another media type than required",
    ]
}

extension TLSOptions {
    /// Reads the client identity and applies all options to the settings of a session.
    ///
    /// - Parameters:
    ///   - grammar: the one whose options the message names.
    ///   - tell: receives the message if the identity cannot be read.
    /// - Returns: the code to exit with; `nil` if the settings are complete.
    func apply(
        to tls: inout Configuration.TLS, in grammar: Grammar = .curl, _ tell: (String) -> Void
    ) async -> ExitCode? {
        do throws(LoadError) {
            try apply(try await identity(), to: &tls)
            return nil
        } catch {
            tell(ErrorWords.identity(error, in: grammar))
            return ExitCode(error)
        }
    }
}
