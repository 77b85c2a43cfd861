// SPDX-License-Identifier: Apache-2.0

// Error replies of FTP servers as load errors.

import URLLoadingWire

extension LoadError.Reason {
    /// The server requires a login and accepts none: over `ftp`, its reply 530 after all credentials and the decision
    /// were tried. (Over http a 401 is a response.)
    public static let userAuthenticationRequired = Self("userAuthenticationRequired", -1013)
    /// The server ends its service (421), or does not begin it: it has too many connections, or shuts down.
    public static let ftpServiceUnavailable = Self("ftpServiceUnavailable", -1004)
    /// The server has no room for the upload (452, 552).
    public static let ftpStorageFull = Self("ftpStorageFull", -1011)
    /// The server refuses to store the file at this path (532, 550, 553).
    public static let ftpStoreRefused = Self("ftpStoreRefused", -1102)
    /// The server refused a command; the detail contains the command and the reply code.
    public static let ftpCommandRefused = Self("ftpCommandRefused", -1011)
    /// The reply violates the grammar of FTP (RFC 959 §4.2): the peer is not an FTP server.
    public static let malformedFTPReply = Self(.malformedFTPReply)
    /// The reply exceeds the size limit.
    public static let ftpReplyTooLarge = Self(.ftpReplyTooLarge)
    /// The server sent a reply without a command, or one that its command does not allow.
    public static let unexpectedFTPReply = Self("unexpectedFTPReply", -1011)
    /// A path, user, password or account contains a line break or NUL, which could inject commands.
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
        // The text of the reply may repeat credentials, so only its code is used.
        let detail =
            refusal.command.isEmpty
            ? "the greeting was \(refusal.code)" : "\(refusal.command) was answered \(refusal.code)"
        self.init(reason, phase: phase, party: .remote, detail: detail)
    }

    /// Converts an error of the wire layer: a refusal or a violation.
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
