// SPDX-License-Identifier: Apache-2.0

// In this folder: byte streams over TCP and TLS

public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// A bidirectional byte stream: raw TCP, with TLS from the beginning or from a later moment.
///
/// Get one from ``Session/streamTask(host:port:secure:)``. It uses the session's resolver, TLS settings and timeouts,
/// and ends with its session. ``Configuration/Connections/maximumPerHost`` does not count it.
///
/// ```swift
/// let task = session.streamTask(host: "example.org", port: 7)
/// task.resume()
/// try await task.write(Data("hello".utf8))
/// let (answer, isEnd) = try await task.read(atLeast: 5, atMost: 5)
/// ```
/// One task may read while another writes. A second reader, or a second writer, gets ``LoadError/Reason/streamBusy`` at
/// once. A call before ``resume()``, or while the stream connects, waits for the connection. The stream reads from the
/// socket only what a caller asked for.
///
/// The stream ends when both directions are done, when the connection fails, with ``cancel()``, with its timeouts or
/// its session, and when the handle, its ``input`` and its ``output`` are all released. The peer's direction is done
/// when its end was read or after ``closeRead()``, the local one after ``closeWrite()``. Cancelling a task that reads
/// or writes ends that call with ``LoadError/Reason/cancelled``; the stream continues.
///
/// The idle timeout runs while a read or a write waits, and restarts whenever bytes move in either direction.
public final class StreamTask: Sendable, CustomStringConvertible {
    let load: StreamDriver
    /// The session. A task that was not resumed yet keeps its session alive through this reference.
    private let owner: (any Sendable)?

    init(_ load: StreamDriver, _ owner: (any Sendable)?) {
        self.load = load
        self.owner = owner
    }

    /// Creates a stream over the connection of a load, which ends.
    convenience init(adopting connection: SurrenderedConnection, inPlaceOf load: LoadContext) {
        let driver = StreamDriver(
            load.core, connection.origin, isSecure: connection.origin.isSecure, adopting: connection, inPlaceOf: load)
        self.init(driver, nil)
    }

    deinit { load.stop(.cancelled) }

    // MARK: Controls

    /// Starts to connect, or resumes the stream. Resuming a running or completed stream does nothing.
    public func resume() { load.resume() }

    /// Sets the decisions about the stream's peer, which apply where the session has none. Call it before the stream
    /// begins, from the thread that is about to begin it.
    package func decide(by decisions: Decisions) { load.decide(by: decisions) }

    /// Waits until the stream is connected and not suspended. Counts as a writer. Throws if the stream has ended, but
    /// not if only its output has.
    @concurrent
    package func connected() async throws(LoadError) {
        do throws(LoadError) { try await load.write(Data(), timeout: nil) } catch {
            let isOpen = load.state.withLock { $0.link != nil && $0.outcome == nil }
            guard isOpen else { throw error }
        }
    }

    /// The durations and byte counts of a stream that has ended; its one transaction is the connection.
    package var metrics: LoadMetrics { load.metrics }

    /// Suspends the stream: no byte of it is read or written, and the idle and connect timeouts stop; the resource
    /// timeout runs on. A connection attempt under way continues. One ``resume()`` undoes any number of these calls.
    public func suspend() { load.suspend() }

    /// Ends the stream with ``LoadError/Reason/cancelled``, whether or not it was resumed. Bytes that were written and
    /// have not arrived may be lost. Returns at once; ``ended()`` waits for the end.
    public func cancel() { load.stop(.cancelled) }

    /// Returns when the stream has ended and its socket is closed.
    ///
    /// ```swift
    /// try await task.closeWrite()
    /// for try await chunk in task.input { … }
    /// if let error = await task.ended() { print(error) }
    /// ```
    /// Cancelling the calling task does not shorten the wait: cancel the stream.
    /// - Returns: the error that ended the stream; `nil` if both directions were closed in order.
    public func ended() async -> LoadError? { await load.ended() }

    /// The state and the bytes written and read at this moment. The expected byte counts are always `nil`.
    public var snapshot: LoadSnapshot { LoadSnapshot(load) }

    /// The stream on one line: `stream running 5/? tcp://example.org:7`.
    public var description: String { "stream \(snapshot) \(load.url?.withoutSecrets ?? "nowhere")" }

    // MARK: Reading

