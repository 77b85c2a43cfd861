// SPDX-License-Identifier: Apache-2.0

// In this folder: one HTTP/2 connection and its streams

// One HTTP/2 connection: a codec, a transport, and the streams that share them. It has no task of its own: the first
// task that waits for its stream reads the socket for all (`HTTP2Connection+Reading`). Its state is an `HTTP2State`,
// under a lock that is never held during a system call.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Unchecked: `incoming` belongs to the reader and `outgoing` to the writer, of which `state` allows one each;
/// `idleOrder` and `onChange` belong to the pool.
final class HTTP2Connection: @unchecked Sendable {
    let transport: any Transport
    let route: Route
    let identifier: Int
    let tap: (@Sendable (WireTapEvent) -> Void)?
    let clock: LoopClock
    let expectContinueTimeout: Duration
    let facts: ConnectionFacts
    /// In nanoseconds; see `HTTP2Probe`. Nil for no probes.
    let http2PingInterval: Int64?
    let http2PingTimeout: Int64
    /// The receive window of a new stream.
    let newWindow: HTTP2Windows.Window

    let state: Lock<HTTP2State>
    let places = HTTP2StreamSlots()
    var incoming = HTTP2Incoming()
    private var outgoing = HTTP2Outgoing()
    /// Counts the reads that found no more input.
    let emptyReads = Atomic<Int>(0)

    /// Notifies the session's pool that the connection has been retired, or has additional stream slots. Set before
    /// another task sees the connection.
    var onChange: (@Sendable (HTTP2Connection, Int) -> Void)?
    /// The order in which connections became idle; see `PoolState.Idle`. Guarded by the pool's lock.
    var idleOrder: UInt64 = 0

