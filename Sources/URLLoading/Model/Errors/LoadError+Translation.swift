// SPDX-License-Identifier: Apache-2.0

// Translates failures of the lower modules into `LoadError`.

import URLLoadingIO
package import URLLoadingWire

extension LoadError {
    init(_ reason: StopReason, phase: Phase) {
        let (why, party): (Reason, Party) =
            switch reason {
            case .cancelled, .invalidated: (.cancelled, .local)
            case .idle: (.idleTimeout, .remote)
            case .deadline: (.resourceTimeout, .local)
            }
        self.init(why, phase: phase, party: party)
    }

    /// Creates the error of the stop reason, or else returns `error`. Both name the URL that `error` names.
    init(_ reason: StopReason?, or error: LoadError) {
        if let reason { self = LoadError(reason, phase: error.phase).at(error.url) } else { self = error }
    }

    init(_ failure: IOFailure, _ phase: Phase? = nil) {
        let phase = phase ?? Phase(failure.operation)
        switch failure.code {
        case .stopped(let reason): self.init(reason, phase: phase)
        case .attemptTimedOut: self.init(.connectTimeout, phase: phase, party: .system)
        case .system(let number): self.init(number, phase)
        case .hostNotFound(let name): self.init(.hostNotFound, phase: phase, party: .system, detail: name)
        case .lookupFailed(let words): self.init(.lookupFailed, phase: phase, party: .system, detail: words)
        case .tls(let failure): self.init(failure, phase)
        case .closedByPeer: self.init(.connectionLost, phase: phase, party: .remote)
        case .cannotBind(let words): self.init(.interfaceUnavailable, phase: phase, party: .system, detail: words)
        case .invalidAddress(let words): self.init(.badURL, phase: phase, party: .local, detail: words)
        case .unixSocket(let path, let number): self.init(number, phase, socket: path)
        }
    }

    /// Translates the failure of a file that the caller named.
    init(file failure: IOFailure, _ phase: Phase = .connecting) {
        guard case .system(let number) = failure.code else {
            self.init(failure, phase)
            return
        }
        let reason: Reason =
            switch SystemError.fileKind(number) {
            case .notFound: .fileNotFound
            case .forbidden: .noPermission
            case .other: .cannotReadFile
            }
        self.init(reason, phase: phase, party: .system, detail: SystemError.words(number))
    }

    /// - Parameter socket: the Unix socket that was to be connected to; `nil` for other addresses.
    private init(_ number: Int32, _ phase: Phase, socket: String? = nil) {
        let isConnecting = phase == .connecting
        let (reason, party): (Reason, Party) =
            switch SystemError.kind(number) {
            case .refused: (.connectionRefused, .remote)
            case .unreachable: (.unreachable, .system)
            case .lost: (.connectionLost, .remote)
            case .timedOut: (isConnecting ? .unreachable : .connectionLost, .system)
            case .other where phase == .resolving: (.lookupFailed, .system)
            case .other: (isConnecting ? .cannotConnect : .connectionLost, .system)
            }
        let detail: String? =
            switch (socket, reason) {
            case (let path?, _): SystemError.words(number, ofSocket: path)
            // The reason says it all, and its explanation is a sentence.
            case (nil, .connectionRefused): nil
            case (nil, _): SystemError.words(number)
            }
        self.init(reason, phase: phase, party: party, detail: detail)
    }

    package init(_ violation: WireViolation, _ phase: Phase) {
        self.init(
            Reason(violation), phase: phase, party: violation.party == .local ? .local : .remote,
            detail: violation.explanation)
    }
}

extension LoadError.Phase {
    init(_ operation: IOFailure.Operation) {
        self =
            switch operation {
            case .resolve: .resolving
            case .open, .connect, .listen, .accept, .sleep: .connecting
            case .handshake: .securing
            case .read: .receiving
            case .write: .sending
            }
    }
}

extension LoadError.Reason {
    /// Returns the reason for a protocol violation. Each violation has a reason of its own, with the same name.
    init(_ violation: WireViolation) {
        switch violation.code {
        case .invalidURL, .invalidHost, .ambiguousAddress, .invalidPort, .ambiguousAuthority: self = .badURL
        case .unsupportedScheme: self = .unsupportedScheme
        case .notHTTP: self = .notHTTP
        case .prematureEnd: self = .truncated
        case .bodyLengthMismatch: self = .requestBodyFailed
        case .contentDecodingFailed, .truncatedContent, .tooManyCodings: self = .contentDecodingFailed
        case .contentDecodingLimit: self = .contentTooLarge
        case let code where violation.party == .local: self.init(code.rawValue, Self.badRequest.code)
        case let code: self.init(code.rawValue, Self.notHTTP.code)
        }
    }
}
