public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// A connection of bytes, both ways: raw TCP, with TLS from the beginning or from any moment on.
///
/// Get one from ``Session/streamTask(host:port:secure:)``. It uses the session's resolver, TLS settings
/// and timeouts, and ends with its session; it does not count among the connections that
/// ``Configuration/maximumConnectionsPerHost`` limits.
///
/// ```swift
/// let task = session.streamTask(host: "example.org", port: 7)
/// task.resume()
/// try await task.write(Data("hello".utf8))
/// let (answer, isEnd) = try await task.read(atLeast: 5, atMost: 5)
/// ```
/// One task may read while another writes. A second reader, or a second writer, gets
/// ``LoadError/Reason/streamBusy`` at once. Whoever calls before ``resume()``, or while the connection is
/// being made, waits for it. Nothing is read from the socket that nobody asked for.
///
/// The stream ends when both directions are done (the peer's is done when its end was read, or with
/// ``closeRead()``; ours with ``closeWrite()``), when the connection fails, with ``cancel()``, with its
/// timeouts or its session, and when nobody holds the handle, its ``input`` or its ``output`` any more.
/// Cancelling a task that reads or writes ends that call with ``LoadError/Reason/cancelled``, and not the
/// stream.
///
/// The idle timeout runs while a read or a write waits, and starts anew whenever bytes move in either
/// direction.
public final class StreamTask: Sendable, CustomStringConvertible {
    let load: StreamDriver
    /// Its session: the holder of a task that was not resumed yet keeps it alive.
    private let owner: (any Sendable)?

    init(_ load: StreamDriver, _ owner: (any Sendable)?) {
        self.load = load
        self.owner = owner
    }

    /// A stream over the connection of a load that ends with this.
    convenience init(adopting connection: SurrenderedConnection, inPlaceOf load: LoadContext) {
        let driver = StreamDriver(
            load.core, connection.origin, isSecure: connection.origin.isSecure, adopting: connection.transport,
            buffered: connection.received, inPlaceOf: load)
        self.init(driver, nil)
    }

    deinit { load.stop(.cancelled) }

    // MARK: Controls

    /// Begins to connect, or lets the stream go on. Resuming a running or completed stream does nothing.
    public func resume() { load.resume() }

    /// Who decides about its peer, where the session has nobody. Before it begins, by whoever is about to begin it.
    package func decide(by decisions: Decisions) { load.decide(by: decisions) }

    /// Waits until it is connected, and is not suspended. Throws if it has ended; not if it may only be read any more. Counts
    /// as a writer.
    @concurrent
    package func connected() async throws(LoadError) {
        do throws(LoadError) { try await load.write(Data(), timeout: nil) } catch {
            let goesOn = load.state.withLock { $0.link != nil && $0.outcome == nil }
            guard goesOn else { throw error }
        }
    }

    /// Time and bytes of a stream that has ended; its one transaction is the connection.
    package var metrics: LoadMetrics { load.metrics }

    /// Holds the stream up: from now on no byte is read or written, and the idle timeout stands still; the
    /// resource timeout does not. One ``resume()`` undoes any number of these.
    public func suspend() { load.suspend() }

    /// Ends the stream with ``LoadError/Reason/cancelled``, resumed or not. What was written and has not
    /// arrived may never. Returns at once; ``ended()`` waits.
    public func cancel() { load.stop(.cancelled) }

    /// Returns when the stream has ended and its socket is closed.
    ///
    /// ```swift
    /// try await task.closeWrite()
    /// for try await chunk in task.input { … }
    /// if let error = await task.ended() { print(error) }
    /// ```
    /// Cancelling the calling task does not shorten the wait: cancel the stream.
    /// - Returns: why it ended; `nil` if both directions came to their ends.
    public func ended() async -> LoadError? { await load.ended() }

    /// State, bytes written and read, of one moment. How many there will be, nobody knows.
    public var snapshot: LoadSnapshot { LoadSnapshot(load) }

    /// One line: `stream running 5/? tcp://example.org:7`.
    public var description: String { "stream \(snapshot) \(load.url?.withoutSecrets ?? "nowhere")" }

    // MARK: Reading

