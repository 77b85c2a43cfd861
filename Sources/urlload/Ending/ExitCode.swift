// SPDX-License-Identifier: Apache-2.0

// In this folder: exit codes and their words

// Exit codes. The numbers are curl's where curl has an equal one, so that scripts for curl keep working.

import FoundationEssentials
import URLLoading

enum ExitCode: Int32, CaseIterable, Sendable {
    case done = 0
    case unsupportedScheme = 1
    case usage = 2
    case badURL = 3
    case proxyName = 5
    case name = 6
    case connect = 7
    case protocolViolation = 8
    case http2 = 16
    case truncated = 18
    case httpError = 22
    case write = 23
    case upload = 25
    case read = 26
    case timeout = 28
    case digest = 32
    case range = 33
    case handshake = 35
    case file = 37
    case interface = 45
    case redirect = 47
    case noResponse = 52
    case connectionLost = 56
    case identity = 58
    case certificate = 60
    case contentCoding = 61
    case tooLarge = 63
    case login = 67
    case remoteFull = 70
    case roots = 77
    case remoteFile = 78
    case streamReset = 92
    case proxy = 97
    case other = 99
    case headTooLarge = 100
    case interrupted = 130
    case brokenPipe = 141
    case terminated = 143

    var meaning: String {
        switch self {
        case .done: "loaded; any status, unless -f"
        case .unsupportedScheme: "the scheme is not supported, or the server's answer is not HTTP"
        case .usage: "the command line, or the request it describes, is wrong"
        case .badURL: "the URL is not valid"
        case .proxyName: "the name of the proxy was not resolved"
        case .name: "the host name was not resolved"
        case .connect: "no connection was made"
        case .protocolViolation: "the server violated the protocol"
        case .http2: "the server violated HTTP/2, or does not speak it"
        case .truncated: "the response ended early"
        case .httpError: "4xx or 5xx, with -f; with --sse anything but 200"
        case .write: "the output cannot be written"
        case .upload: "an ftp server refused to store the file"
        case .read: "the data to send cannot be read"
        case .digest: "the body has another digest than --checksum or the response says"
        case .range: "the requested range of bytes does not exist"
        case .timeout: "--timeout, --connect-timeout or --max-time"
        case .file: "the file of a file: URL cannot be read"
        case .handshake: "the TLS handshake failed"
        case .interface: "the interface or address of --interface is not available"
        case .redirect: "too many redirects, or an invalid one"
        case .noResponse: "the server closed the connection without an answer"
        case .connectionLost: "the connection was lost, a chunk is malformed, or an HTTP proxy refused the connection"
        case .identity: "the certificate of --cert cannot be used"
        case .certificate: "the certificate was not accepted"
        case .contentCoding: "the compressed body is damaged"
        case .tooLarge: "the body is larger than a limit"
        case .login: "an ftp server refused the login"
        case .remoteFull: "an ftp server has no room for the file"
        case .remoteFile: "an ftp server has no such file"
        case .streamReset: "the server ended the stream of HTTP/2 or HTTP/3 early"
        case .roots: "the trusted certificates cannot be read"
        case .proxy: "the SOCKS proxy refused, or does not speak SOCKS"
        case .other: "anything else"
        case .headTooLarge: "the head of a message is larger than a limit"
        case .interrupted: "interrupted (SIGINT, SIGHUP)"
        case .brokenPipe: "the reader of the output has closed it"
        case .terminated: "terminated (SIGTERM)"
        }
    }
}

extension ExitCode {
    init(_ error: LoadError) {
        let code = Self.ofProxy(error) ?? Self.ofNoResponse(error) ?? Self.ofReason[error.reason] ?? Self.byParty(error)
        self =
            switch (code, error.url?.scheme?.lowercased()) {
            case (.read, "file"): .file
            case (.read, "ftp"), (.read, "ftps"): error.party == .remote ? .remoteFile : code
            default: code
            }
    }

    /// The code for an error of a proxy: its name could not be resolved, or it failed once it was connected.
    private static func ofProxy(_ error: LoadError) -> ExitCode? {
        if error.proxyFailure != nil, error.reason == .lookupFailed { return .proxyName }
        guard let failure = error.proxyFailure, error.party == .remote, error.phase != .securing,
            ofReason[error.reason] != .connect,
            ofReason[error.reason] != .timeout
        else { return nil }
        return failure.proxy.kind == .http || failure.proxy.kind == .https ? .connectionLost : .proxy
    }

