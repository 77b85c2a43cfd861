// SPDX-License-Identifier: Apache-2.0

// The server's end of one connection, frame by frame: the transport, and received data that is not consumed yet. The
// script, or `HTTP2Routes`, interprets the frames.

import Synchronization
import URLLoadingIO

/// The server's end of an HTTP/2 connection, controlled by a script.
///
/// ```swift
/// server.script { peer in
///     try await peer.start()
///     let request = try await peer.expectRequest()
///     try await peer.respond(to: request.stream, .ok, body: Array("half".utf8), endStream: false)
///     try await peer.goAway(last: request.stream, .internalError)
///     try await peer.untilClosed()
/// }
/// ```
///
/// The connection is closed when the script returns. Several tasks may use it at once: what one call sends is not mixed
/// with what another one sends, and each frame that arrives is received by one of them. Every wait ends with
/// ``Failure/left`` when the client leaves or the server stops. Waits for a specific frame also have a time limit, at
/// which they throw ``Failure/unexpected(_:)`` with the frames that came instead; ``receive()``, ``hold()`` and
/// ``untilClosed()`` have none.
public final class HTTP2Peer: Sendable {
    /// The number of the connection, from 1 in order of acceptance.
    public let connection: Int
    /// The parameters of the TLS handshake; `nil` without TLS.
    public let tls: HTTPTestServer.TLSInfo?

    let server: HTTP2TestServer
    let socket: SocketTransport
    let transport: any Transport
    let token: StopToken
    let input = Lock(HTTP2PeerInput())
    /// The right to wait at the socket for input.
    private let readTurn = HTTP2PeerTurn()
    /// The right to send.
    private let sendTurn = HTTP2PeerTurn()
    private let ignoresEvents = Atomic<Bool>(false)
    private let isReleased = Atomic<Bool>(false)

    /// The reason why a script cannot continue.
    public enum Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The client has left, or the server was stopped.
        case left
        /// The client did something that the script does not expect. Also recorded in ``HTTP2TestServer/failures``.
        case unexpected(String)
        /// The client has reset the stream on which the script sends a body.
        case streamReset(HTTP2Frame.ErrorCode)

