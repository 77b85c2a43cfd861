// SPDX-License-Identifier: Apache-2.0

// Sending the body of a request. The connection buffers a few frames of it, and gets more as the peer's flow-control
// window allows. The task that waits for the response drives it.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct HTTP2Sending {
    var body: OutgoingBodyReader?
    /// The length of the whole body in bytes; nil if it is not known.
    var length: Int64?
    /// The number of bytes that the connection buffers and has not written.
    var queued = 0
    var hasContinue = false
    /// True if the last byte has been written, or no more will be.
    var hasEnded = false
}

extension HTTP2Exchange {
    enum SendingStep {
        case idle
        case waitsForPiece
        /// The next bytes must be read from a file.
        case wantsFile(FileReader, Int64, Int)
    }

    private static let queueSize = 128 * 1024
    private static let filePiece = 64 * 1024

    var isSending: Bool { !sending.hasEnded && (sending.body != nil || sending.queued > 0) }

    func continueSending() async throws(LoadError) {
        if owner.isSuspended { await owner.handle.untilResumed() }
        if let reason = owner.stopReason { throw LoadError(reason, phase: phase) }
        _ = takeEvents()
        guard isSending, !hasFailed else { return cut() }
        switch try pump() {
        case .wantsFile(let reader, let offset, let count): try await fetch(reader, offset, count)
        case .waitsForPiece: await connection.wait(for: stream, owner.handle, countsIdle: false, endsOnWake: true)
        case .idle: await connection.wait(for: stream, owner.handle, endsOnWake: true)
        }
    }

    /// Stops sending the body. If it was incomplete, the stream ends with the exchange.
    func cut() {
        sending.body?.abandon()
        (sending.body, sending.hasEnded) = (nil, true)
    }

    /// Hands the connection as many bytes as its buffer has space for.
    func pump() throws(LoadError) -> SendingStep {
        var hasQueued = false
        defer { if hasQueued { connection.flushIfNeeded() } }
        while let body = sending.body, sending.queued < Self.queueSize || body.isAtEnd {
            switch try body.nextPart() {
            case .bytes(let available):
                let count = min(Self.queueSize - sending.queued, available)
                body.withBytes {
                    _ = connection.send(UnsafeRawBufferPointer(rebasing: $0[..<count]), on: stream)
                }
                body.advance(count)
                sending.queued += count
                hasQueued = true
            case .file(let reader, let offset, let left):
                let wanted = Int(min(left, Int64(Self.filePiece)))
                guard try body.loadNow(reader, offset, count: wanted)
                else { return .wantsFile(reader, offset, wanted) }
            case .pending: return .waitsForPiece
            case .end(let trailers):
                sending.body = nil
                hasQueued = true
                do throws(WireViolation) { try connection.endSending(on: stream, trailers) } catch {
                    throw LoadError(error, .sending)
                }
            }
        }
        return .idle
    }

    /// Reads the next bytes of a file into memory.
    func fetch(_ reader: FileReader, _ offset: Int64, _ count: Int) async throws(LoadError) {
        let chunk = try await OutgoingBodyReader.read(reader, offset, count: count, for: owner.handle)
        try sending.body?.loaded(chunk)
    }
}
