// A server's no over ftp, as callers see it.

import URLLoadingWire

extension LoadError.Reason {
    /// The server wants to know who asks, and does not believe it: over `ftp` its 530, after everybody was asked who
    /// might know better. (Over http a 401 is a response.)
    public static let userAuthenticationRequired = Self("userAuthenticationRequired", -1013)
    /// The server ends its service (421), or has not begun it: too many are connected, or it shuts down.
    public static let ftpServiceUnavailable = Self("ftpServiceUnavailable", -1004)
    /// The server has no room for what is stored (452, 552).
    public static let ftpStorageFull = Self("ftpStorageFull", -1011)
    /// The server does not store it there (532, 550, 553).
    public static let ftpStoreRefused = Self("ftpStoreRefused", -1102)
    /// A command was refused; the detail says which, and with which number.
    public static let ftpCommandRefused = Self("ftpCommandRefused", -1011)
    /// A reply out of the grammar of FTP (RFC 959 §4.2): what answered is none.
    public static let malformedFTPReply = Self(.malformedFTPReply)
    /// A reply without end.
    public static let ftpReplyTooLarge = Self(.ftpReplyTooLarge)
    /// A reply that nobody asked for, or that says something else than it may.
    public static let unexpectedFTPReply = Self("unexpectedFTPReply", -1011)
    /// A path, user, password or account with a line break or NUL in it (security 61).
    public static let invalidFTPArgument = Self(.invalidFTPArgument)
}

extension LoadError {
    init(_ refusal: FTPConversation.Refusal) {
        let (reason, phase): (Reason, Phase) =
            switch (refusal.reason, refusal.code) {
            case (.closing, _): (.ftpServiceUnavailable, .waiting)
            case (.refused, _) where refusal.command.isEmpty: (.ftpServiceUnavailable, .waiting)
            case (.login, _): (.userAuthenticationRequired, .connecting)
            case (_, 425): (.cannotConnect, .connecting)
            case (_, 530): (.userAuthenticationRequired, .waiting)
            case (.cannotStore, 452), (.cannotStore, 552): (.ftpStorageFull, .sending)
            case (.cannotStore, _): (.ftpStoreRefused, .sending)
            case (.unavailable, 550): (.fileNotFound, .waiting)
            case (.insecure, _): (.secureConnectionFailed, .securing)
            case (.cannotResume, _): (.rangeNotSatisfiable, .waiting)
            case (.aborted, _): (.truncated, .receiving)
            case (.unexpected, _): (.unexpectedFTPReply, .waiting)
            case (.refused, _), (.unavailable, _): (.ftpCommandRefused, .waiting)
            }
        // The server's own words may repeat what was said to it.
        let said =
            refusal.command.isEmpty
            ? "the greeting was \(refusal.code)" : "\(refusal.command) was answered \(refusal.code)"
        self.init(reason, phase: phase, party: .remote, detail: said)
    }

    /// What a machine of the wire threw: a refusal, or a violation.
    init(ftp error: any Error, _ phase: Phase) {
        self =
            switch error {
            case let refusal as FTPConversation.Refusal: LoadError(refusal)
            case let violation as WireViolation: LoadError(violation, phase)
            case let error as LoadError: error
            default: LoadError(.unexpectedFTPReply, phase: phase, party: .remote)
            }
    }
}