    /// Reads bytes in order. Bytes that a failed call has received are returned by the next one.
    ///
    /// ```swift
    /// let (head, _) = try await task.read(atLeast: 4, atMost: 4, timeout: .seconds(5))
    /// ```
    /// - Parameters:
    ///   - least: the number of bytes to wait for, or the end; at least 0. With 0 the call does not wait.
    ///   - most: the maximum number of bytes to read, also from the socket; at least 1. A value below `least` counts as
    ///     `least`.
    ///   - limit: the timeout of the call, the wait for the connection included; more than zero, `nil` for no timeout
    ///     beyond those of the session. After ``LoadError/Reason/streamCallTimeout`` the stream continues.
    /// - Returns: the bytes, and whether the peer has sent all and these are the last. Fewer than `least` bytes are
    ///   returned only at the end; after it, none.
    /// - Throws: ``LoadError``: ``LoadError/Reason/streamBusy`` if another task reads,
    ///   ``LoadError/Reason/streamClosed`` after ``closeRead()``, ``LoadError/Reason/truncated`` if the connection ends
    ///   without a TLS close_notify, or the failure of the connection. Cancelling the calling task ends the call with
    ///   ``LoadError/Reason/cancelled``.
    @concurrent
    public func read(
        atLeast least: Int = 1, atMost most: Int = 64 * 1024, timeout limit: Duration? = nil
    ) async throws(LoadError) -> (Data, isEnd: Bool) {
        try await load.read(atLeast: least, atMost: most, timeout: limit)
    }

    /// Closes the reading side. A read in progress ends with ``LoadError/Reason/streamClosed``, and so do all later
    /// ones. The peer is not notified: bytes that it still sends stay unread, so the end of the stream resets the
    /// connection, and the peer may lose bytes of this side that it had not read yet.
    public func closeRead() { load.closeRead() }

    // MARK: Writing

    /// Writes bytes. Returns when the system has taken them all, which does not mean that the peer has received them.
    ///
    /// ```swift
    /// try await task.write(Data("EHLO example.org\r\n".utf8), timeout: .seconds(5))
    /// ```
    /// - Parameters:
    ///   - bytes: `Data`, `[UInt8]`, a ``Chunk`` or another buffer.
    ///   - limit: the timeout of the call, the wait for the connection included; more than zero, `nil` for no timeout
    ///     beyond those of the session.
    /// - Throws: ``LoadError``: ``LoadError/Reason/streamBusy`` if another task writes,
    ///   ``LoadError/Reason/streamClosed`` after ``closeWrite()``, ``LoadError/Reason/streamCallTimeout``, or the
    ///   failure of the connection. Cancelling the calling task ends the call with ``LoadError/Reason/cancelled``. If a
    ///   part of the bytes was sent by then, later writes get ``LoadError/Reason/writeIncomplete``. Reading continues
    ///   in any case.
    @concurrent
    public func write<Bytes: ContiguousBytes & Sendable>(
        _ bytes: Bytes, timeout limit: Duration? = nil
    ) async throws(LoadError) {
        try await load.write(bytes, timeout: limit)
    }

    /// Closes the writing side: sends FIN, or close_notify under TLS, after everything that was written. The reading
    /// side stays open. A second call does nothing.
    ///
    /// Peers that speak TLS 1.2 may take it for the end of both directions (RFC 5246 §7.2.1).
    /// - Throws: ``LoadError``, as ``write(_:timeout:)``; it waits only for a socket that is full.
    @concurrent
    public func closeWrite() async throws(LoadError) { try await load.closeWrite() }

    // MARK: Security

    /// Starts TLS on the same connection, with the session's settings. The certificate must name the host of the
    /// stream. On a stream that is already secure it does nothing.
    ///
    /// ```swift
    /// try await task.write(Data("STARTTLS\r\n".utf8))
    /// let (answer, _) = try await task.read(atLeast: 20, atMost: 20)   // "220 ready for TLS\r\n" and no more
    /// try await task.startSecureConnection()
    /// ```
    /// Read the whole plaintext answer before, and nothing beyond it: received bytes that are unread at this moment end
    /// the stream with ``LoadError/Reason/unexpectedPlaintext``, because a machine-in-the-middle could have injected
    /// them. A caller that has itself read bytes beyond the answer must refuse them.
    /// - Throws: ``LoadError``: ``LoadError/Reason/streamBusy`` if another task reads or writes, or the failure of the
    ///   handshake. Every failure after the handshake has begun ends the stream, cancelling the calling task included.
    @concurrent
    public func startSecureConnection() async throws(LoadError) { try await load.secure() }

    /// True if the stream uses TLS.
    public var isSecure: Bool { load.state.withLock { $0.link?.isSecure ?? false } }
}

extension LoadSnapshot {
    fileprivate init(_ stream: StreamDriver) {
        let isStopped = stream.stopReason != nil
        let (state, priority) = stream.state.withLock { ($0.shown(isStopped: isStopped), $0.priority) }
        let counts = LoadCounts(
            sent: stream.sentCount.load(ordering: .relaxed), received: stream.receivedCount.load(ordering: .relaxed))
        self.init(state, counts, priority?.rawValue)
    }
}

extension StreamState {
    fileprivate func shown(isStopped: Bool) -> LoadSnapshot.State {
        switch outcome {
        case .finished? where isOver: .completed(nil)
        case .failed(let error)? where isOver: .completed(error)
        case .some: .canceling
        case nil: isStopped ? .canceling : isSuspended ? .suspended : .running
        }
    }
}
