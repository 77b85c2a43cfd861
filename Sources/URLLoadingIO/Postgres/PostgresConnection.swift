// SPDX-License-Identifier: Apache-2.0

// In this folder: PostgreSQL, by its own client library

// One connection to a PostgreSQL server. Its socket is waited for on a slot of the poller: no thread blocks for the
// server, except for one that opens the connection.

import Glibc
import Synchronization

/// The reason why PostgreSQL did not do what it was asked for.
package struct PostgresFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// libpq is not installed.
        case noLibrary
        /// The connection could not be opened, or has ended: what was asked for may have been carried out.
        case disconnected
        /// The server has refused a statement, and has changed nothing.
        case refused
    }
    package let kind: Kind
    /// The code of the error (SQLSTATE), such as `42P01`; empty for other failures.
    package let code: String
    /// The first line of the server's or of libpq's message. It contains no values of parameters and no passwords.
    package let detail: String

    package var description: String { code.isEmpty ? detail : "PostgreSQL \(code): \(detail)" }

    package init(_ kind: Kind, code: String = "", _ detail: String) {
        (self.kind, self.code) = (kind, code)
        self.detail = detail.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    }

    /// Whether another transaction was in the way, which has gone on: a deadlock, a conflict of serialisation.
    package var isConflict: Bool { code.hasPrefix("40") }

    /// Whether the session may not write: the server is a copy, or was made read-only.
    package var isReadOnly: Bool { code == "25006" }

    /// Whether the statement may succeed if it is repeated: a deadlock, a conflict of serialisation, a server that is
    /// starting or stopping, or that has no room.
    package var mayPass: Bool {
        kind == .disconnected || ["40", "53", "55", "57", "58"].contains { code.hasPrefix($0) }
    }
}

/// A value of a parameter.
package enum PostgresValue: Sendable, ExpressibleByStringLiteral, ExpressibleByNilLiteral {
    case null
    /// In PostgreSQL's text format, for a parameter of any type.
    case text(String)
    case bytes([UInt8])

    package init(stringLiteral value: String) { self = .text(value) }
    package init(nilLiteral: ()) { self = .null }
    package init(_ number: Int64?) { self = number.map { .text("\($0)") } ?? .null }
    package init(_ number: Int) { self = .text("\(number)") }
    package init(_ flag: Bool) { self = .text(flag ? "t" : "f") }
    /// An array of texts.
    package init(_ texts: [String]) {
        // By scalars: a quotation mark and the accent after it are one character, which is not the mark.
        let quoted = texts.map { text in
            var scalars = String.UnicodeScalarView()
            for scalar in text.unicodeScalars {
                if scalar == "\"" || scalar == "\\" { scalars.append("\\") }
                scalars.append(scalar)
            }
            return "\"\(String(scalars))\""
        }
        self = .text("{" + quoted.joined(separator: ",") + "}")
    }
    /// An array of numbers.
    package init(_ numbers: [Int64]) { self = .text("{" + numbers.map(String.init).joined(separator: ",") + "}") }
}

/// A row of a result. Columns are numbered from 0.
package struct PostgresRow: Sendable {
    fileprivate var values: [[UInt8]?]

    package func isNull(_ column: Int) -> Bool { values[column] == nil }
    package func text(_ column: Int) -> String { String(decoding: values[column] ?? [], as: UTF8.self) }
    package func integer(_ column: Int) -> Int64 { Int64(text(column)) ?? 0 }
    package func flag(_ column: Int) -> Bool { values[column] == [UInt8(ascii: "t")] }
    /// Bytes, which arrive as hexadecimal digits (`bytea_output`).
    package func bytes(_ column: Int) -> [UInt8]? {
        guard let digits = values[column] else { return nil }
        func value(_ digit: UInt8) -> UInt8 { digit > 0x39 ? (digit | 0x20) &- 0x57 : digit &- 0x30 }
        return stride(from: 2, to: digits.count - 1, by: 2).map { value(digits[$0]) << 4 | value(digits[$0 + 1]) }
    }
}

/// What a statement has returned.
package struct PostgresResult: Sendable {
    package var rows: [PostgresRow] = []
    /// The number of rows that it has changed.
    package var changed = 0
}

