// SPDX-License-Identifier: Apache-2.0

// The server's end of one connection: its state behind a lock, the task that sends and keeps time, and the waits of
// scripts. `HTTP3Routes` or a script interprets what arrives.

#if HTTP3

import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// The server's end of an HTTP/3 connection, controlled by a script.
///
/// ```swift
/// server.script { peer in
///     try await peer.start()
///     let request = try await peer.expectRequest()
///     try await peer.respond(to: request.stream, .ok, body: Array("half".utf8), endStream: false)
///     try await peer.send(.goAway(from: 4), on: peer.control())
///     await peer.untilClosed()
/// }
/// ```
///
/// QUIC itself is served correctly beside the script: acknowledgements, retransmissions, and the client's windows,
/// within which bytes are sent. When the script returns, the connection is closed with H3_NO_ERROR once the client has
/// acknowledged all bytes, or after five seconds. One task may receive while others send. Every wait ends with
/// ``Failure/left`` when the client leaves or the server stops. Waits for something specific also have a time limit, at
/// which they throw ``Failure/unexpected(_:)``; ``receive()``, ``hold()`` and ``untilClosed()`` have none.
public final class HTTP3Peer: Sendable {
    /// The number of the connection, from 1 in order of acceptance.
    public let connection: Int

    let server: HTTP3TestServer
    let token = StopToken()
    let state: Lock<HTTP3PeerState>
    private let place: Lock<DatagramSockets.Address>
    private let driver = Poller.shared.borrowSlot()
    private let isReleased = Atomic<Bool>(false)

    /// The reason why a script cannot continue.
    public enum Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The client has left, or the server was stopped.
        case left
        /// The client did something that the script does not expect. Also recorded in ``HTTP3TestServer/failures``.
        case unexpected(String)
        /// The client has reset the stream on which the script sends or awaits a body, or wants no more of it.
        case streamReset

