// SPDX-License-Identifier: Apache-2.0

// In this folder: replies, paths, ports of ftp, and its control connection as a state machine

// Decides which FTP command follows which reply, from the greeting to the end of a transfer and the next transfer on
// the same connection. Sockets, TLS, the source of credentials, and files are handled elsewhere.

/// The control connection of FTP as a sequence of steps (RFC 959, 2228, 2389, 2428, 2640, 3659, 4217).
///
/// ```swift
/// var conversation = FTPConversation(security: .explicit)
/// try conversation.begin(FTPConversation.Job(.retrieve, path))
/// while true {
///     switch conversation.step {
///     case .reply: try conversation.take(try await nextReply())
///     case .send(let bytes): try await write(bytes); conversation.sent()
///     case .secure: try await handshake(); conversation.secured()
///     case .login: try conversation.login(user: …, password: …)
///     case .connect(let port): try await openData(port); conversation.connected()   // or connectFailed()
///     case .transfer: try await moveBytes(); conversation.transferred()
///     case .idle: return
///     }
/// }
/// ```
package struct FTPConversation: Sendable, CustomStringConvertible {
    package enum Security: Sendable, Hashable {
        case none
        /// Sends AUTH TLS before anything else (RFC 4217 §4).
        case explicit
        /// The connection is secured before the greeting; the code that connects does that.
        case implicit
    }

    /// A transfer, or a query of a file's size.
    package struct Job: Sendable, Hashable {
        package enum Operation: Sendable, Hashable { case retrieve, list, store, size }
        package var operation: Operation
        package var path: FTPPath
        /// The offset at which the transfer begins (REST, RFC 3659 §5); at least 0.
        package var offset: Int64
        /// Whether the transfer may start from the beginning if the server does not support offsets.
        package var mayBeginAnew: Bool

        package init(_ operation: Operation, _ path: FTPPath, offset: Int64 = 0, mayBeginAnew: Bool = false) {
            self.operation = operation
            self.path = path
            self.offset = max(0, offset)
            self.mayBeginAnew = mayBeginAnew
        }
    }

    package enum Step: Sendable, Equatable {
        /// Pass the next reply to ``take(_:)``.
        case reply
        case send([UInt8])
        /// Begin TLS on the control connection. Bytes received earlier and not read yet are an attack.
        case secure
        /// Supply user name and password.
        case login
        /// Open the data connection, to the peer of the control connection.
        case connect(UInt16)
        /// Transfer the data over the data connection, secured if ``protectsData``.
        case transfer
        /// No job is under way: the job is done, or a new one may begin.
        case idle
    }

    /// A server's negative or unexpected reply.
    package struct Refusal: Error, Sendable, Hashable {
        package enum Reason: Sendable, Hashable {
            /// 421: the server closes the connection.
            case closing
            /// The login is wrong, or missing.
            case login
            /// The file does not exist or is not accessible.
            case unavailable
            /// No space, or no permission to write.
            case cannotStore
            /// The server refuses TLS.
            case insecure
            /// The server does not support offsets.
            case cannotResume
            /// The transfer was aborted.
            case aborted
            /// Any other refusal.
            case refused
            /// A reply that does not fit the state of the connection.
            case unexpected
        }
        package let reason: Reason
        /// The verb of the refused command; empty for the greeting.
        package let command: String
        package let code: Int
    }

    /// The file's size in bytes, known before ``Step/transfer`` if the server reports it.
    package private(set) var size: Int64?
    /// The size in bytes announced by a 125 or 150 reply for a file fetched from its beginning; `nil` without one. The
    /// text has no standard form (RFC 959 §4.2): it serves to show progress and does not prove that all bytes have
    /// arrived.
    package private(set) var announcedSize: Int64?
    /// The time of the last modification as written by the server: `YYYYMMDDHHMMSS`, with or without a fraction (RFC
    /// 3659 §2.3).
    package private(set) var modification: String?
    package private(set) var protectsData = false
    package private(set) var isLoggedIn = false
    package private(set) var step = Step.reply
    /// The server's features (RFC 2389) in upper case; `nil` if the server does not list them.
    private(set) var features: Set<String>?

    let security: Security
    private var phase = Phase.greeting
    private var job: Job?
    private var password: [UInt8] = []
    private var account: [UInt8]?
    private var type: Bool?
    private var extendedPassive = true

    private enum Phase: Sendable, Hashable {
        case greeting, auth, user, pass, acct, bufferSize, protection, features, utf8, ready
        case type, size, modification, passive, restart, command, ending
    }

    package init(security: Security) { self.security = security }

    /// The offset at which the transfer begins: final once the size is known, and possibly changed by the server.
    package var offset: Int64 { job?.offset ?? lastOffset }
    private var lastOffset: Int64 = 0
    /// True for a machine-readable listing (MLSD, RFC 3659 §7), false for a human-readable one (LIST).
    package private(set) var listsFacts = false

    /// Whether another job may begin on this connection.
    package var isReusable: Bool { step == .idle && isLoggedIn }

    // MARK: Completed steps

    /// Begins a job: at once if the connection is idle, otherwise after the login.
    package mutating func begin(_ job: Job) throws(WireViolation) {
        guard self.job == nil, step == .idle || !isLoggedIn else { throw .local(.illegalState, "RFC 959 5.4") }
        self.job = job
        (size, announcedSize, modification) = (nil, nil, nil)
        if step == .idle { try prepare() }
    }

    package mutating func sent() { step = .reply }

    package mutating func secured() throws(WireViolation) {
        step = .login
    }

    /// Supplies the credentials.
    /// - Throws: `local` if one of them contains a line break or NUL, which would inject another command.
    package mutating func login(user: String, password: String, account: String? = nil) throws(WireViolation) {
        self.password = Array(password.utf8)
        self.account = account.map { Array($0.utf8) }
        try FTPCommand.check(self.password + (self.account ?? []))
        try send(.user, "USER", Array(user.utf8))
    }

    /// Reports that the data connection is established.
    /// - Parameter offset: a new offset to begin at; `nil` keeps the job's.
    package mutating func connected(beginningAt offset: Int64? = nil) throws(WireViolation) {
        if let offset { job?.offset = max(0, offset) }
        guard let job else { throw .local(.illegalState, "RFC 959 5.4") }
        if job.offset > 0 { try send(.restart, "REST", Array("\(job.offset)".utf8)) } else { try sendCommand() }
    }

    /// Reports that the data connection to the port of ``Step/connect(_:)`` cannot be made. Returns whether the server
    /// is asked for another port: with PASV, once, if that one was offered by EPSV.
    package mutating func connectFailed() throws(WireViolation) -> Bool {
        guard extendedPassive, case .connect = step else { return false }
        extendedPassive = false
        try send(.passive, "PASV")
        return true
    }

    /// Reports that the data was transferred and the data connection has ended; the server's final reply is still to
    /// come.
    package mutating func transferred() {
        phase = .ending
        step = .reply
    }

    // MARK: Replies

    package mutating func take(_ reply: FTPReply) throws {
        if reply.code == 421 { throw refusal(.closing, reply) }
        switch phase {
        case .greeting:
            if reply.kind == .preliminary { return }
            guard reply.kind == .completed else { throw refusal(.refused, reply) }
            switch security {
            case .explicit: try send(.auth, "AUTH", Array("TLS".utf8))
            case .implicit, .none: step = .login
            }
        case .auth:
            guard reply.kind == .completed else { throw refusal(.insecure, reply) }
            step = .secure
        case .user, .pass, .acct: try takeLogin(reply)
        case .bufferSize:
            guard reply.kind == .completed else { throw refusal(.insecure, reply) }
            try send(.protection, "PROT", Array("P".utf8))
        case .protection:
            guard reply.kind == .completed else { throw refusal(.insecure, reply) }
            protectsData = true
            try send(.features, "FEAT")
        case .features:
            features = reply.kind == .completed ? Self.features(reply) : nil
            if features?.contains("UTF8") == true {
                try send(.utf8, "OPTS", Array("UTF8 ON".utf8))
            } else {
                try ready()
            }
        case .utf8: try ready()
        case .ready: throw refusal(.unexpected, reply)
        case .type:
            guard reply.kind == .completed else { throw refusal(.refused, reply) }
            type = job?.path.isText ?? false
            try afterType()
        case .size: try takeSize(reply)
        case .modification:
            modification = reply.code == 213 ? reply.text : nil
            try described()
        case .passive: try takePassive(reply)
        case .restart: try takeRestart(reply)
        case .command: try takePreliminary(reply)
        case .ending:
            if reply.kind == .preliminary { return }
            guard reply.kind == .completed else {
                throw refusal(reply.code == 452 || reply.code == 552 ? .cannotStore : .aborted, reply)
            }
            done()
        }
    }

    private mutating func takeSize(_ reply: FTPReply) throws {
        // Servers refuse SIZE for text files and folders, or do not support it; the size is then unknown.
        size = reply.code == 213 ? Int64(reply.text.prefix { $0.isASCII && $0.isNumber }) : nil
        if job?.operation == .size, size == nil {
            done()
            throw refusal(reply.code == 550 ? .unavailable : .refused, reply)
        }
        if features?.contains("MDTM") == true {
            try send(.modification, "MDTM", job?.path.bytes ?? [])
        } else {
            try described()
        }
    }

    private mutating func takeRestart(_ reply: FTPReply) throws {
        if reply.kind != .intermediate {
            guard job?.mayBeginAnew == true, reply.kind == .permanentFailure else {
                throw refusal(.cannotResume, reply)
            }
            job?.offset = 0
        }
        try sendCommand()
    }

    /// Takes the reply to a command that transfers data.
    private mutating func takePreliminary(_ reply: FTPReply) throws {
        switch reply.kind {
        case .preliminary:
            announcedSize = announcement(reply)
            step = .transfer
        // The server may report an empty listing as complete before the data connection is made.
        case .completed where job?.operation == .list: done()
        // Old servers answer so to LIST for a folder without files.
        case .transientFailure where job?.operation == .list && !listsFacts && reply.code == 450: done()
        default:
            let operation = job?.operation
            // The refusal ends the command; the connection can be used for another.
            done()
            throw refusal(operation == .store ? .cannotStore : .unavailable, reply)
        }
    }

    /// Returns the size announced in a reply such as `150 Opening BINARY mode data connection for a.txt (12345 bytes).`
    private func announcement(_ reply: FTPReply) -> Int64? {
        guard let job, job.operation == .retrieve, job.offset == 0, !job.path.isText, [125, 150].contains(reply.code)
        else { return nil }
        return FTPSize.announced(reply.text)
    }

    private mutating func takeLogin(_ reply: FTPReply) throws {
        switch (phase, reply.code) {
        case (.user, 230), (.user, 232), (.pass, 230), (.pass, 202), (.pass, 232), (.acct, 230), (.acct, 202):
            isLoggedIn = true
            (password, account) = ([], nil)
            if security == .none {
                try send(.features, "FEAT")
            } else {
                try send(.bufferSize, "PBSZ", [UInt8(ascii: "0")])
            }
        case (.user, 331): try send(.pass, "PASS", password)
        case (.user, 332), (.pass, 332):
            guard let account else { throw refusal(.login, reply) }
            try send(.acct, "ACCT", account)
        default: throw refusal(.login, reply)
        }
    }

    private mutating func takePassive(_ reply: FTPReply) throws {
        if extendedPassive {
            if reply.code == 229, let port = FTPPort.extended(reply.text) {
                step = .connect(port)
                return
            }
            guard reply.kind == .permanentFailure || reply.kind == .transientFailure else {
                throw refusal(.unexpected, reply)
            }
            // Old servers, and those behind a device that rewrites addresses, support only PASV.
            extendedPassive = false
            return try send(.passive, "PASV")
        }
        guard reply.kind == .completed else { throw refusal(.refused, reply) }
        guard reply.code == 227, let port = FTPPort.passive(reply.text) else { throw refusal(.unexpected, reply) }
        step = .connect(port)
    }

    // MARK: Next commands

    private mutating func ready() throws(WireViolation) {
        phase = .ready
        step = .idle
        if job != nil { try prepare() }
    }

    private mutating func prepare() throws(WireViolation) {
        guard let job else { return }
        if type == job.path.isText { return try afterType() }
        try send(.type, "TYPE", [UInt8(ascii: job.path.isText ? "A" : "I")])
    }

    private mutating func afterType() throws(WireViolation) {
        guard let job else { return }
        // In text mode a size is an estimate for which the server must read the file.
        let knows = !job.path.isText && features?.contains("SIZE") != false
        switch job.operation {
        case .size: try send(.size, "SIZE", job.path.bytes)
        case .retrieve where knows: try send(.size, "SIZE", job.path.bytes)
        default: try passive()
        }
    }

    /// Continues once the file's size and time are known.
    private mutating func described() throws(WireViolation) {
        if job?.operation == .size { done() } else { try passive() }
    }

    private mutating func passive() throws(WireViolation) {
        try send(.passive, extendedPassive ? "EPSV" : "PASV")
    }

    private mutating func sendCommand() throws(WireViolation) {
        guard let job else { return }
        let verb =
            switch job.operation {
            case .retrieve: "RETR"
            case .store: "STOR"
            case .list: features?.contains("MLST") == true ? "MLSD" : "LIST"
            case .size: "SIZE"
            }
        listsFacts = verb == "MLSD"
        var path = job.path.bytes
        // A folder is named without its trailing slash, except the root.
        if job.operation == .list, path.count > 1, path.last == UInt8(ascii: "/") { path.removeLast() }
        try send(.command, verb, path)
    }

    private mutating func send(_ phase: Phase, _ verb: String, _ argument: [UInt8] = []) throws(WireViolation) {
        step = .send(try FTPCommand.line(verb, argument))
        self.phase = phase
        command = verb
    }
    private var command = ""

    private mutating func done() {
        lastOffset = job?.offset ?? 0
        job = nil
        phase = .ready
        step = .idle
    }

    private func refusal(_ reason: Refusal.Reason, _ reply: FTPReply) -> Refusal {
        Refusal(reason: reason, command: command, code: reply.code)
    }

    /// Parses the reply to FEAT, which lists one feature on each line between the first and the last (RFC 2389 §3.2).
    private static func features(_ reply: FTPReply) -> Set<String> {
        var names = Set(
            reply.lines.dropFirst().dropLast().compactMap { line in
                line.split(separator: " ").first.map { $0.uppercased() }
            })
        if names.contains("MLSD") { names.insert("MLST") }
        return names
    }

    /// The state of the connection, without the arguments of commands.
    package var description: String {
        "FTP \(phase)\(isLoggedIn ? ", logged in" : "")\(protectsData ? ", data protected" : "")"
    }
}