    init(
        _ transport: any Transport, _ route: Route, _ identifier: Int, _ configuration: Configuration
    ) throws(WireViolation) {
        self.transport = transport
        self.route = route
        self.identifier = identifier
        facts = ConnectionFacts(transport, identifier)
        tap = configuration.wireTap
        clock = configuration.clock
        expectContinueTimeout = configuration.timeouts.expectContinue
        http2PingInterval = configuration.connections.http2PingInterval.map(LoadHandle.nanoseconds)
        http2PingTimeout = LoadHandle.nanoseconds(configuration.connections.http2PingTimeout)
        let windows = HTTP2Windows(HTTP2Windows.Limits(configuration.limits))
        newWindow = HTTP2Windows.Window(windows.limits)
        let codec = try HTTP2Codec(
            limits: HTTP2Limits(configuration.limits, windows.limits),
            isTolerant: configuration.strictness == .tolerant)
        state = Lock(HTTP2State(codec, places, windows, now: configuration.clock.coarseNow()))
        // The peer's SETTINGS may have been read with the end of the handshake.
        incoming.mustRead = transport.mayHoldMore
    }

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
        onChange?(self, added)
    }

    // MARK: Streams

    /// Begins a stream in a slot that the caller has taken. Nothing is written before the caller waits or calls
    /// `flush`.
    /// - Returns: true, because a slot is a stream that the peer permits.
    func begin(_ request: HTTP2Request, _ stream: HTTP2Stream, hasBody: Bool) throws(LoadError) -> Bool {
        places.countStream()
        do throws(WireViolation) {
            let probes = http2PingInterval != nil
            let beginsWatch = try state.withLock { (state) throws(WireViolation) in
                try state.begin(request, stream, hasBody: hasBody)
                return probes && state.probing.beginWatching()
            }
            if beginsWatch { scheduleWatch() }
            return true
        } catch {
            if error.code == .http2NoStream { retire() }
            throw LoadError(error, .sending)
        }
    }

    /// Takes what has arrived for a stream since the last call.
    /// - Parameters:
    ///   - used: the bytes that the reader has consumed; the peer may send as many more.
    ///   - readsBody: whether the caller waits for the body if nothing has arrived.
    func take(_ stream: HTTP2Stream, used: Int, readsBody: Bool) -> HTTP2Inbox {
        let (inbox, mustFlush) = state.withLock {
            $0.take(stream, used: used, readsBody: readsBody, now: clock.coarseNow())
        }
        if mustFlush { flushIfNeeded() }
        return inbox
    }

    /// Appends to a request's body.
    func send(_ bytes: UnsafeRawBufferPointer, on stream: HTTP2Stream) {
        state.withLock { $0.send(bytes, on: stream) }
    }

    func endSending(on stream: HTTP2Stream, _ trailers: Headers) throws(WireViolation) {
        try state.withLock { (state) throws(WireViolation) in try state.endSending(on: stream, trailers) }
    }

    /// Updates the priority of a stream after its load's has changed (RFC 9218).
    func prioritize(_ stream: HTTP2Stream, urgency: Int) {
        if state.withLock({ $0.prioritize(stream, urgency: urgency) }) { flushIfNeeded() }
    }

    /// Releases a stream. One that has not ended is reset.
    func end(_ stream: HTTP2Stream) {
        let now = clock.coarseNow()
        let (next, mustFlush) = state.withLock { $0.end(stream, now: now) }
        transport.slot.gatherReads(false)
        next?.wake()
        if mustFlush { flushIfNeeded() }
    }

    /// Wakes a stream's task after an event outside of the connection.
    func wake(_ stream: HTTP2Stream) {
        state.withLock { [socket = transport.slot] in $0.noteExternalEvent(stream, socket: socket) }.wake()
    }

    /// Whether the peer has responded to any request.
    var hasResponded: Bool { state.withLock { $0.hasResponded } }

    // MARK: The end

    var hasFailed: Bool { state.withLock { $0.failure != nil } }

    /// Fails the connection. Streams see the failure after they have taken what arrived before.
    func fail(_ why: HTTP2Failure) {
        places.retire()
        for slot in state.withLock({ $0.fail(why) }) { slot.wake() }
        report()
    }

    func close() {
        places.retire()
        if state.withLock({ $0.requestClose() }) { closeTransport() }
        report()
    }

    func closeTransport() {
        guard let waiting = state.withLock({ $0.beginClosing() }) else { return }
        for slot in waiting { slot.wake() }
        flush(closes: true)
        transport.close()
        report()
        tap?(.closed(connection: identifier))
    }

    // MARK: Writing

    /// Writes pending frames, unless the reader does so soon.
    func flushIfNeeded() {
        if state.withLock({ $0.mustFlush }) { flush() }
    }

    /// Writes as much as possible without waiting. If another task is writing, it writes these frames as well.
    /// - Parameter closes: the caller is about to close the transport, which no other task uses.
    func flush(closes: Bool = false) {
        guard state.withLock({ $0.beginWriting(closes: closes) }) else { return }
        if write() { closeTransport() }
    }

    /// Writes until there are no frames, or no room for them. Returns whether the transport must be closed.
    private func write() -> Bool {
        while true {
            if let mustClose = fillOutput() { return mustClose }
            switch outgoing.write(to: transport) {
            case .success(.moved(let count)):
                if let tap {
                    for line in outgoing.lines(ofNext: count) {
                        tap(.frame(line, isSent: true, connection: identifier))
                    }
                }
                outgoing.advance(count)
            case .success(.blocked(let interest)):
                // The reader waits for input only, and must also wait for the socket to become writable.
                let (reader, mustClose) = state.withLock { ($0.blockWriting(on: interest), $0.mustClose) }
                reader?.wake()
                return mustClose
            case .success(.end), .failure: return disableWriting()
            }
        }
    }

    /// Fills the output buffer. If there is nothing to write, ends the writing, and returns whether the transport must
    /// be closed.
    private func fillOutput() -> Bool? {
        var slots: [PollSlot] = []
        let mustClose = state.withLock { state -> Bool? in
            if outgoing.isSent {
                if outgoing.clear() { state.probing.lastWritten = clock.coarseNow() }
                slots = state.takeOutput(
                    into: &outgoing.bytes, upTo: HTTP2Outgoing.size, now: clock.coarseNow())
            }
            guard outgoing.isSent else { return nil }
            state.endWriting()
            return state.mustClose
        }
        for slot in slots { slot.wake() }
        report()
        return mustClose
    }

    /// Stops writing. The reader finds what the peer has sent before, and the end.
    /// - Returns: whether the transport must be closed.
    private func disableWriting() -> Bool {
        places.retire()
        let mustClose = state.withLock { state in
            state.disableWriting()
            return state.mustClose
        }
        transport.slot.wake()
        report()
        return mustClose
    }
}

extension HTTP2Limits {
    fileprivate init(_ limits: Configuration.Limits, _ windows: HTTP2Windows.Limits) {
        self.init()
        streamWindow = Int32(clamping: windows.initial)
        connectionWindow = Int32(clamping: windows.connection)
        headSize = min(max(0, limits.headSize), 1 << 30)
        // As many frames of 16 KiB as a head of that size takes, and 16 more for a server that sends smaller ones.
        continuationCount = max(continuationCount, headSize / 16_384 + 16)
        fieldCount = max(0, limits.fieldCount)
        informationalCount = max(0, limits.informationalCount)
    }
}

extension HTTP2Windows.Limits {
    fileprivate init(_ limits: Configuration.Limits) {
        stream = min(max(HTTP2Limits.leastWindow, limits.http2StreamWindow), Int(Int32.max))
        connection = min(max(HTTP2Limits.leastWindow, limits.http2ConnectionWindow), Int(Int32.max))
    }
}
