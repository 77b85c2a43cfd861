// The body of a request: as much of it lies with the connection as makes a few frames, and more is fetched when the
// peer has taken that. The task that waits for the answer does it.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct HTTP2Sending {
    var body: OutgoingBody?
    /// Bytes that the body will have; `nil` if that is not known.
    var length: Int64?
    var part = 0
    var partSent: Int64 = 0
    var pull: PiecePull?
    /// What the caller's sequence gave and the connection did not take yet.
    var piece: Chunk?
    var pieceSent = 0
    /// With the connection, and not gone out.
    var queued = 0
    /// For the check of a body that said how long it is.
    var total: Int64 = 0
    var mayGoOn = false
    /// The last byte has gone out, or none will.
    var hasEnded = false
}

extension HTTP2Exchange {
    enum SendingStep {
        case idle
        case waitsForPiece
        case wantsFile(FileReader, Int64, Int)
    }

    private static let queueSize = 128 * 1024
    private static let filePiece = 64 * 1024

    var isSending: Bool { !sending.hasEnded && (sending.body != nil || sending.queued > 0) }

    func sendOn() async throws(LoadError) {
        if owner.isSuspended { await owner.untilResumed() }
        if let reason = owner.stopReason { throw LoadError(reason, phase: phase) }
        _ = takeNews()
        guard isSending, !hasFailed else { return cut() }
        switch try pump() {
        case .wantsFile(let reader, let offset, let count): try await fetch(reader, offset, count)
        case .waitsForPiece: await connection.wait(for: stream, owner, countsIdle: false, hearsWake: true)
        case .idle: await connection.wait(for: stream, owner, hearsWake: true)
        }
    }

    /// Nothing more of the request is fetched. If that was not all, the stream ends with the exchange.
    func cut() {
        sending.pull?.abandon()
        (sending.body, sending.pull, sending.piece, sending.hasEnded) = (nil, nil, nil, true)
    }

    /// Gives the connection what it has room for.
    func pump() throws(LoadError) -> SendingStep {
        var hasGiven = false
        defer { if hasGiven { connection.nudge() } }
        while let body = sending.body, sending.queued < Self.queueSize {
            if let piece = sending.piece {
                let count = min(Self.queueSize - sending.queued, piece.count - sending.pieceSent)
                let start = piece.range.lowerBound + sending.pieceSent
                give(piece.storage.bytes(start..<start + count))
                hasGiven = true
                sending.pieceSent += count
                if sending.pieceSent == piece.count { sending.piece = nil }
                continue
            }
            hasGiven = true
            switch body {
            case .data(let data):
                if giveData(data) { try end() }
            case .parts(let parts):
                guard sending.part < parts.count else {
                    try end()
                    continue
                }
                switch parts[sending.part] {
                case .data(let data):
                    if giveData(data) { nextPart() }
                case .file(let reader, let range):
                    if let step = try giveFile(reader, range) { return step }
                }
            case .stream(let length, let trailers, let pieces):
                let pull = sending.pull ?? PiecePull(pieces, owner) { [connection, stream] in connection.poke(stream) }
                sending.pull = pull
                guard let pulled = pull.take() else { return .waitsForPiece }
                sending.pull = nil
                try take(pulled, length, trailers)
            }
        }
        return .idle
    }

    private func give(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        sending.queued += bytes.count
        _ = connection.send(bytes, on: stream)
    }

    /// Returns true at its end.
    private func giveData(_ data: Data) -> Bool {
        let start = Int(sending.partSent)
        let count = min(data.count - start, Self.queueSize - sending.queued)
        data.withUnsafeBytes { give(UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
        sending.partSent += Int64(count)
        return start + count == data.count
    }

    private func nextPart() { (sending.part, sending.partSent) = (sending.part + 1, 0) }

    private func giveFile(_ reader: FileReader, _ range: Range<Int64>) throws(LoadError) -> SendingStep? {
        let offset = range.lowerBound + sending.partSent
        guard offset < range.upperBound else {
            nextPart()
            return nil
        }
        let left = range.upperBound - offset
        let wanted = Int(min(left, Int64(Self.filePiece)))
        let storage = ChunkStorage(capacity: wanted)
        let read: Int?
        do throws(IOFailure) { read = try reader.readNow(into: storage.room(from: 0), at: offset) } catch { throw LoadError(file: error, .sending) }
        guard let read else { return .wantsFile(reader, offset, wanted) }
        try takeFile(storage, read, left)
        return nil
    }

    /// Bytes that are not in memory.
    func fetch(_ reader: FileReader, _ offset: Int64, _ count: Int) async throws(LoadError) {
        let storage = ChunkStorage(capacity: count)
        // The thread keeps reader and storage alive, whoever waits for it or not.
        let read = await BlockingThreads.files.call(owner) { () -> Result<Int, IOFailure> in
            Result { () throws(IOFailure) in try reader.read(into: storage.room(from: 0), at: offset) }
        }
        guard let read else { throw LoadError(owner.stopReason ?? .cancelled, phase: .sending) }
        let got: Int
        do { got = try read.get() } catch { throw LoadError(file: error, .sending) }
        try takeFile(storage, got, Int64(count))
    }

    private func takeFile(_ storage: ChunkStorage, _ count: Int, _ left: Int64) throws(LoadError) {
        guard count > 0 else { throw OutgoingBody.fileChanged(left) }
        sending.partSent += Int64(count)
        (sending.piece, sending.pieceSent) = (Chunk(storage: storage, range: 0..<count), 0)
    }

    /// What the caller's sequence gave.
    private func take(
        _ pulled: Result<Chunk?, any Error>, _ length: Int64?, _ trailers: (@Sendable () -> Headers)?
    ) throws(LoadError) {
        if case .failure = pulled, let reason = owner.stopReason { throw LoadError(reason, phase: .sending) }
        let piece: Chunk?
        do { piece = try pulled.get() } catch {
            throw LoadError(.requestBodyFailed, phase: .sending, party: .local, underlying: error)
        }
        sending.total += Int64(piece?.count ?? 0)
        guard sending.total <= length ?? .max, piece != nil || sending.total == length ?? sending.total else {
            throw LoadError(WireViolation(.local, .bodyLengthMismatch, section: "RFC 9110 8.6"), .sending)
        }
        guard let piece else { return try end(length == nil ? trailers?() ?? Headers() : Headers()) }
        if piece.count > 0 { (sending.piece, sending.pieceSent) = (piece, 0) }
    }

    private func end(_ trailers: Headers = Headers()) throws(LoadError) {
        sending.body = nil
        do throws(WireViolation) { try connection.endSending(on: stream, trailers) } catch { throw LoadError(error, .sending) }
    }
}