        /// A description of the failure.
        public var description: String {
            switch self {
            case .left: "the client has left"
            case .unexpected(let what): what
            case .streamReset(let code): "the client has reset the stream: \(code)"
            }
        }
    }

    init(
        _ server: HTTP2TestServer, number: Int, _ socket: SocketTransport, _ transport: any Transport,
        _ tls: HTTPTestServer.TLSInfo?,
        _ token: StopToken
    ) {
        self.server = server
        connection = number
        self.socket = socket
        self.transport = transport
        self.tls = tls
        self.token = token
    }

    /// Whether the peer reads incoming frames while it waits to send; true by default. If false, a client that answers
    /// each frame and also waits to send is blocked, unless it defends itself.
    public var readsWhileSending: Bool {
        get { !ignoresEvents.load(ordering: .relaxed) }
        set { ignoresEvents.store(!newValue, ordering: .relaxed) }
    }

    // MARK: Receiving

    /// Receives the next frame of any type. The client's preface is verified and consumed before the first.
    /// - Throws: ``Failure``.
    public func receive() async throws(Failure) -> HTTP2Frame { try await arrival().frame }

    func arrival() async throws(Failure) -> HTTP2Arrival {
        while true {
            let seen = input.withLock { $0.reads }
            if let arrival = try takeArrival() { return arrival }
            try await awaitInput(since: seen)
        }
    }

    /// Returns the next arrived frame; `nil` if a read is needed first.
    func takeArrival() throws(Failure) -> HTTP2Arrival? {
        guard token.stopReason == nil else { throw .left }
        let next = input.withLock { $0.next() }
        switch next {
        case .frame(let arrival): return arrival
        case .broken(let why): throw complain(why)
        case .end: throw .left
        case .none: return nil
        }
    }

    /// Waits until any task has read more data, or until `deadline` on the poller's clock; the caller sets an alarm
    /// that wakes the connection's token then.
    /// - Parameter seen: the count of reads before the caller looked for what it waits for.
    func awaitInput(since seen: Int, until deadline: Int64 = .max) async throws(Failure) {
        func isOver() -> Bool {
            input.withLock { $0.reads != seen } || (deadline != .max && Poller.now() >= deadline)
        }
        // One task waits at the socket. The others wait until it has read, or has given up.
        guard await readTurn.take(token, unless: isOver) else {
            guard token.stopReason == nil else { throw .left }
            return
        }
        defer { readTurn.leave() }
        while !isOver() {
            guard token.stopReason == nil else { throw .left }
            guard case .blocked(let interest) = pull() else { return }
            await Poller.shared.park(transport.slot, interest, token)
        }
    }

    /// Reads available data without waiting.
    @discardableResult
    func pull() -> Progress {
        let (progress, arrived) = input.withLock { input in
            let progress = input.read(transport)
            return (progress, input.parse())
        }
        if !arrived.isEmpty { server.received(arrived, on: connection) }
        return progress
    }

    // MARK: Sending

    /// Sends frames unchanged.
    /// - Throws: ``Failure/left``.
    public func send(_ frames: HTTP2Frame...) async throws(Failure) { try await send(frames) }

    /// Sends frames unchanged.
    /// - Throws: ``Failure/left``.
    public func send(_ frames: [HTTP2Frame]) async throws(Failure) {
        try await sendRaw(frames.flatMap(\.bytes))
    }

    /// Sends bytes that need not be frames.
    /// - Throws: ``Failure/left``.
    public func sendRaw(_ bytes: [UInt8]) async throws(Failure) {
        guard await sendTurn.take(token) else { throw .left }
        defer { sendTurn.leave() }
        var done = 0
        while done < bytes.count {
            guard token.stopReason == nil else { throw .left }
            let step = bytes.withUnsafeBytes { all in
                Result { () throws(IOFailure) in try transport.write(UnsafeRawBufferPointer(rebasing: all[done...])) }
            }
            switch step {
            case .success(.moved(let count)): done += count
            case .success(.blocked(let interest)): await awaitRoom(interest)
            case .success(.end), .failure: throw leave()
            }
        }
    }

    private func awaitRoom(_ interest: PollSlot.Interest) async {
        guard readsWhileSending else { return await Poller.shared.park(transport.slot, interest, token) }
        transport.slot.wakeWriterForReads(true)
        defer { transport.slot.wakeWriterForReads(false) }
        var hasRead = false
        while case .moved = pull() { hasRead = true }
        // Another task may be waiting for the data that was read here.
        if hasRead { transport.slot.wake() }
        await Poller.shared.park(transport.slot, interest, token)
    }

    /// Reads the frames that the client sent before it left, such as its GOAWAY.
    private func leave() -> Failure {
        while case .moved = pull() {}
        return .left
    }

    // MARK: Waiting and ending

    /// Pauses the script, by the server's clock.
    /// - Throws: ``Failure/left`` if the server is stopped.
    public func pause(_ duration: Duration) async throws(Failure) {
        let clock = LoopClock(server.configuration.clock?.time)
        do throws(IOFailure) { try await clock.sleep(until: clock.now() + duration.inNanoseconds, token) } catch {
            throw .left
        }
    }

    /// Pauses the script until ``HTTP2TestServer/release()``; ``TestServerCounts/held`` counts the paused
    /// scripts.
    /// - Throws: ``Failure/left`` if the client leaves first.
    public func hold() async throws(Failure) {
        server.change { $0.record.counts.held += 1 }
        defer { server.change { $0.record.counts.held -= 1 } }
        var wasReleased = false
        await socket.waitWithoutReading(token) {
            wasReleased = isReleased.exchange(false, ordering: .acquiringAndReleasing)
            return wasReleased
        }
        guard wasReleased else { throw .left }
    }

    func release() {
        isReleased.store(true, ordering: .releasing)
        socket.slot.wake()
    }

    /// Receives frames until the client has left, and returns them.
    @discardableResult
    public func untilClosed() async -> [HTTP2Frame] {
        var frames: [HTTP2Frame] = []
        do throws(Failure) {
            while true { frames.append(try await receive()) }
        } catch { return frames }
    }

    /// Ends the sending direction; the client may still send.
    public func finish() { transport.finishWriting() }

    /// Ends the connection with a reset, as a crash does.
    public func abort() { socket.abort() }

    func complain(_ what: String) -> Failure {
        server.change { $0.complaints.append("connection \(connection): \(what)") }
        return .unexpected(what)
    }
}
