// The server's end of one connection, frame by frame. What must live here: the transport, and what was received and
// not taken yet. What the frames mean is for the script, or for `HTTP2Routes`.

import Synchronization
import URLLoadingIO

/// The server's end of an HTTP/2 connection, in the hand of a script.
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
/// When the script returns, the connection is closed. One task may receive while another sends. Every wait ends with
/// ``Failure/left`` when the client leaves or the server stops. What a script expects has a limit besides: at its end it
/// fails with ``Failure/unexpected(_:)`` and what came instead. ``receive()``, ``hold()`` and ``untilClosed()`` expect
/// nothing and have none.
public final class HTTP2Peer: Sendable {
    /// Its number, from 1 in order of acceptance.
    public let connection: Int
    /// What the TLS handshake agreed on; `nil` in the clear.
    public let tls: TestOrigin.TLSInfo?

    let server: HTTP2TestServer
    let socket: SocketTransport
    let transport: any Transport
    let token: StopToken
    let input = Lock(HTTP2PeerInput())
    private let isDeaf = Atomic<Bool>(false)
    private let mayGoOn = Atomic<Bool>(false)

    /// Why a script cannot go on.
    public enum Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The client has left, or the server was stopped.
        case left
        /// What came is not what the script expects. Told by ``HTTP2TestServer/complaints`` as well.
        case unexpected(String)
        /// The client has reset the stream on which the script sends a body.
        case streamReset(HTTP2Frame.ErrorCode)

        /// What happened.
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
        _ tls: TestOrigin.TLSInfo?,
        _ token: StopToken
    ) {
        self.server = server
        connection = number
        self.socket = socket
        self.transport = transport
        self.tls = tls
        self.token = token
    }

    /// Whether it takes what comes while it waits to send: true unless told. If not, a client that waits to send as
    /// well, for it answers each frame, is stuck, or must be wiser.
    public var readsWhileSending: Bool {
        get { !isDeaf.load(ordering: .relaxed) }
        set { isDeaf.store(!newValue, ordering: .relaxed) }
    }

    // MARK: Receiving

    /// The next frame, whatever it is. The preface of the client is checked and taken before the first.
    /// - Throws: ``Failure``.
    public func receive() async throws(Failure) -> HTTP2Frame { try await arrival().frame }

    func arrival() async throws(Failure) -> HTTP2Arrival {
        while true {
            if let arrival = try takeArrival() { return arrival }
            try await awaitInput()
        }
    }

    /// `nil` if a read is needed first.
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

    /// Waits until something more was read, or until `deadline` on the poller's clock, when an alarm must wake the
    /// connection's token.
    func awaitInput(until deadline: Int64 = .max) async throws(Failure) {
        while true {
            guard token.stopReason == nil else { throw .left }
            guard case .blocked(let interest) = pull() else { return }
            await Poller.shared.park(transport.slot, interest, token)
            // Whoever sends may have read meanwhile.
            if input.withLock({ $0.hasNews }) { return }
            if deadline != .max, Poller.now() >= deadline { return }
        }
    }

    /// Reads what is there without waiting.
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

    /// Sends frames as they are.
    /// - Throws: ``Failure/left``.
    public func send(_ frames: HTTP2Frame...) async throws(Failure) { try await send(frames) }

    /// Sends frames as they are.
    /// - Throws: ``Failure/left``.
    public func send(_ frames: [HTTP2Frame]) async throws(Failure) {
        try await sendRaw(frames.flatMap(\.bytes))
    }

    /// Sends bytes that need not be frames.
    /// - Throws: ``Failure/left``.
    public func sendRaw(_ bytes: [UInt8]) async throws(Failure) {
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
        transport.slot.hearReadsWhileWriting(true)
        defer { transport.slot.hearReadsWhileWriting(false) }
        var hasRead = false
        while case .moved = pull() { hasRead = true }
        // Another task may wait for what was read here.
        if hasRead { transport.slot.wake() }
        await Poller.shared.park(transport.slot, interest, token)
    }

    /// What the client said before it left is still there to be read: its reasons.
    private func leave() -> Failure {
        while case .moved = pull() {}
        return .left
    }

    // MARK: Waiting and ending

    /// Does nothing for so long, by the server's clock.
    /// - Throws: ``Failure/left`` if the server is stopped.
    public func pause(_ duration: Duration) async throws(Failure) {
        let clock = LoopClock(server.configuration.clock?.time)
        do throws(IOFailure) { try await clock.sleep(until: clock.now() + duration.inNanoseconds, token) } catch {
            throw .left
        }
    }

    /// Stands still until ``HTTP2TestServer/release()``; ``HTTP2TestServer/Counts/held`` counts who does.
    /// - Throws: ``Failure/left`` if the client leaves first.
    public func hold() async throws(Failure) {
        server.change { $0.counts.held += 1 }
        defer { server.change { $0.counts.held -= 1 } }
        while !mayGoOn.exchange(false, ordering: .acquiringAndReleasing) {
            guard token.stopReason == nil, !socket.peerHasLeft else { throw .left }
            await Poller.shared.park(socket.slot, .read, token)
        }
    }

    func release() {
        mayGoOn.store(true, ordering: .releasing)
        socket.slot.wake()
    }

    /// Takes frames until the client has left, and returns them.
    @discardableResult
    public func untilClosed() async -> [HTTP2Frame] {
        var frames: [HTTP2Frame] = []
        do throws(Failure) {
            while true { frames.append(try await receive()) }
        } catch { return frames }
    }

    /// Says that nothing more will be sent; the client may still send.
    public func finish() { transport.finishWriting() }

    /// Ends the connection by a reset, as a crash does.
    public func abort() { socket.abort() }

    func complain(_ what: String) -> Failure {
        server.change { $0.complaints.append("connection \(connection): \(what)") }
        return .unexpected(what)
    }
}
