// SPDX-License-Identifier: Apache-2.0

// How a run ended, and the exit code of each grammar for it.

import URLLoading

/// The tool whose command line is spoken.
enum Grammar: Sendable, Hashable, CaseIterable { case curl, wget, httpie }

struct Ending: Sendable, Hashable {
    var code: ExitCode
    /// The status of the response that was a failure; `nil` for other failures.
    var status: Status?
    /// True if the server caused the failure. Code 1 of curl is that of an answer which is not HTTP, too.
    var isByServer = false

    static let done = Ending(.done)

    init(_ code: ExitCode, _ status: Status? = nil, isByServer: Bool = false) {
        (self.code, self.status, self.isByServer) = (code, status, isByServer)
    }

    /// The number that a tool of this grammar exits with.
    func number(in grammar: Grammar) -> Int32 {
        switch (grammar, code) {
        case (.curl, _), (_, .done), (_, .interrupted), (_, .terminated): code.rawValue
        case (.wget, _): WgetExit(self).rawValue
        case (.httpie, _): HTTPieExit(self).rawValue
        }
    }

    /// Returns the ending of two loads, the earlier one first: that of the first failure, or, as in wget, that with the
    /// lower number, where 1 says least.
    func followed(by next: Ending, in grammar: Grammar) -> Ending {
        if code == .done { return next }
        guard grammar == .wget, next.code != .done, next.rank < rank else { return self }
        return next
    }

    private var rank: Int32 {
        let number = number(in: .wget)
        return number == WgetExit.other.rawValue ? .max : number
    }
}

/// The exit codes of wget (its manual, "Exit status").
enum WgetExit: Int32, Sendable, CaseIterable {
    case other = 1
    case usage = 2
    case file = 3
    case network = 4
    case certificate = 5
    case login = 6
    case protocolViolation = 7
    case status = 8

    init(_ ending: Ending) {
        self =
            switch ending.code {
            case .httpError: ending.status == .unauthorized ? .login : .status
            case .write, .read, .file, .brokenPipe: .file
            case .proxyName, .name, .connect, .timeout, .noResponse, .connectionLost, .truncated, .streamReset,
                .handshake, .interface, .proxy:
                .network
            case .certificate, .identity, .roots: .certificate
            case .login: .login
            case .unsupportedScheme where ending.isByServer: .protocolViolation
            case .protocolViolation, .http2, .contentCoding, .tooLarge, .headTooLarge, .digest: .protocolViolation
            case .range, .redirect, .upload, .remoteFull, .remoteFile: .status
            case .done, .unsupportedScheme, .usage, .badURL, .other, .interrupted, .terminated: .other
            }
    }

    var meaning: String {
        switch self {
        case .other: "anything else, such as a URL that cannot be loaded"
        case .usage: "the command line is wrong"
        case .file: "a file cannot be written or read"
        case .network: "no connection, no host, a time-out, a connection that was lost"
        case .certificate: "the certificate was not accepted"
        case .login: "401, or an ftp server refused the login"
        case .protocolViolation: "the server violated the protocol"
        case .status: "any other 4xx or 5xx, too many redirects, a refusal of an ftp server"
        }
    }
}

/// The exit codes of httpie (its manual, "Exit status").
enum HTTPieExit: Int32, Sendable, CaseIterable {
    case other = 1
    case timeout = 2
    case redirected = 3
    case clientError = 4
    case serverError = 5
    case redirects = 6

    init(_ ending: Ending) {
        self =
            switch (ending.code, ending.status?.code ?? 0) {
            case (.httpError, 300..<400): .redirected
            case (.httpError, 400..<500): .clientError
            case (.httpError, 500...): .serverError
            case (.timeout, _): .timeout
            case (.redirect, _): .redirects
            default: .other
            }
    }

    var meaning: String {
        switch self {
        case .other: "the command line is wrong, no connection was made, or anything else"
        case .timeout: "--timeout has passed"
        case .redirected: "3xx, with --check-status or -d, and --no-follow"
        case .clientError: "4xx, with --check-status or -d"
        case .serverError: "5xx, with --check-status or -d"
        case .redirects: "more redirects than --max-redirects"
        }
    }
}
