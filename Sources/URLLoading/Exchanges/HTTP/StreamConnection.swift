// SPDX-License-Identifier: Apache-2.0

// What a connection with streams does for the exchanges on it, be it one of HTTP/2 or of HTTP/3.

import Synchronization
import URLLoadingIO
import URLLoadingWire

protocol StreamConnection: AnyObject, Sendable {
    associatedtype Stream: ConnectionStream

    static var version: HTTPVersion { get }
    var places: HTTP2StreamSlots { get }
    var identifier: Int { get }
    var tap: (@Sendable (WireTapEvent) -> Void)? { get }
    var expectContinueTimeout: Duration { get }
    /// Whether the connection takes no more streams.
    var isRetired: Bool { get }
    /// Whether the peer has responded to any request.
    var hasResponded: Bool { get }
    /// The channel binding `tls-server-end-point` (RFC 5929 §4.1).
    var endPointBinding: [UInt8]? { get }

    func makeStream(hasBody: Bool) -> Stream
    /// Begins a stream in a slot that the caller has taken. Returns false if the peer permits no more streams now: the
    /// caller waits for an event of the stream, and tries again.
    func begin(_ request: HTTP2Request, _ stream: Stream, hasBody: Bool) throws(LoadError) -> Bool
    /// Takes what has arrived for a stream since the last call.
    /// - Parameters:
    ///   - used: the bytes that the reader has consumed; the peer may send as many more.
    ///   - readsBody: whether the caller waits for the body if nothing has arrived.
    func take(_ stream: Stream, used: Int, readsBody: Bool) -> HTTP2Inbox
    /// Waits for an event of a stream, or until the load must act: it was stopped or suspended, or `deadline` has
    /// passed.
    /// - Parameters:
    ///   - countsIdle: whether the wait is for the peer, and limited by the idle timeout.
    ///   - endsOnWake: whether the wait ends whenever the load's slot is woken.
    func wait(
        for stream: Stream, _ control: LoadHandle, until deadline: Int64, countsIdle: Bool, endsOnWake: Bool) async
    /// Wakes the task of a stream that waits, at a time.
    func wake(_ stream: Stream, at deadline: Int64)
    /// Wakes a stream's task after an event outside of the connection.
    func wake(_ stream: Stream)

    /// Returns how many bytes of a request's body the connection takes now.
    /// - Parameter queued: the bytes that it has taken and not written.
    func room(on stream: Stream, queued: Int) -> Int
    /// Appends to a request's body.
    func send(_ bytes: UnsafeRawBufferPointer, on stream: Stream)
    func endSending(on stream: Stream, _ trailers: Headers) throws(WireViolation)
    /// Writes what was appended, or makes sure that another task does so soon.
    func flushIfNeeded()

    /// Whether it is known if the peer supports tunnels (RFC 8441 §3). If not, that will be an event of the stream.
    func knowsSettings(_ stream: Stream) -> Bool
    /// The stream as the events of a load pass it on.
    func prioritized(_ stream: Stream) -> PrioritizedStream
    /// Releases a stream. One that has not ended is reset.
    func end(_ stream: Stream)
    /// Gives the slot of a stream that was released back to the pool.
    func leave(_ pool: ConnectionPool)
}

/// A stream as its exchange uses it.
protocol ConnectionStream: AnyObject, Sendable {
    associatedtype Number: BinaryInteger
    /// The slot in which the stream's task waits.
    var slot: PollSlot { get }
    var urgency: Int { get }
    var number: Number { get }
    /// Whether the request was passed to the codec.
    var hasBegun: Bool { get }
}

extension HTTP2Connection: StreamConnection {
    static var version: HTTPVersion { .http2 }
    var endPointBinding: [UInt8]? { (transport as? TLSTransport)?.endPointBinding }

    func makeStream(hasBody: Bool) -> HTTP2Stream {
        let slot = Poller.shared.borrowSlot()
        slot.share(transport.slot)
        return HTTP2Stream(slot: slot, urgency: Task.currentPriority.urgency, window: newWindow, hasBody: hasBody)
    }

    func wake(_ stream: HTTP2Stream, at deadline: Int64) {
        clock.schedule(stream.slot, at: deadline)
        // The stream's task may be the one that reads.
        clock.schedule(transport.slot, at: deadline)
    }

    func room(on stream: HTTP2Stream, queued: Int) -> Int { max(0, Self.mostQueued - queued) }
    private static var mostQueued: Int { 128 * 1024 }

    func prioritized(_ stream: HTTP2Stream) -> PrioritizedStream { .http2(stream, self) }
    func leave(_ pool: ConnectionPool) { pool.leave(self) }
}

extension HTTP2Stream: ConnectionStream {
    var hasBegun: Bool { number != 0 }
}

#if HTTP3

extension HTTP3Connection: StreamConnection {
    static var version: HTTPVersion { .http3 }
    var endPointBinding: [UInt8]? { peer?.endPointBinding }

    func makeStream(hasBody: Bool) -> HTTP3Stream {
        HTTP3Stream(slot: Poller.shared.borrowSlot(), urgency: Task.currentPriority.urgency, hasBody: hasBody)
    }

    func wake(_ stream: HTTP3Stream, at deadline: Int64) { clock.schedule(stream.slot, at: deadline) }
    /// The connection counts for itself, because what it has written must also be acknowledged.
    func room(on stream: HTTP3Stream, queued: Int) -> Int { state.withLock { $0.room(on: stream) } }
    /// A WebSocket is never sent over HTTP/3.
    func knowsSettings(_ stream: HTTP3Stream) -> Bool { true }
    func prioritized(_ stream: HTTP3Stream) -> PrioritizedStream { .http3(stream, self) }
    func leave(_ pool: ConnectionPool) { pool.http3.leave(self) }
}

extension HTTP3Stream: ConnectionStream {
    var hasBegun: Bool { number >= 0 }
}

#endif