    /// The code for a server that closes the connection before the first byte of an answer, as curl tells it from a
    /// connection that is reset.
    private static func ofNoResponse(_ error: LoadError) -> ExitCode? {
        error.kind == .unanswered ? .noResponse : nil
    }

    /// Reasons without an entry are malformed messages: a response of the peer, or a request that cannot be sent.
    private static func byParty(_ error: LoadError) -> ExitCode {
        switch error.party {
        case .remote: .protocolViolation
        case .local: error.code == LoadError.Reason.badRequest.code ? .usage : .other
        case .system: .other
        }
    }

    private static let ofReason: [LoadError.Reason: ExitCode] = [
        .cancelled: .interrupted, .sessionInvalidated: .interrupted,
        .unsupportedScheme: .unsupportedScheme, .badURL: .badURL, .badRequest: .usage,
        .idleTimeout: .timeout, .connectTimeout: .timeout, .resourceTimeout: .timeout,
        .hostNotFound: .name, .lookupFailed: .name, .proxyNotFound: .proxyName, .badProxy: .usage,
        .proxyRefused: .connectionLost, .proxyAuthenticationRequired: .connectionLost,
        .interfaceUnavailable: .interface,
        .connectionRefused: .connect, .unreachable: .connect, .cannotConnect: .connect,
        .connectionLost: .connectionLost, .truncated: .truncated, .streamReset: .streamReset,
        .secureConnectionFailed: .handshake, .notTLS: .handshake, .noCommonTLSVersion: .handshake,
        .weakHandshake: .handshake, .insecureRenegotiation: .handshake,
        .clientCertificateRequired: .handshake, .clientCertificateRefused: .handshake,
        .badClientIdentity: .identity, .wrongPassphrase: .identity,
        .certificateSelfSigned: .certificate, .certificateSignatureInvalid: .certificate,
        .certificateWeak: .certificate,
        .certificatePinMismatch: .certificate, .certificateStatusMissing: .certificate,
        .certificateRefused: .certificate,
        .certificateNameMismatch: .certificate, .certificateUntrusted: .certificate, .certificateExpired: .certificate,
        .certificateNotYetValid: .certificate, .certificateInvalid: .certificate, .certificateRevoked: .certificate,
        .trustRootsUnavailable: .roots,
        .tooManyRedirects: .redirect, .badRedirect: .redirect, .redirectRefused: .redirect,
        .digestMismatch: .digest,
        .contentDecodingFailed: .contentCoding, .contentTooLarge: .tooLarge, .bodyTooLarge: .tooLarge,
        .uploadTooLarge: .tooLarge, .uploadRefused: .httpError, .uploadNotFound: .httpError,
        .uploadSourceChanged: .read, .notPossibleInBackground: .usage, .backgroundAgentUnavailable: .connect,
        .notHTTP: .unsupportedScheme, .malformedStatusLine: .unsupportedScheme, .unsupportedVersion: .unsupportedScheme,
        .malformedChunkSize: .connectionLost, .chunkSizeOverflow: .connectionLost,
        .chunkExtensionsTooLarge: .connectionLost, .malformedChunkEnd: .connectionLost,
        .notHTTP2: .http2, .http2Violation: .http2, .http2FlowControl: .http2, .http2MalformedMessage: .http2,
        .http2Flood: .http2,
        .headTooLarge: .headTooLarge, .tooManyFields: .headTooLarge,
        .eventLineTooLong: .tooLarge, .eventTooLarge: .tooLarge, .requestBodyFailed: .read,
        .unacceptableStatus: .httpError, .userAuthenticationRequired: .login, .ftpStoreRefused: .upload,
        .ftpStorageFull: .remoteFull,
        .ftpServiceUnavailable: .connect,
        .webSocketRefused: .httpError, .webSocketClosed: .connectionLost,
        .pingTimeout: .timeout, .closeTimeout: .timeout, .messageTooLarge: .tooLarge,
        .fileNotFound: .read, .fileIsDirectory: .read, .noPermission: .read, .cannotReadFile: .read,
        .fileChanged: .read,
        .cannotCreateFile: .write, .cannotWriteFile: .write, .cannotMoveFile: .write, .invalidResumeToken: .usage,
        .addressRefused: .connect, .notAllowedOnCellularNetwork: .connect, .notAllowedOnExpensiveNetwork: .connect,
        .notAllowedOnConstrainedNetwork: .connect, .rangeNotSatisfiable: .range, .resumeMismatch: .range,
    ]
}
