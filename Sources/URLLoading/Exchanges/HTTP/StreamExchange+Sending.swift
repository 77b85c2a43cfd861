// SPDX-License-Identifier: Apache-2.0

// Sending the body of a request. The connection buffers a few frames of it, and gets more as the peer's flow control
// allows. The task that waits for the response drives it.

import URLLoadingIO
import URLLoadingWire

struct StreamSending {
    var body: OutgoingBodyReader?
    /// The length of the whole body in bytes; nil if it is not known.
    var length: Int64?
    /// The number of bytes that the connection buffers and has not written.
    var queued = 0
    var hasContinue = false
    /// The connection has the end of the body, and may not have written it.
    var isEnding = false
    /// True if the last byte has been written, or no more will be.
    var hasEnded = false

    enum Step {
        case idle
        case waitsForPiece
        /// The next bytes must be read from a file.
        case wantsFile(FileReader, Int64, Int)
    }
    static let filePiece = 64 * 1024
}

extension StreamExchange {
    final var isSending: Bool { !sending.hasEnded && (sending.body != nil || sending.isEnding) }

    final func continueSending() async throws(LoadError) {
        if owner.isSuspended { await owner.handle.untilResumed() }
        try checkStop(phase)
        _ = takeEvents()
        guard isSending, !hasFailed else { return cut() }
        switch try pump() {
        case .wantsFile(let reader, let offset, let count): try await fetch(reader, offset, count)
        case .waitsForPiece:
            await connection.wait(for: stream, owner.handle, until: .max, countsIdle: false, endsOnWake: true)
        case .idle: await connection.wait(for: stream, owner.handle, until: .max, countsIdle: true, endsOnWake: true)
        }
    }

    /// Stops sending the body. If it was incomplete, the stream ends with the exchange.
    final func cut() {
        sending.body?.abandon()
        (sending.body, sending.hasEnded) = (nil, true)
    }

    /// Hands the connection as many bytes as its buffer has space for.
    final func pump() throws(LoadError) -> StreamSending.Step {
        var hasQueued = false
        defer { if hasQueued { connection.flushIfNeeded() } }
        while let body = sending.body {
            let room = connection.room(on: stream, queued: sending.queued)
            if room == 0, !body.isAtEnd { break }
            switch try body.nextPart() {
            case .bytes(let available):
                let count = min(room, available)
                body.withBytes { connection.send(UnsafeRawBufferPointer(rebasing: $0[..<count]), on: stream) }
                body.advance(count)
                sending.queued += count
                hasQueued = true
            case .file(let reader, let offset, let left):
                let wanted = Int(min(left, Int64(StreamSending.filePiece)))
                guard try body.loadNow(reader, offset, count: wanted)
                else { return .wantsFile(reader, offset, wanted) }
            case .pending: return .waitsForPiece
            case .end(let trailers):
                (sending.body, sending.isEnding) = (nil, true)
                hasQueued = true
                do throws(WireViolation) { try connection.endSending(on: stream, trailers) } catch {
                    throw LoadError(error, .sending)
                }
            }
        }
        return .idle
    }

    /// Reads the next bytes of a file into memory.
    final func fetch(_ reader: FileReader, _ offset: Int64, _ count: Int) async throws(LoadError) {
        let chunk = try await OutgoingBodyReader.read(reader, offset, count: count, for: owner.handle)
        try sending.body?.loaded(chunk)
    }
}
