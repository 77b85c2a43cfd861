// SPDX-License-Identifier: Apache-2.0

// Error messages for users, followed in parentheses by the library's reason, which can be searched for.

import Glibc
import URLLoading

enum ErrorWords {
    static func make(_ failure: Report.Failure) -> String {
        if failure.reason == Report.Failure.ownReason { return failure.detail ?? failure.reason }
        switch failure.exit {
        case .httpError, .write, .read, .file: return failure.detail ?? failure.reason
        default: break
        }
        let name = failure.phase.map { "\(failure.reason), \($0)" } ?? failure.reason
        if let proxy = failure.proxy { return atProxy(proxy, failure, name) }
        let words = sentences[failure.reason].map { "\($0) (\(name))" } ?? name
        guard let detail = failure.detail, !isTold.contains(failure.reason) else { return words }
        return "\(words): \(detail)"
    }

    /// The message for an error of a proxy. The detail begins with the name of the proxy, which the message repeats.
    private static func atProxy(_ proxy: String, _ failure: Report.Failure, _ name: String) -> String {
        let words = proxySentences[failure.reason] ?? sentences[failure.reason]
        let detail = failure.detail.flatMap {
            $0.firstRange(of: ": ").map { range in String(failure.detail?[range.upperBound...] ?? "") }
        }
        let rest = isTold.contains(failure.reason) ? nil : detail
        return "at the proxy \(proxy): " + (words.map { "\($0) (\(name))" } ?? name) + (rest.map { ": \($0)" } ?? "")
    }

    /// Sentences that differ for proxies.
    private static let proxySentences: [String: String] = [
        "proxyNotFound": "there is no host of this name",
        "proxyRefused": "it would not connect",
        "proxyAuthenticationRequired": "it did not let us in; -U says who asks",
        "connectionLost": "it closed the connection",
        "idleTimeout": "it was silent for too long",
        "notHTTP": "what answered is no HTTP proxy",
        "notSOCKS": "what answered is no SOCKS proxy",
        "clientCertificateRequired": "it wants a client certificate; --cert gives one",
    ]

    /// The message for a client certificate that cannot be read.
    static func identity(_ error: LoadError) -> String {
        guard let words = sentence(error.reason) else { return "\(error)" }
        guard let detail = error.detail, error.reason != .wrongPassphrase else { return words }
        return "\(words): \(detail)"
    }

    /// A message that a saved file contains an error page; `nil` if it does not.
    static func savedPage(_ report: Report) -> String? {
        guard let file = report.file, isRegular(file), let status = report.head?.status, status.code >= 400
        else { return nil }
        return
            "\(report.effectiveURL ?? report.url): the server answered \(status), "
            + "and \(file) holds that page; -f saves none"
    }

    private static func isRegular(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    static func sentence(_ reason: LoadError.Reason) -> String? { sentences[reason.name] }

    /// Reasons whose detail adds nothing for the user.
    private static let isTold: Set<String> = [
        "connectionRefused", "truncated", "hostNotFound", "proxyNotFound", "notHTTP", "unsupportedScheme",
        "tooManyRedirects",
        "contentDecodingFailed",
    ]

    private static let sentences: [String: String] = [
        "badProxy": "this is no proxy",
        "proxyResolutionFailed": "the desktop's settings do not say whether there is a proxy",
        "badURL": "this is no URL that can be loaded",
        "unsupportedScheme": "only http, https, ftp, ftps, file and data can be loaded",
        "hostNotFound": "there is no host of this name",
        "lookupFailed": "the name could not be looked up; that may pass",
        "connectionRefused": "nothing listens there",
        "unreachable": "there is no way to this host",
        "connectionLost": "the connection was lost",
        "userAuthenticationRequired": "the server did not let us in; -u names a user",
        "ftpServiceUnavailable": "the server accepts no users at the moment",
        "ftpStorageFull": "the server has no room for it",
        "ftpStoreRefused": "the server does not store it there",
        "webSocketRefused": "the server opened no WebSocket",
        "webSocketClosed": "the server closed the WebSocket",
        "pingTimeout": "the server did not answer a ping",
        "closeTimeout": "the server did not take leave",
        "truncated": "the connection ended before the response did",
        "idleTimeout": "the server was silent for too long",
        "connectTimeout": "connecting took longer than --connect-timeout",
        "resourceTimeout": "it took longer than --max-time",
        "notHTTP": "what answered does not speak HTTP",
        "notHTTP2": "the server does not speak HTTP/2; without --http2-prior-knowledge it can choose",
        "notTLS": "what answered does not speak TLS",
        "noCommonTLSVersion": "no TLS version that both sides accept",
        "certificateNameMismatch": "the certificate is for another host",
        "certificateUntrusted": "the certificate is not issued by a trusted authority; --cacert names one",
        "certificateExpired": "the certificate has expired",
        "certificateNotYetValid": "the certificate is not valid yet",
        "certificateSelfSigned": "the certificate is self-signed and not trusted",
        "certificateSignatureInvalid": "a signature in the chain is not its issuer's",
        "certificateWeak": "a key or signature in the chain is too weak",
        "certificateInvalid": "a certificate in the chain may not issue others, or not for this use",
        "certificateRevoked": "the certificate was revoked",
        "certificatePinMismatch": "the chain has none of the keys of --pin",
        "certificateStatusMissing": "no good status is stapled to the certificate",
        "clientCertificateRequired": "the server wants a client certificate; --cert gives one",
        "clientCertificateRefused": "the server refused the certificate of --cert",
        "badClientIdentity": "--cert and --key are no certificate with its key",
        "wrongPassphrase": "the key of --cert is encrypted, and --pass does not say with what",
        "trustRootsUnavailable": "the trusted certificates cannot be read",
        "tooManyRedirects": "too many redirects; --max-redirects allows more",
        "badRedirect": "the redirect leads to no URL",
        "unacceptableStatus": "the server answered with an error",
        "resumeMismatch": "the server did not send the rest of what an earlier run has left; remove that to begin anew",
        "invalidResumeToken": "what an earlier run has left does not fit; remove it to begin anew",
        "addressRefused": "the address is one that must not be connected to",
        "redirectRefused": "the redirect leads to something that must not be followed",
        "invalidUploadToken": "the file of --resumable is damaged or remembers something else",
        "uploadTokenMismatch": "the file of --resumable remembers an upload to another URL",
        "uploadSourceChanged": "the file to send has changed since its upload began",
        "notPossibleInBackground": "the background agent cannot do this",
        "backgroundSessionInUse": "another program uses the background session",
        "backgroundAgentUnavailable": "there is no background agent; 'urlload bg doctor' says why",
        "uploadNotFound": "the server does not know the upload any more; run again to begin anew",
        "uploadTooLarge": "the server takes no file of this size",
        "uploadRefused": "the server refused to go on with the upload",
        "contentDecodingFailed": "the compressed body is damaged",
        "unacceptableContentType": "the response is of another type",
    ]
}
