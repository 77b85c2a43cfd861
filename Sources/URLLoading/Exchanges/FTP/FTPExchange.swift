// SPDX-License-Identifier: Apache-2.0

// A body received over a data connection. Nothing is read ahead of the caller, so a slow reader slows the server. The
// body is complete when the data connection has ended and the server has confirmed the transfer on the control
// connection.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class FTPExchange: Exchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    let response: Response
    private let owner: LoadContext
    private let connection: FTPConnection
    /// `nil` for an empty body, and after its end.
    private var data: FTPData?
    private let record: TransactionRecord?
    private let bounds: Bounds
    private var text = TextLines()
    private var body = BodyPipeline()
    private var storage: ChunkStorage?
    private var received: Int64 = 0
    /// The data connection has ended.
    private var sawEnd = false
    /// The server has confirmed the transfer.
    private var isComplete = false
    private var isReleased = false

    /// The expected length of the body.
    struct Bounds {
        var length: Int64?
        /// The server's file is longer than the requested part; the rest is not read.
        var isCut: Bool
        var isText: Bool
    }

    private static let pieceSize = 256 * 1024

    init(
        _ response: Response, on connection: FTPConnection, _ data: FTPData?, _ bounds: Bounds, for load: LoadContext,
        _ record: TransactionRecord?
    ) {
        self.response = response
        self.connection = connection
        self.data = data
        owner = load
        self.record = record
        self.bounds = bounds
        isComplete = data == nil
        // A reply on the control connection ends the wait for data.
        if let data { connection.transport.slot.relay(to: data.socket.slot) }
    }

    deinit { release() }

    var load: LoadContext? { owner }
    var head: HTTPHead? { nil }
    var expectedLength: Int64? { response.expectedLength }
    var trailers: Headers { Headers() }
    /// The owner's mark of a login exists for http only.
    func marks(for query: CacheQuery) -> AnswerMarks { .unstorable }

    // MARK: The body

    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        try body.next(atMost: most, record) { isComplete ? .end : nil }
    }

    func fill(atMost most: Int) async throws(LoadError) {
        guard !body.hasPending, !isComplete else { return }
        while true {
            if owner.isSuspended {
                setUnread(true)
                await owner.handle.untilResumed()
                setUnread(false)
            }
            try await owner.handle.ensureRunning(.receiving)
            if sawEnd { return try await finish() }
            guard let data else { return }
            switch try read(data.transport, most) {
            case .moved: if body.hasPending { return }
            case .end: try end()
            case .blocked(let interest):
                try connection.listen()
                await Poller.shared.park(data.transport.slot, interest, owner.handle)
            }
        }
    }

    func fillNow() throws(LoadError) -> Bool {
        guard !body.hasPending, !isComplete, !sawEnd, !owner.isSuspended, owner.stopReason == nil, let data else {
            return false
        }
        switch try read(data.transport, .max) {
        case .moved: return body.hasPending
        case .end:
            try end()
            return false
        case .blocked: return false
        }
    }

    private func read(_ data: any Transport, _ most: Int) throws(LoadError) -> Progress {
        let rest = bounds.length.map { max(0, $0 - received) }
        // Asks for one byte more than expected, to detect a longer file, unless only a part is wanted. The length is
        // the server's, and may be the largest number.
        let room = min(Int64(Self.pieceSize), Int64(max(1, most)))
        let wanted = rest.map { $0 < room ? bounds.isCut ? $0 : $0 + 1 : room } ?? room
        guard wanted > 0 else { return .end }
        let size = Int(wanted)
        if !isKnownUniquelyReferenced(&storage) || storage?.capacity ?? 0 <= size {
            storage = ChunkStorage(capacity: max(size + 1, 16 * 1024))
        }
        guard let storage else { return .moved(0) }
        let progress: Progress
        // A CR may be left over from the previous piece.
        let start = bounds.isText ? 1 : 0
        do throws(IOFailure) {
            progress = try data.read(into: UnsafeMutableRawBufferPointer(rebasing: storage.room(from: start)[..<size]))
        } catch {
            // Many servers close without close_notify. If all bytes are here and the server confirms them, nothing can
            // be missing.
            if case .tls(let failure) = error.code, failure.kind == .truncated, rest == 0 { return .end }
            throw LoadError(error, .receiving)
        }
        guard case .moved(let count) = progress else { return progress }
        received += Int64(count)
        record?.traffic.receivedBody += Int64(count)
        if let length = bounds.length, received > length {
            throw LoadError(
                .fileChanged, phase: .receiving, party: .remote,
                detail: "longer than the announced \(length) bytes")
        }
        let kept = bounds.isText ? text.convert(storage.room(from: 0), 1..<count + 1) : count
        if kept > 0 { body.add(Chunk(storage: storage, range: 0..<kept)) }
        return progress
    }

    private func end() throws(LoadError) {
        sawEnd = true
        if let length = bounds.length, received < length {
            // An error reply of the server explains more than a missing byte count.
            try connection.listen()
            throw LoadError(
                .truncated, phase: .receiving, party: .remote, detail: "\(length - received) bytes are missing")
        }
        if bounds.isText, let rest = text.finish() { body.add(rest) }
        closeData()
    }

    private func finish() async throws(LoadError) {
        // After a part, the server's confirmation does not matter.
        if !bounds.isCut { try await connection.finish(owner) }
        isComplete = true
    }

    // MARK: The lease

    func setUnread(_ isUnread: Bool) {
        guard !isReleased, isUnread != self.isUnread else { return }
        self.isUnread = isUnread
        owner.core.pool.ftp.setUnread(isUnread, connection.route)
    }
    private var isUnread = false

    private func closeData() {
        guard let data else { return }
        connection.transport.slot.unrelay()
        owner.handle.detach(data.socket.slot)
        data.transport.close()
        self.data = nil
    }

    /// Ends the exchange. Ending a transfer in the middle closes both connections, because no server ends one reliably.
    func release() {
        guard !isReleased else { return }
        setUnread(false)
        isReleased = true
        closeData()
        body.end()
        owner.handle.detach(connection.transport.slot)
        if let record {
            record.traffic.receivedHead = connection.received
            (record.traffic.headSize, record.traffic.sent) = (
                Int(connection.sent), connection.sent + record.traffic.content
            )
            owner.events?.add(record)
        }
        let keepsConnection = isComplete && connection.isReusable
        owner.core.pool.ftp.giveBack(connection, reusable: keepsConnection)
        if keepsConnection { owner.core.pool.scheduleReaping() }
    }
}

/// Converts line ends from CR LF, as sent (RFC 959 §3.1.1.1), to LF.
struct TextLines {
    private var endsInCR = false

    /// Moves the bytes of a range, which begins at index 1 or later, to the front; returns how many remain.
    mutating func convert(_ bytes: UnsafeMutableRawBufferPointer, _ range: Range<Int>) -> Int {
        var kept = 0
        for index in range {
            let byte = bytes[index]
            if endsInCR, byte != UInt8(ascii: "\n") {
                bytes[kept] = UInt8(ascii: "\r")
                kept += 1
            }
            endsInCR = byte == UInt8(ascii: "\r")
            if !endsInCR {
                bytes[kept] = byte
                kept += 1
            }
        }
        return kept
    }

    mutating func finish() -> Chunk? {
        defer { endsInCR = false }
        return endsInCR ? [UInt8(ascii: "\r")].withUnsafeBytes { Chunk(copying: $0) } : nil
    }
}
