// SPDX-License-Identifier: Apache-2.0

// One HTTP/3 connection: its codecs, sockets for datagrams, and the streams that share them. Packets are due by the
// clock as well as by what loads do, so a task of the connection's own, its driver, reads, writes and keeps time
// (`HTTP3Connection+Driving`). Its state is an `HTTP3State`, under a lock that is never held during a system call.

#if HTTP3

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class HTTP3Connection: Sendable {
    /// Where the driver waits; the slots of its sockets are relayed here.
    let slot = Poller.shared.borrowSlot()
    let sockets: HTTP3SocketMaker
    let monitor: NetworkMonitor
    let news: PathNews
    let route: Route
    let identifier: Int
    let tap: (@Sendable (WireTapEvent) -> Void)?
    let clock: LoopClock
    let expectContinueTimeout: Duration
    let state: Lock<HTTP3State>
    let sender = HTTP3Sender()
    let places = HTTP2StreamSlots()
    /// Notifies the pool that the connection has been retired, or has additional stream slots.
    private let onChange: @Sendable (HTTP3Connection, Int) -> Void

    /// Creates a connection. Nothing is sent before `run`.
    /// - Parameters:
    ///   - access: the networks that it may use.
    ///   - opener: woken at the end of the handshake.
    ///   - early: sent as early data, if `tls` remembers the server.
    init(
        _ sockets: HTTP3SocketMaker, _ tls: QUICTLS, _ route: Route, _ configuration: Configuration,
        _ access: NetworkAccess, _ news: PathNews, opener: PollSlot, early: EarlyRequest?, handshakeTimeout: Int64?,
        onChange: @escaping @Sendable (HTTP3Connection, Int) -> Void
    ) throws(WireViolation) {
        self.sockets = sockets
        (monitor, self.news) = (configuration.networkMonitor, news)
        self.route = route
        identifier = ConnectionIdentifier.make()
        tap = configuration.wireTap
        clock = configuration.clock
        expectContinueTimeout = configuration.timeouts.expectContinue
        self.onChange = onChange
        let endpoint: HTTP3Endpoint
        let limits = QUICLimits(configuration.limits, handshakeTimeout: handshakeTimeout)
        let probeInterval = configuration.connections.http2PingInterval.map(LoadHandle.nanoseconds)
        do throws(WireViolation) {
            endpoint = try HTTP3Endpoint(
                tls, quic: limits, http: HTTP3Limits(configuration.limits), memory: tls.remembered as? HTTP3Memory,
                isTraced: tap != nil, now: Poller.now())
        } catch {
            Poller.shared.returnSlot(slot)
            throw error
        }
        state = Lock(
            HTTP3State(
                endpoint, tls, places, opener: opener, probeInterval: probeInterval,
                longestSilence: probeInterval.map { _ in
                    LoadHandle.nanoseconds(configuration.connections.http2PingTimeout)
                },
                streamWindow: limits.streamWindow, access, changeCount: news.changeCount,
                now: configuration.clock.coarseNow()))
        if let early { state.withLock { $0.sendEarly(early, slot) } }
    }

    // MARK: The server

    /// What is known of both ends: the address of this one from the driver, the rest from the handshake.
    private struct Shown: Sendable {
        var local: SocketAddress?
        var facts: ConnectionFacts?
        var peer: QUICPeerFacts?
    }
    private let shown = Lock(Shown())

    /// Notes the result of the handshake, before another task sees the connection.
    func opened(_ peer: QUICPeerFacts) {
        shown.withLock {
            $0.peer = peer
            $0.facts = ConnectionFacts(local: $0.local, remote: remote, peer.negotiated, identifier)
        }
    }

    /// Notes the local address of the present path, which may be another one than before.
    func isAt(_ local: SocketAddress?) {
        shown.withLock {
            $0.local = local
            guard let peer = $0.peer else { return }
            $0.facts = ConnectionFacts(local: local, remote: remote, peer.negotiated, identifier)
        }
    }

    var remote: SocketAddress { sockets.peer }
    var facts: ConnectionFacts? { shown.withLock { $0.facts } }
    var peer: QUICPeerFacts? { shown.withLock { $0.peer } }

    var description: String {
        let name = TLSPeerName(route.origin.host)
        let early =
            switch state.withLock({ $0.earlyData }) {
            case .none, .possible: ""
            case .accepted: ", early data accepted"
            case .rejected: ", early data rejected"
            }
        return "tls1.3(\(name)) over quic(\(remote)), h3\(early)"
    }

    /// Notes that a load uses the connection: it must not move to a network that the load may not use.
    func admit(_ access: NetworkAccess) { state.withLock { $0.restrict(to: access) } }

    // MARK: Stream slots

    /// Whether the connection takes no more streams.
    var isRetired: Bool { places.isRetired }
    var streamCount: Int { places.count }
    /// The time at which the last stream ended, by the coarse clock.
    var idleSince: Int64 { state.withLock { $0.lastEnd } }

    /// Stops accepting streams.
    func retire() {
        places.retire()
        report()
    }

    /// Reports new slots, or the end of all slots, to the pool. Called outside of the lock.
    func report() {
        guard let added = places.takeReport() else { return }
        onChange(self, added)
    }

    // MARK: Streams

    /// Begins a stream in a slot that the caller has taken. Returns false if the peer permits no more streams now: the
    /// caller waits, and tries again.
    func begin(_ request: HTTP2Request, _ stream: HTTP3Stream, hasBody: Bool) throws(LoadError) -> Bool {
        let (hasBegun, isSole): (Bool, Bool)
        do throws(WireViolation) {
            (hasBegun, isSole) = try state.withLock { (state) throws(WireViolation) in
                (try state.begin(request, stream, hasBody: hasBody, now: Poller.now()), state.isSole)
            }
        } catch {
            if error.code == .http3NoStream { retire() }
            throw LoadError(error, .sending)
        }
        guard hasBegun else { return false }
        places.countStream()
        // Requests of several loads are sent together. The driver tells the trace what was sent.
        if isSole, tap == nil { sendNow() } else { flushIfNeeded() }
        return true
    }

    /// Takes what has arrived for a stream since the last call.
    func take(_ stream: HTTP3Stream, used: Int, readsBody _: Bool) -> HTTP2Inbox {
        let (inbox, mustSend) = state.withLock { $0.take(stream, used: used) }
        if mustSend { flushIfNeeded() }
        return inbox
    }

    /// Waits for an event of a stream, or until the load must act: it was stopped or suspended, or `deadline` has
    /// passed.
    /// - Parameters:
    ///   - countsIdle: whether the wait is for the peer, and limited by the idle timeout.
    ///   - endsOnWake: whether the wait ends whenever the load's slot is woken.
    func wait(
        for stream: HTTP3Stream, _ control: LoadHandle, until deadline: Int64 = .max, countsIdle: Bool = true,
        endsOnWake: Bool = false
    ) async {
        let start = countsIdle ? clock.coarseNow() : nil
        while !state.withLock({ $0.beginWait(stream) }) {
            await Poller.shared.park(stream.slot, .read, control, idleSince: start)
            let isOver =
                control.stopReason != nil || control.isSuspended || (deadline != .max && clock.now() >= deadline)
            if state.withLock({ $0.endWait(stream) }) || isOver || endsOnWake { return }
        }
    }

    /// Appends to a request's body.
    func send(_ bytes: UnsafeRawBufferPointer, on stream: HTTP3Stream) {
        state.withLock { $0.send(bytes, on: stream) }
    }

    func endSending(on stream: HTTP3Stream, _ trailers: Headers) throws(WireViolation) {
        try state.withLock { (state) throws(WireViolation) in try state.endSending(on: stream, trailers) }
    }

    /// Updates the priority of a stream after its load's has changed (RFC 9218).
    func prioritize(_ stream: HTTP3Stream, urgency: Int) {
        if state.withLock({ $0.prioritize(stream, urgency: urgency) }) { flushIfNeeded() }
    }

    /// Releases a stream. One that has not ended is reset.
    func end(_ stream: HTTP3Stream) {
        let now = clock.coarseNow()
        let (mustSend, slots) = state.withLock { $0.end(stream, now: now) }
        for slot in slots { slot.wake() }
        if mustSend { flushIfNeeded() }
    }

    /// Wakes a stream's task after an event outside of the connection.
    func wake(_ stream: HTTP3Stream) { state.withLock { $0.noteExternalEvent(stream) }.wake() }

    /// Whether the server has accepted the request of a stream as early data.
    func wasEarly(_ stream: HTTP3Stream) -> Bool { state.withLock { _ in stream.wasEarly } }

    /// Lets the driver send what is due.
    func flushIfNeeded() { slot.wake() }

    /// Whether the peer has responded to any request.
    var hasResponded: Bool { state.withLock { $0.hasResponded } }

    // MARK: The end

    /// Fails the connection. The driver tells the peer, and closes the socket.
    func fail(_ why: HTTP2Failure) {
        for slot in state.withLock({ $0.fail(why) }) { slot.wake() }
        flushIfNeeded()
        report()
    }

    func close() { fail(.closed) }
}

extension HTTP3Limits {
    fileprivate init(_ limits: Configuration.Limits) {
        self.init()
        headSize = min(max(0, limits.headSize), 1 << 30)
        fieldCount = max(0, limits.fieldCount)
        informationalCount = max(0, limits.informationalCount)
    }
}

extension QUICLimits {
    fileprivate init(_ limits: Configuration.Limits, handshakeTimeout: Int64?) {
        self.init()
        largestStreamWindow = min(max(Self.leastWindow, limits.http2StreamWindow), 1 << 30)
        connectionWindow = min(max(Self.leastWindow, limits.http2ConnectionWindow), 1 << 30)
        streamWindow = min(streamWindow, largestStreamWindow)
        self.handshakeTimeout = handshakeTimeout
    }
    private static let leastWindow = 16 * 1024
}

#endif