    /// Reads bytes. They come in order; what a call that failed has received is left to the next one.
    ///
    /// ```swift
    /// let (head, _) = try await task.read(atLeast: 4, atMost: 4, timeout: .seconds(5))
    /// ```
    /// - Parameters:
    ///   - least: waits for so many bytes, or the end; at least 0. With 0 it waits for nothing.
    ///   - most: reads no more, also from the socket; at least 1, and at least `least`: a smaller number
    ///     counts as that.
    ///   - limit: how long the call may take, the wait for the connection included; more than zero, `nil`
    ///     for as long as the timeouts of the session allow. After
    ///     ``LoadError/Reason/streamCallTimeout`` the stream goes on.
    /// - Returns: the bytes, and whether the peer has sent all and these are the last. Fewer than `least`
    ///   come only at the end; after it, none.
    /// - Throws: ``LoadError``: ``LoadError/Reason/streamBusy`` if another task reads,
    ///   ``LoadError/Reason/streamClosed`` after ``closeRead()``, ``LoadError/Reason/truncated`` if TLS ends
    ///   without saying so, why the connection was not made or was lost. Cancelling the calling task ends
    ///   the call with ``LoadError/Reason/cancelled``.
    @concurrent
    public func read(
        atLeast least: Int = 1, atMost most: Int = 64 * 1024, timeout limit: Duration? = nil
    ) async throws(LoadError) -> (Data, isEnd: Bool) {
        try await load.read(atLeast: least, atMost: most, timeout: limit)
    }

    /// Reads no more. A read that waits at this moment ends with ``LoadError/Reason/streamClosed``, as all
    /// later ones do. The peer is not told: if it goes on sending, its bytes stay where they are, and when
    /// the stream ends it gets a reset, which may cost it what it had not yet read of ours.
    public func closeRead() { load.closeRead() }

    // MARK: Writing

    /// Writes bytes. Returns when the system has taken them all, which does not say that the peer has.
    ///
    /// ```swift
    /// try await task.write(Data("EHLO example.org\r\n".utf8), timeout: .seconds(5))
    /// ```
    /// - Parameters:
    ///   - bytes: `Data`, `[UInt8]`, a ``Chunk`` or another buffer.
    ///   - limit: how long the call may take, the wait for the connection included; more than zero, `nil`
    ///     for as long as the timeouts of the session allow.
    /// - Throws: ``LoadError``: ``LoadError/Reason/streamBusy`` if another task writes,
    ///   ``LoadError/Reason/streamClosed`` after ``closeWrite()``, ``LoadError/Reason/streamCallTimeout``,
    ///   why the connection was not made or was lost. Cancelling the calling task ends the call with
    ///   ``LoadError/Reason/cancelled``. If a part of the bytes was on its way by then, nothing can follow
    ///   it: later writes get ``LoadError/Reason/writeIncomplete``. Reading goes on in any case.
    @concurrent
    public func write<Bytes: ContiguousBytes & Sendable>(
        _ bytes: Bytes, timeout limit: Duration? = nil
    ) async throws(LoadError) {
        try await load.write(bytes, timeout: limit)
    }

    /// Tells the peer that nothing more comes (FIN; close_notify under TLS), behind all that was written.
    /// The other direction stays open. A second call does nothing.
    ///
    /// Peers that speak TLS 1.2 may take it for the end of both directions (RFC 5246 §7.2.1).
    /// - Throws: ``LoadError``, as ``write(_:timeout:)``; it waits only for a socket that is full.
    @concurrent
    public func closeWrite() async throws(LoadError) { try await load.closeWrite() }

    // MARK: Security

    /// Speaks TLS from here on, over the same connection, by the session's settings; the certificate must
    /// name the host the stream was made for. On a stream that is secure already it does nothing.
    ///
    /// ```swift
    /// try await task.write(Data("STARTTLS\r\n".utf8))
    /// let (answer, _) = try await task.read(atLeast: 20, atMost: 20)   // "220 ready for TLS\r\n" and no more
    /// try await task.startSecureConnection()
    /// ```
    /// Have read all of the answer, and nothing else, before: bytes that nobody has read when this is called
    /// end the stream with ``LoadError/Reason/unexpectedPlaintext``, for whoever sits between could have
    /// put them there. What a caller has read himself beyond the answer, he must refuse himself.
    /// - Throws: ``LoadError``: ``LoadError/Reason/streamBusy`` if another task reads or writes, why the
    ///   handshake failed. Whatever it throws once the handshake has begun ends the stream, cancelling the
    ///   calling task included.
    @concurrent
    public func startSecureConnection() async throws(LoadError) { try await load.secure() }

    /// Whether TLS is spoken.
    public var isSecure: Bool { load.state.withLock { $0.link?.isSecure ?? false } }
}

extension LoadSnapshot {
    fileprivate init(_ stream: StreamDriver) {
        let isStopped = stream.stopReason != nil
        let (state, priority) = stream.state.withLock { ($0.shown(isStopped: isStopped), $0.priority) }
        self.state = state
        self.priority = priority
        sent = stream.sentCount.load(ordering: .relaxed)
        received = stream.receivedCount.load(ordering: .relaxed)
        expectedToSend = nil
        expectedToReceive = nil
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
