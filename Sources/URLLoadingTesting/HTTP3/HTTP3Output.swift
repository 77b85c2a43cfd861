// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingWire

/// The bytes that a connection has to send, by stream, in turn. Used under the connection's lock.
final class HTTP3Output {
    private final class Stream {
        let queue = HTTP3SendQueue()
        /// Lent by the queue, and not yet in a packet.
        var offered = UnsafeRawBufferPointer(start: nil, count: 0)
        var isEnding = false
        var hasEnded = false
        var isBlocked = false
        var isStopped = false
        var hasMore: Bool {
            !isBlocked && !isStopped && (!offered.isEmpty || queue.queued > 0 || isEnding && !hasEnded)
        }
    }

    // Bytes stay until their stream is over for QUIC, because retransmissions need them.
    private var streams: [Int64: Stream] = [:]
    private var order: [Int64] = []

    func open(_ stream: Int64) {
        guard streams.updateValue(Stream(), forKey: stream) == nil else { return }
        order.append(stream)
    }

    /// Forgets a stream of which QUIC needs no bytes any more.
    func forget(_ stream: Int64) {
        guard streams.removeValue(forKey: stream) != nil else { return }
        order.removeAll { $0 == stream }
    }

    /// Whether bytes can be sent on a stream: it is open, and has neither ended nor been stopped.
    func takes(_ stream: Int64) -> Bool { streams[stream].map { !$0.isStopped && !$0.isEnding } ?? false }

    func append(_ bytes: [UInt8], endStream: Bool, to stream: Int64) {
        guard takes(stream), let stream = streams[stream] else { return }
        bytes.withUnsafeBytes { stream.queue.append($0) }
        stream.isEnding = endStream
    }

    /// Gives up what was not sent on a stream.
    func stop(_ stream: Int64) { streams[stream]?.isStopped = true }

    func acknowledged(_ count: Int, on stream: Int64) { streams[stream]?.queue.release(count) }

    /// The bytes of a stream that the client has not acknowledged.
    func held(on stream: Int64) -> Int { streams[stream]?.queue.held ?? 0 }
    /// Whether the client has acknowledged all.
    var isDrained: Bool { streams.values.allSatisfy { $0.isStopped || $0.queue.held == 0 && !$0.hasMore } }

    /// The streams with bytes that were not sent.
    var waiting: [Int64] { streams.filter { !$0.value.isStopped && $0.value.queue.held > 0 }.map(\.key) }

    /// Tries streams again that the client's windows have held back.
    func unblock() { for stream in streams.values { stream.isBlocked = false } }

    private static let atOnce = 16 * 1024
}

extension HTTP3Output: QUICStreamSource {
    func nextOutput(_ pieces: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> QUICStreamOutput? {
        guard let index = order.firstIndex(where: { streams[$0]?.hasMore == true }), let stream = streams[order[index]]
        else { return nil }
        let number = order.remove(at: index)
        order.append(number)
        if stream.offered.isEmpty, let next = stream.queue.lend(Self.atOnce) { stream.offered = next }
        let isEnd = stream.isEnding && stream.queue.queued == 0
        guard !stream.offered.isEmpty else { return QUICStreamOutput(stream: number, pieces: 0, isEnd: isEnd) }
        pieces.initializeElement(at: 0, to: stream.offered)
        return QUICStreamOutput(stream: number, pieces: 1, isEnd: isEnd)
    }

    func took(_ count: Int, on stream: Int64) {
        guard let stream = streams[stream] else { return }
        stream.offered = UnsafeRawBufferPointer(rebasing: stream.offered.dropFirst(count))
        if stream.isEnding, stream.offered.isEmpty, stream.queue.queued == 0 { stream.hasEnded = true }
    }

    func isBlocked(_ stream: Int64) { streams[stream]?.isBlocked = true }
    func isStopped(_ stream: Int64) { stop(stream) }
}

#endif
