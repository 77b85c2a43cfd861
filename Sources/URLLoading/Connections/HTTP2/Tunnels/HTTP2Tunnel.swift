// SPDX-License-Identifier: Apache-2.0

// In this folder: a stream of an HTTP/2 connection as a byte stream, for WebSockets

// A stream of a shared connection as a byte stream in both directions: DATA frames carry the bytes, the window acts as
// the socket buffer, END_STREAM is an orderly end, and RST_STREAM a reset (RFC 8441 §5).

import Synchronization
import URLLoadingIO

/// Used by one reading and one writing task, as any transport.
final class HTTP2Tunnel: Transport, @unchecked Sendable {
    // Unchecked: the variables belong to the reading task.
    let slot: PollSlot
    private let connection: HTTP2Connection
    private let stream: HTTP2Stream
    private let pool: ConnectionPool
    private let isClosed = Atomic<Bool>(false)

    // Used by the reading task.
    private var chunks: ChunkQueue
    /// The chunk that is being read, and the bytes taken of it.
    private var current: Chunk?
    private var taken = 0
    /// The consumed bytes that the window has not been extended by yet.
    private var used = 0
    private var hasEnded: Bool
    /// The failure after which nothing more arrives; nil for an orderly end.
    private(set) var failure: HTTP2Failure?

    /// The limit of bytes queued in the connection for the peer.
    private static let queueSize = 128 * 1024

    init(
        _ connection: HTTP2Connection, _ stream: HTTP2Stream, _ pool: ConnectionPool, received: ChunkQueue,
        hasEnded: Bool, failure: HTTP2Failure?
    ) {
        slot = stream.slot
        (self.connection, self.stream, self.pool) = (connection, stream, pool)
        (chunks, self.hasEnded, self.failure) = (received, hasEnded, failure)
        connection.beginTunnel(stream)
    }

    deinit { close() }

    // MARK: Bytes

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress {
        var count = 0
        while count < buffer.count {
            if current == nil, chunks.isEmpty { take() }
            guard let chunk = current ?? chunks.popFirst() else { break }
            count += copy(chunk, to: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
        }
        if count > 0 { return .moved(count) }
        if hasEnded { return .end }
        guard failure == nil else { throw IOFailure(.closedByPeer, .read) }
        return .blocked(.read)
    }

    private func take() {
        guard !hasEnded, failure == nil else { return }
        let inbox = connection.take(stream, used: used, readsBody: true)
        used = 0
        chunks = inbox.chunks
        hasEnded = inbox.trailers != nil
        failure = inbox.failure
    }

    private func copy(_ chunk: Chunk, to room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(room.count, chunk.count - taken)
        let start = chunk.range.lowerBound + taken
        room.copyMemory(from: chunk.storage.bytes(start..<start + count))
        taken += count
        used += count
        (current, taken) = taken == chunk.count ? (nil, 0) : (chunk, taken)
        return count
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress {
        let view = connection.view(stream)
        guard view.failure == nil else { throw IOFailure(.closedByPeer, .write) }
        let count = min(bytes.count, Self.queueSize - view.queued)
        guard count > 0 else {
            connection.flushIfNeeded()
            return .blocked(.write)
        }
        connection.send(UnsafeRawBufferPointer(rebasing: bytes[..<count]), on: stream)
        connection.flushIfNeeded()
        return .moved(count)
    }

    func hasPendingInput(askingKernel: Bool) -> Bool {
        current != nil || !chunks.isEmpty || connection.view(stream).hasUnseenEvents
    }

    // MARK: The end

    /// Whether bytes still wait for the writer, or for the peer's window.
    var holdsUnsent: Bool {
        let view = connection.view(stream)
        return view.failure == nil && view.queued > 0
    }

    func finishWriting() {}

    func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        connection.endTunnel(stream)
        Poller.shared.returnSlot(slot)
        pool.leave(connection)
    }

    var remoteAddress: SocketAddress? { connection.transport.remoteAddress }
    var localAddress: SocketAddress? { connection.transport.localAddress }
    var description: String { "h2(stream \(stream.number)) over \(connection.transport.description)" }
}