/// A connection, which one task uses at a time.
package final class PostgresConnection: Sendable {
    /// A notification of another session.
    package struct Notification: Sendable, Equatable {
        package var channel: String
        package var payload: String
    }

    private struct State {
        var handle: PostgresLibrary.Handle?
        var prepared: Set<String> = []
        var notifications: [Notification] = []
        /// The moment of the next timer of the slot.
        var timer: Int64 = 0
    }

    private let library: PostgresLibrary
    private let state: Lock<State>
    private let descriptor: Int32
    private let slot: PollSlot

    /// The nanoseconds after which a server that does not answer is given up.
    package static let patience: Int64 = 30_000_000_000

    /// Connects to a server.
    /// - Parameter address: a URI or a list of keywords and values, as libpq takes them: with it come TLS, passwords,
    ///   service files, several hosts. Ten seconds are waited for each host unless it says otherwise
    ///   (`connect_timeout`).
    package static func open(_ address: String) async throws(PostgresFailure) -> PostgresConnection {
        guard let library = PostgresLibrary.shared else {
            throw PostgresFailure(.noLibrary, "libpq.so.5 is not installed (Debian: apt-get install libpq5)")
        }
        let opened = await library.threads.call(.never) { () -> Result<PostgresConnection, PostgresFailure> in
            LibraryCalls.perform {
                Result { () throws(PostgresFailure) in try PostgresConnection(library, address) }
            } ?? .failure(PostgresFailure(.disconnected, "the process is exiting"))
        }
        return try (opened ?? .failure(PostgresFailure(.disconnected, "the process is exiting"))).get()
    }

    /// Blocks.
    private init(_ library: PostgresLibrary, _ address: String) throws(PostgresFailure) {
        // What the address says of these comes later, and counts.
        let names = ["connect_timeout", "fallback_application_name", "client_encoding", "dbname"]
        let values = ["10", "url-loading-agent", "UTF8", address]
        let opened = Self.withTexts(names) { names in
            Self.withTexts(values) { values in library.connect(names, values, 1) }
        }
        guard let opened else { throw PostgresFailure(.disconnected, "libpq has no memory") }
        // CONNECTION_OK is 0.
        guard library.status(opened) == 0, library.setNonblocking(opened, 1) == 0 else {
            let words = library.message(opened).map { String(cString: $0) } ?? ""
            library.close(opened)
            throw PostgresFailure(.disconnected, Self.withoutSecrets(words, of: address))
        }
        // libpq would write them to the standard error stream.
        _ = library.setNoticeProcessor(opened, { _, _ in }, nil)
        let socket = library.socket(opened)
        let slot = Poller.shared.borrowSlot()
        do throws(IOFailure) { try Poller.shared.register(socket, slot) } catch {
            library.close(opened)
            Poller.shared.returnSlot(slot)
            throw PostgresFailure(.disconnected, "the socket cannot be waited for: \(error.words)")
        }
        (self.library, self.slot, descriptor) = (library, slot, socket)
        state = Lock(State(handle: opened))
    }

    deinit {
        state.withLock { state in
            if let handle = state.handle.take() { LibraryCalls.perform { library.close(handle) } }
        }
        Poller.shared.returnSlot(slot)
    }

    /// libpq quotes an address that it cannot read, with its password.
    private static func withoutSecrets(_ words: String, of address: String) -> String {
        let marks = ["connection option", "URI", "connection info", "percent-encoded", "unexpected spaces"]
        let isQuoted = marks.contains(where: words.contains)
        return isQuoted ? "the address of the database is not one that libpq can read" : words
    }

    private static func withTexts<R>(_ texts: [String], _ use: (UnsafePointer<PostgresLibrary.Text?>) -> R) -> R {
        let copies = texts.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        return (copies.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { pointers in
            // An array with an element has an address.
            use(pointers.baseAddress.unsafelyUnwrapped)
        }
    }

    // MARK: Statements

    /// Runs statements without parameters, and returns the result of the last one.
    /// - Parameter nanoseconds: how long an answer is waited for.
    @discardableResult
    package func run(_ text: String, within nanoseconds: Int64 = patience) async throws(PostgresFailure)
        -> PostgresResult
    {
        try await carryOut(within: nanoseconds) { library, handle in library.send(handle, text) }
    }

    /// Runs a statement with parameters, which is prepared at its first use.
    /// - Parameter name: the name of the statement in this connection; the same for the same text.
    @discardableResult
    package func run(
        _ name: String, _ text: @autoclosure () -> String, _ values: [PostgresValue] = []
    ) async throws(PostgresFailure) -> PostgresResult {
        if !state.withLock({ $0.prepared.contains(name) }) {
            let text = text()
            _ = try await carryOut { library, handle in library.sendPrepare(handle, name, text, 0, nil) }
            _ = state.withLock { $0.prepared.insert(name) }
        }
        return try await carryOut { library, handle in Self.send(name, values, library, handle) }
    }

    private static func send(
        _ name: String, _ values: [PostgresValue], _ library: PostgresLibrary, _ handle: PostgresLibrary.Handle
    ) -> Int32 {
        var (lengths, formats) = ([Int32](), [Int32]())
        var room: [UInt8] = []
        var offsets: [Int?] = []
        for value in values {
            switch value {
            case .null:
                offsets.append(nil)
                lengths.append(0)
                formats.append(0)
            case .text(let text):
                offsets.append(room.count)
                room += text.utf8
                room.append(0)
                lengths.append(0)
                formats.append(0)
            case .bytes(let bytes):
                offsets.append(room.count)
                room += bytes
                room.append(0)
                lengths.append(Int32(bytes.count))
                formats.append(1)
            }
        }
        return room.withUnsafeBytes { room in
            let pointers = offsets.map { offset in
                offset.flatMap { room.baseAddress?.advanced(by: $0).assumingMemoryBound(to: CChar.self) }
            }
            return library.sendPrepared(handle, name, Int32(values.count), pointers, lengths, formats, 0)
        }
    }

    /// Sends a request, and waits for its results.
    private func carryOut(
        within nanoseconds: Int64 = patience,
        _ send: @Sendable (PostgresLibrary, PostgresLibrary.Handle) -> Int32
    ) async throws(PostgresFailure) -> PostgresResult {
        let library = library
        let isSent = state.withLock { state in
            state.handle.map { handle in LibraryCalls.perform { send(library, handle) } == 1 } ?? false
        }
        guard isSent else { throw lost() }
        let deadline = Poller.now() + nanoseconds
        try await flush(deadline)
        var last = PostgresResult()
        var failure: PostgresFailure?
        // All results are taken, also after a failure: the connection is free for the next request then.
        while let next = try await nextResult(deadline) {
            switch next {
            case .success(let result): last = result
            case .failure(let error): failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return last
    }

    private func flush(_ deadline: Int64) async throws(PostgresFailure) {
        slot.wakeWriterForReads(true)
        defer { slot.wakeWriterForReads(false) }
        while true {
            _ = slot.beginRead()
            let library = library
            let left = state.withLock { state in
                state.handle.map { handle in
                    LibraryCalls.perform {
                        library.consumeInput(handle) == 1 ? library.flush(handle) : -1
                    } ?? -1
                } ?? -1
            }
            if left == 0 { return }
            guard left > 0, Poller.now() < deadline else { throw lost() }
            // The server may wait until its answers are read.
            guard !hasInput else { continue }
            arm(deadline)
            await Poller.shared.park(slot, .write, .never)
        }
    }

    /// Returns the next result of the request; `nil` after the last one.
    private func nextResult(_ deadline: Int64) async throws(PostgresFailure) -> Result<
        PostgresResult, PostgresFailure
    >? {
        while isBusy {
            _ = slot.beginRead()
            guard consumeInput(), Poller.now() < deadline else { throw lost() }
            // libpq may have left input, of which no further notification comes.
            guard isBusy, !hasInput else { continue }
            arm(deadline)
            await Poller.shared.park(slot, .read, .never)
        }
        let library = library
        let taken = state.withLock { state -> Result<PostgresResult, PostgresFailure>?? in
            guard let handle = state.handle else { return .some(nil) }
            return LibraryCalls.perform { () -> Result<PostgresResult, PostgresFailure>? in
                guard let result = library.result(handle) else { return nil }
                defer { library.clear(result) }
                return Self.read(result, library)
            }
        }
        // The process is exiting: whether the statement was carried out is not known.
        guard let taken else { throw lost() }
        return taken
    }

    /// Ends a wait at its deadline, or before: the waits check their deadlines. One timer serves many statements.
    private func arm(_ deadline: Int64) {
        let isNew = state.withLock { state in
            guard state.timer <= Poller.now() || state.timer > deadline else { return false }
            state.timer = deadline
            return true
        }
        if isNew { Poller.shared.schedule(slot, at: deadline) }
    }

    private var isBusy: Bool {
        let library = library
        return state.withLock { state in
            state.handle.map { handle in LibraryCalls.perform { library.isBusy(handle) == 1 } ?? true } ?? false
        }
    }

    /// Whether there is input that libpq has not read: in the socket, or decrypted above it. libpq reads at most as
    /// much at once as it has room for, which may be less than a record of TLS.
    private var hasInput: Bool {
        let library = library
        let isDecrypted = state.withLock { state in
            guard let handle = state.handle, let secure = library.secure, let pending = library.pending else {
                return false
            }
            return LibraryCalls.perform { secure(handle, "OpenSSL").map { pending($0) > 0 } ?? false } ?? false
        }
        if isDecrypted { return true }
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&request, 1, 0) > 0
    }

    /// Reads what has arrived.
    /// - Returns: false if the connection has ended.
    private func consumeInput() -> Bool {
        let library = library
        return state.withLock { state in
            guard let handle = state.handle else { return false }
            let isOpen = LibraryCalls.perform { library.consumeInput(handle) == 1 } ?? false
            while isOpen, let address = library.notification(handle) {
                let found = address.load(as: PostgresLibrary.Notification.self)
                state.notifications.append(
                    Notification(
                        channel: found.channel.map { String(cString: $0) } ?? "",
                        payload: found.payload.map { String(cString: $0) } ?? ""))
                library.release(address)
            }
            return isOpen
        }
    }

    private static func read(_ result: PostgresLibrary.Handle, _ library: PostgresLibrary)
        -> Result<PostgresResult, PostgresFailure>
    {
        // PGRES_COMMAND_OK is 1, PGRES_TUPLES_OK is 2, and 0 is an empty statement.
        guard (0...2).contains(library.resultStatus(result)) else {
            func field(_ code: UInt8) -> String {
                library.errorField(result, Int32(code)).map { String(cString: $0) } ?? ""
            }
            let (code, words) = (field(UInt8(ascii: "C")), field(UInt8(ascii: "M")))
            // A server that is shutting down (57P01, 57P02, 57P03) ends the connection; libpq itself gives no code.
            let kind: PostgresFailure.Kind = code.isEmpty || code.hasPrefix("57P") ? .disconnected : .refused
            return .failure(PostgresFailure(kind, code: code, words.isEmpty ? "the connection was lost" : words))
        }
        var found = PostgresResult()
        for row in 0..<library.rows(result) {
            let values = (0..<library.columns(result)).map { column -> [UInt8]? in
                guard library.isNull(result, row, column) == 0, let start = library.value(result, row, column) else {
                    return nil
                }
                return Array(UnsafeBufferPointer(start: start, count: Int(library.length(result, row, column))))
            }
            found.rows.append(PostgresRow(values: values))
        }
        found.changed = library.changedRows(result).flatMap { Int(String(cString: $0)) } ?? 0
        return .success(found)
    }

    /// Closes the connection, which did not do what it should.
    private func lost() -> PostgresFailure {
        let library = library
        let words = state.withLock { state in
            guard let handle = state.handle.take() else { return "the connection was closed" }
            return LibraryCalls.perform {
                defer { library.close(handle) }
                return library.message(handle).map { String(cString: $0) } ?? ""
            } ?? ""
        }
        return PostgresFailure(.disconnected, words.isEmpty ? "the server does not answer" : words)
    }

    // MARK: Notifications

    /// Waits until notifications arrive, the connection ends, or ``wake()`` is called.
    /// - Parameter deadline: a moment of the poller's clock at which the wait ends.
    /// - Returns: the notifications; those that arrived with results, too.
    package func notifications(until deadline: Int64) async throws(PostgresFailure) -> [Notification] {
        _ = slot.beginRead()
        guard consumeInput() else { throw lost() }
        let ready = takeNotifications()
        guard ready.isEmpty, Poller.now() < deadline, !hasInput else { return ready }
        arm(deadline)
        await Poller.shared.park(slot, .read, .never)
        _ = slot.beginRead()
        guard consumeInput() else { throw lost() }
        return takeNotifications()
    }

    private func takeNotifications() -> [Notification] {
        state.withLock { state in
            defer { state.notifications = [] }
            return state.notifications
        }
    }

    /// Ends a wait for notifications. From any task.
    package func wake() { slot.wake() }
}