        /// A description of the failure.
        public var description: String {
            switch self {
            case .left: "the client has left"
            case .unexpected(let what): what
            case .streamReset: "the client has reset the stream"
            }
        }
    }

    /// Something that has arrived on a stream.
    public struct Arrival: Sendable, CustomStringConvertible {
        /// The number of the stream (RFC 9000 §2.1): a multiple of 4 for a request.
        public let stream: Int
        /// What has arrived.
        public let content: Content
        /// The bytes of the stream that it took.
        let size: Int

        /// What arrives on a stream.
        public enum Content: Sendable, Hashable {
            /// A stream in one direction began with its type (RFC 9114 §6.2): 0 control, 2 and 3 QPACK.
            case opened(type: UInt64)
            /// A frame, with the fields of HEADERS. DATA arrives in pieces, each with the length of the whole as
            /// ``HTTP3Frame/declaredLength``.
            case frame(HTTP3Frame, HTTP2Fields?)
            /// The client sends no more on the stream.
            case end
            /// The client has reset the stream, or wants no more of it.
            case reset(HTTP3Frame.ErrorCode)
            /// Both directions of the stream are over.
            case closed
        }

        init(_ stream: Int64, _ content: Content, _ size: Int) {
            (self.stream, self.content, self.size) = (Int(stream), content, size)
        }

        /// One line.
        public var description: String {
            switch content {
            case .opened(let type): "stream \(stream) of type \(type)"
            case .frame(let frame, _): "\(frame) on stream \(stream)"
            case .end: "the end of stream \(stream)"
            case .reset(let code): "a reset of stream \(stream), \(code)"
            case .closed: "stream \(stream) is over"
            }
        }
    }

    init(_ server: HTTP3TestServer, number: Int, _ first: HTTP3Arrival, _ quic: QUICCodec, _ tls: QUICTLS) {
        self.server = server
        connection = number
        place = Lock(first.address)
        state = Lock(HTTP3PeerState(quic, tls, number: number))
    }

    deinit { Poller.shared.returnSlot(driver) }

    /// The parameters of the TLS handshake; `nil` before its end.
    public var tls: HTTPTestServer.TLSInfo? { state.withLock { $0.agreed } }

    /// Whether the client may send more as its bytes are received; true by default. If false, a client stops once it
    /// has used up the windows of the connection's beginning (``HTTP3TestServer/Configuration``).
    public var enlargesWindows: Bool {
        get { state.withLock { $0.enlargesWindows } }
        set { state.withLock { $0.enlargesWindows = newValue } }
    }

    // MARK: Driving

    var address: DatagramSockets.Address { place.withLock { $0 } }
    func move(to address: DatagramSockets.Address) { place.withLock { $0 = address } }
    func owns(_ datagram: [UInt8]) -> Bool { state.withLock { $0.owns(datagram) } }

    func receive(_ datagram: [UInt8]) {
        change { state in datagram.withUnsafeBytes { state.receive($0, now: Poller.now()) } }
    }

    /// Changes the state, records what has happened, and wakes the tasks that wait for it.
    @discardableResult
    func change<R: Sendable>(_ body: (inout HTTP3PeerState) -> R) -> R {
        let (result, slots, records) = state.withLock { state in
            (body(&state), state.takeWaiters(), state.takeRecords())
        }
        if !records.endings.isEmpty { server.change { state in records.endings.forEach { state.endings.append($0) } } }
        for complaint in records.complaints { _ = complain(complaint) }
        for slot in slots { slot.wake() }
        driver.wake()
        return result
    }

    /// Sends what is due and keeps time, until the connection is over.
    func drive() async {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { buffer.deallocate() }
        var alarms = HTTP3Alarms()
        while true {
            let now = Poller.now()
            let isDue = state.withLock { state in state.deadline.map { $0 <= now } ?? false }
            if isDue { change { $0.passDeadline(now: now) } }
            await flush(buffer)
            let (isOver, deadline) = state.withLock { ($0.isOver, $0.deadline) }
            if isOver { break }
            if let deadline {
                let now = Poller.now()
                if deadline <= now { continue }
                if let moment = alarms.next(deadline, now: now) { Poller.shared.schedule(driver, at: moment) }
            }
            await Poller.shared.park(driver, until: .never)
        }
        // The client is told the reason.
        await flush(buffer)
        token.stop(.cancelled)
        change { _ in }
    }

    private func flush(_ buffer: UnsafeMutableRawBufferPointer) async {
        var turns = 0
        while let datagrams = nextDatagrams(into: buffer) {
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<datagrams.count])
            server.listener.send(bytes, size: datagrams.size, to: address)
            turns += 1
            if turns.isMultiple(of: 16) { await Task.yield() }
        }
        if turns > 0 { change { _ in } }
    }

    private func nextDatagrams(into buffer: UnsafeMutableRawBufferPointer) -> QUICDatagrams? {
        state.withLock { $0.nextDatagrams(into: buffer, now: Poller.now()) }
    }

    // MARK: Waiting

    /// Waits until `find` finds a value. Changes of the connection wake it, and `deadline` on the poller's clock.
    func wait<R: Sendable>(
        until deadline: Int64 = .max, _ find: (inout HTTP3PeerState) -> R?
    ) async throws(Failure) -> R? {
        let slot = Poller.shared.borrowSlot()
        token.attach(slot)
        defer {
            token.detach(slot)
            state.withLock { $0.waiters.removeAll { $0 === slot } }
            Poller.shared.returnSlot(slot)
        }
        var hasAlarm = deadline == .max
        while true {
            let (found, isOver) = state.withLock { state in
                let found = find(&state)
                if found == nil, !state.waiters.contains(where: { $0 === slot }) { state.waiters.append(slot) }
                return (found, state.isOver)
            }
            if let found { return found }
            guard !isOver, token.stopReason == nil else { throw .left }
            if deadline != .max, Poller.now() >= deadline { return nil }
            if !hasAlarm { Poller.shared.schedule(slot, at: deadline) }
            hasAlarm = true
            await Poller.shared.park(slot, until: token)
        }
    }

    /// Returns the next arrival; `nil` at the deadline.
    func arrival(until deadline: Int64 = .max) async throws(Failure) -> Arrival? {
        guard let found = try await wait(until: deadline, { $0.takeArrival() }) else { return nil }
        // The client is told that it may send more.
        if found.size > 0 { driver.wake() }
        server.received(found, on: connection)
        return found
    }

    /// Waits until no more than `limit` bytes of a stream are on their way.
    func room(on stream: Int, limit: Int = 256 * 1024) async throws(Failure) {
        let isOpen = try await wait { state -> Bool? in
            guard state.takes(stream) else { return false }
            return state.held(on: stream) <= limit ? true : nil
        }
        if isOpen != true { throw .streamReset }
    }

    /// Waits until the client has acknowledged all bytes that were sent, for five seconds at most.
    public func drain() async { _ = try? await wait(until: Poller.now() + 5_000_000_000) { $0.isDrained ? true : nil } }

    /// Pauses the script, by the server's clock.
    /// - Throws: ``Failure/left`` if the client leaves, or the server is stopped.
    public func pause(_ duration: Duration) async throws(Failure) {
        let clock = LoopClock(server.configuration.clock?.time)
        do throws(IOFailure) { try await clock.sleep(until: clock.now() + duration.inNanoseconds, token) } catch {
            throw .left
        }
    }

    /// Pauses the script until ``HTTP3TestServer/release()``; ``TestServerCounts/held`` counts the paused scripts.
    /// - Throws: ``Failure/left`` if the client leaves first.
    public func hold() async throws(Failure) {
        server.change { $0.record.counts.held += 1 }
        defer { server.change { $0.record.counts.held -= 1 } }
        _ = try await wait { _ in
            isReleased.exchange(false, ordering: .acquiringAndReleasing) ? true : nil
        }
    }

    func release() {
        isReleased.store(true, ordering: .releasing)
        change { _ in }
    }

    /// A client that breaks rules without an end is recorded no more often.
    private static let mostComplaints = 1_000

    func complain(_ what: String) -> Failure {
        server.change { state in
            guard state.complaints.count < Self.mostComplaints else { return }
            state.complaints.append("connection \(connection): \(what)")
        }
        return .unexpected(what)
    }
}

#endif
