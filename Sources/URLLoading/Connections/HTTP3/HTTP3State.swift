// SPDX-License-Identifier: Apache-2.0

// The state of an HTTP/3 connection as a value: its codecs, its streams, and its end. Each transition is one method,
// called under the lock of `HTTP3Connection`; slots to wake are returned, and woken after the lock is released.
//
//     phase    opening ──▶ open ──▶ over        opening ──▶ over

#if HTTP3

import URLLoadingIO
import URLLoadingWire

struct HTTP3State: Sendable {
    // Unsafe: accessed only under the connection's lock, as the whole state.
    nonisolated(unsafe) private let endpoint: HTTP3Endpoint
    nonisolated(unsafe) private let tls: QUICTLS
    private let places: HTTP2StreamSlots
    private(set) var phase: Phase
    private var streams: [Int64: HTTP3Stream] = [:]
    /// The streams that wait until the peer permits more.
    private var postponed: [HTTP3Stream] = []
    /// The request that was sent as early data, until its load begins it, and the stream that gathers its response.
    private var sentEarly: SentEarly?
    /// The streams whose request bodies wait for acknowledgements.
    private var heldBack: [HTTP3Stream] = []
    /// Whether a response has begun.
    private(set) var hasResponded = false
    /// The time at which the last stream ended, by the coarse clock.
    private(set) var lastEnd: Int64
    /// The time between probes in nanoseconds while streams are open; `nil` for as few as keep the connection alive.
    private let probeInterval: Int64?
    /// How long the server may be silent in nanoseconds while `isUnproven`; `nil` for as long as the idle timeout.
    private let longestSilence: Int64?
    /// The receive window of a stream that has just begun.
    private let streamWindow: Int
    /// When a datagram was last received.
    private var lastReceived: Int64
    /// Whether a request has ended a silence of the length between probes, and nothing was received since: the server
    /// may be gone.
    private var isUnproven = false
    /// The credit that streams were given since datagrams were last written.
    private var unsentCredit = 0
    /// The bytes of bodies delivered since the driver last yielded.
    private var receivedInTurn = 0
    private(set) var migration: HTTP3Migration
    /// The networks that every load of the connection may use.
    private(set) var access: NetworkAccess

    private struct SentEarly: Sendable {
        /// `nil` once the load has ended or has another connection.
        weak var request: EarlyRequest?
        let stream: HTTP3Stream
    }

    enum Phase: Sendable {
        /// The slot is woken at the end of the handshake.
        case opening(PollSlot)
        case open(QUICPeerFacts)
        case over(HTTP2Failure)
    }

    init(
        _ endpoint: HTTP3Endpoint, _ tls: QUICTLS, _ places: HTTP2StreamSlots, opener: PollSlot, probeInterval: Int64?,
        longestSilence: Int64?, streamWindow: Int, _ access: NetworkAccess, changeCount: Int, now: Int64
    ) {
        (self.endpoint, self.tls, self.places, self.probeInterval) = (endpoint, tls, places, probeInterval)
        (self.longestSilence, self.streamWindow) = (longestSilence, streamWindow)
        (self.access, migration) = (access, HTTP3Migration(changeCount: changeCount))
        phase = .opening(opener)
        lastEnd = now
        lastReceived = .max
    }

    private var isOpen: Bool { if case .open = phase { true } else { false } }
    var isOpening: Bool { if case .opening = phase { true } else { false } }
    /// The failure that ends all streams; nil while the connection works.
    var failure: HTTP2Failure? { if case .over(let failure) = phase { failure } else { nil } }

    // MARK: Streams

    /// Begins a request. Returns false if the peer permits no more streams now: the stream's task is woken when it
    /// does.
    mutating func begin(
        _ request: HTTP2Request, _ stream: HTTP3Stream, hasBody: Bool, now: Int64
    ) throws(WireViolation) -> Bool {
        postponed.removeAll { $0 === stream }
        guard case .open = phase, !places.isRetired else {
            throw WireViolation(.local, .http3NoStream, section: "RFC 9114 6.1")
        }
        if takeEarly(stream) { return true }
        guard let number = try endpoint.submit(request, hasBody: hasBody) else {
            postponed.append(stream)
            return false
        }
        stream.number = number
        if streams.isEmpty {
            if let probeInterval { isUnproven = now - lastReceived >= probeInterval }
            keepAlive()
        }
        streams[number] = stream
        return true
    }

    /// Probes the server while streams are open: a response may take longer than either side's idle timeout (RFC 9000
    /// §10.1.2).
    private func keepAlive() { endpoint.keepAlive(after: min(probeInterval ?? .max, endpoint.idleTimeout / 2)) }

    // MARK: Early data

    /// Sends a request as early data, if the server is remembered and permits it.
    /// - Parameter slot: any slot; it is not woken.
    mutating func sendEarly(_ request: EarlyRequest, _ slot: PollSlot) {
        guard endpoint.earlyData == .possible,
            let number = try? endpoint.submit(request.message, hasBody: false)
        else { return }
        let stream = HTTP3Stream(slot: slot, urgency: request.message.urgency, hasBody: false)
        stream.number = number
        streams[number] = stream
        sentEarly = SentEarly(request: request, stream: stream)
    }

    /// Gives a stream what has arrived for its request, if that was sent as early data. Returns false if it was not.
    private mutating func takeEarly(_ stream: HTTP3Stream) -> Bool {
        // Another connection to which the load moves sends the request anew.
        defer { stream.early = nil }
        guard let sent = sentEarly, let request = stream.early, sent.request === request else { return false }
        sentEarly = nil
        stream.adopt(sent.stream)
        streams[stream.number] = stream
        keepAlive()
        return true
    }

    /// Resets the request that was sent as early data, once its load has ended or has another connection. Called after
    /// the first datagrams behind the handshake were written: before, ngtcp2 loses the reset.
    /// - Returns: whether datagrams are due.
    private mutating func dropEarly() -> Bool {
        guard let sent = sentEarly, sent.request == nil, isOpen else { return false }
        sentEarly = nil
        streams[sent.stream.number] = nil
        guard !sent.stream.isOver, !sent.stream.isComplete else { return false }
        endpoint.reset(sent.stream.number, .requestCancelled)
        return true
    }

    /// Whether the server has accepted early data.
    var earlyData: HTTP3Endpoint.EarlyData { endpoint.earlyData }

    /// Takes what has arrived for a stream.
    /// - Parameter used: the bytes that the reader has consumed; the peer may send as many more.
    /// - Returns: the inbox, and whether datagrams are due.
    mutating func take(_ stream: HTTP3Stream, used: Int) -> (HTTP2Inbox, mustSend: Bool) {
        stream.hasUnseenEvents = false
        stream.closeChunk()
        stream.uncredited += used
        let step = min(Self.largestCredit, streamWindow / 4)
        if stream.uncredited >= step, !stream.isOver, !stream.isComplete {
            endpoint.consumed(stream.uncredited, on: stream.number)
            unsentCredit += stream.uncredited
            stream.uncredited = 0
        }
        var inbox = HTTP2Inbox()
        swap(&inbox, &stream.inbox)
        if inbox.failure == nil, !stream.isComplete {
            // Nothing was sent of a request that has no stream yet.
            inbox.failure = stream.number < 0 && failure != nil ? .unprocessed : failure
        }
        return (inbox, unsentCredit >= streamWindow / 4)
    }
    /// ngtcp2 is given credit in steps of this size, or of a quarter of a small window. It tells the peer once that is
    /// a quarter of the window, in a datagram that the driver writes. While datagrams arrive the driver writes anyway;
    /// a peer that has used up its window sends none, so after a quarter of the window the driver is woken.
    private static let largestCredit = 32 * 1024

    /// Returns how many bytes of a request's body the connection takes now. If none, the stream's task is woken when it
    /// takes more.
    mutating func room(on stream: HTTP3Stream) -> Int {
        let room = max(
            0,
            min(Self.mostQueued - endpoint.queued(on: stream.number), Self.mostHeld - endpoint.held(on: stream.number)))
        // Room in the queue is reported as `sent`.
        if endpoint.held(on: stream.number) >= Self.mostHeld, !stream.isHeldBack {
            stream.isHeldBack = true
            heldBack.append(stream)
        }
        return room
    }
    /// The bytes of a request's body that wait for their frames, and those that are not acknowledged.
    private static let mostQueued = 128 * 1024
    private static let mostHeld = 8 << 20

    func send(_ bytes: UnsafeRawBufferPointer, on stream: HTTP3Stream) { endpoint.send(bytes, on: stream.number) }

    func endSending(on stream: HTTP3Stream, _ trailers: Headers) throws(WireViolation) {
        try endpoint.endSending(on: stream.number, trailers: trailers)
    }

    /// Returns whether datagrams are due.
    func prioritize(_ stream: HTTP3Stream, urgency: Int) -> Bool {
        guard stream.urgency != urgency, !stream.isOver, !stream.isComplete, streams[stream.number] === stream
        else { return false }
        stream.urgency = urgency
        endpoint.prioritize(stream.number, urgency: urgency)
        return true
    }

    /// Releases a stream. One that has not ended is reset.
    /// - Returns: whether datagrams are due, and the slots to wake.
    mutating func end(_ stream: HTTP3Stream, now: Int64) -> (mustSend: Bool, slots: [PollSlot]) {
        lastEnd = now
        postponed.removeAll { $0 === stream }
        heldBack.removeAll { $0 === stream }
        guard stream.number >= 0 else {
            // It may have been woken to begin: another one may do so in its place.
            var slots: [PollSlot] = []
            if failure == nil { wakePostponed(&slots) }
            return (false, slots)
        }
        streams[stream.number] = nil
        if streams.isEmpty { endpoint.keepAlive(after: nil) }
        guard !stream.isOver, failure == nil, !(stream.isComplete && stream.hasSentAll) else { return (false, []) }
        endpoint.reset(stream.number, .requestCancelled)
        return (true, [])
    }

    /// Returns whether the task of a stream has an event; otherwise it waits from now on.
    func beginWait(_ stream: HTTP3Stream) -> Bool {
        if stream.hasUnseenEvents || failure != nil { return true }
        stream.isWaiting = true
        return false
    }

    func endWait(_ stream: HTTP3Stream) -> Bool {
        stream.isWaiting = false
        return stream.hasUnseenEvents || failure != nil
    }

    // MARK: Datagrams

    /// Who sends.
    enum Sending: Sendable {
        case free, taken
        /// Another task had something to send meanwhile.
        case wanted
    }
    private var sending = Sending.free

    /// Lets the caller send, unless another task does: the driver is woken after that.
    mutating func beginSending() -> Bool {
        defer { sending = sending == .free ? .taken : .wanted }
        return sending == .free
    }

    /// Returns whether more is to be sent.
    mutating func endSending() -> Bool {
        defer { sending = .free }
        return sending == .wanted
    }

    /// Whether one request is all that the connection carries.
    var isSole: Bool { streams.count == 1 }

    /// Processes received datagrams. Returns the slots to wake.
    mutating func receive(_ input: DatagramBuffer, on path: UInt32, now: Int64) -> [PollSlot] {
        input.forEach { endpoint.receive($0, ecn: $1, on: path, now: now) }
        lastReceived = now
        if endpoint.silentSince == nil { isUnproven = false }
        return deliver()
    }

    /// What is to be sent, and what follows.
    struct Turn: Sendable {
        var slots: [PollSlot]
        /// The datagrams that were written; `nil` if none are due before `deadline`.
        var datagrams: QUICDatagrams?
        /// When the next turn must be; `.max` for no such moment.
        var deadline: Int64
        /// Whether nothing more is received.
        var isOver: Bool
        var migration: HTTP3Migration
        /// Set if another local address is to be looked for.
        var look: HTTP3Migration.Look?
    }

    /// Handles a deadline that has passed, and writes datagrams that are due.
    /// - Parameters:
    ///   - buffer: where they are written; `nil` while earlier ones are not sent.
    ///   - network: what the driver knows of its network: whether the system refuses to send from the present address,
    ///     and how often the networks have changed. `nil` for a caller that cannot move the connection.
    mutating func turn(
        into buffer: UnsafeMutableRawBufferPointer?, _ network: (isStranded: Bool, changeCount: Int)?, now: Int64
    ) -> Turn {
        endpoint.passDeadline(now: now)
        if buffer != nil { unsentCredit = 0 }
        var turn = Turn(
            slots: [], datagrams: buffer.flatMap { endpoint.nextDatagrams(into: $0, now: now) }, deadline: .max,
            isOver: false, migration: migration)
        turn.slots = deliver()
        // More may follow in this turn.
        guard turn.datagrams == nil else { return turn }
        let hasDropped = buffer != nil && dropEarly()
        if let network {
            let isSilent = endpoint.isPeerSilent(now: now)
            turn.look = migration.look(
                .init(isStranded: network.isStranded, isSilent: isSilent, changeCount: network.changeCount), now: now)
            // New requests do not join those that wait for a silent server, where no other way to it was found.
            let isLost = endpoint.silentSince.map { now - $0 > Self.silenceBeforeRetiring } ?? false
            if isSilent, isLost, turn.look == nil, migration.asked == nil, isOpen { retire(&turn.slots) }
        }
        let end = isUnproven ? endpoint.silentSince.flatMap { start in longestSilence.map { start + $0 } } : nil
        if let end, end <= now, isOpen { turn.slots += fail(.http3(.ended(.idle))) }
        (turn.migration, turn.isOver) = (migration, failure != nil)
        turn.deadline = hasDropped ? now : min(endpoint.deadline ?? .max, end ?? .max)
        return turn
    }

    /// In nanoseconds: what a change to another address may take.
    private static let silenceBeforeRetiring: Int64 = 1_000_000_000

    /// Returns whether the driver is to let other tasks run: after each 4 MiB, because with a peer faster than the
    /// driver it would never wait.
    mutating func yieldsTurn() -> Bool {
        guard receivedInTurn > 4 << 20 else { return false }
        receivedInTurn = 0
        return true
    }

    /// Returns what a trace shows since the last call.
    func takeTrace() -> [HTTP3Trace] { endpoint.takeTrace() }

    // MARK: Paths

    /// Notes which networks a load of the connection may use.
    mutating func restrict(to access: NetworkAccess) { self.access.restrict(to: access) }

    /// Begins to move to another path. A connection that cannot move takes no more requests.
    /// - Parameter slots: receives those to wake.
    /// - Returns: the number of the path, on which datagrams are due; `nil` if the connection stays.
    mutating func migrate(_ look: HTTP3Migration.Look, now: Int64, _ slots: inout [PollSlot]) -> UInt32? {
        let number = migration.nextNumber()
        switch endpoint.migrate(to: number, isImmediate: look == .instead, now: now) {
        case .begun:
            migration.began(number, look)
            return number
        case .forbidden:
            migration.forbidden()
            retire(&slots)
        case .noConnectionID: if look == .instead { retire(&slots) }
        case .tooEarly: break
        }
        return nil
    }

    // MARK: Events of the codecs

    private mutating func deliver() -> [PollSlot] {
        var slots: [PollSlot] = []
        for event in endpoint.takeEvents() {
            switch event {
            case .ready: opened(&slots)
            case .streamsPermitted: permitStreams(&slots)
            case .token: break
            case .confirmed: migration.confirmed()
            case .moved(let path): migration.answered(on: path)
            case .pathFailed(let path):
                // The server may be heard again, but new requests do not wait for that.
                if migration.failed(path) { retire(&slots) }
            case .ended(let end): ended(end, &slots)
            case .http(let event): deliver(event, &slots)
            }
        }
        endpoint.releaseReceived()
        if !heldBack.isEmpty {
            for stream in heldBack where endpoint.held(on: stream.number) < Self.mostHeld / 2 { note(stream, &slots) }
            heldBack.removeAll { $0.hasUnseenEvents }
        }
        return slots
    }

    private mutating func opened(_ slots: inout [PollSlot]) {
        guard case .opening(let opener) = phase else { return }
        do throws(IOFailure) {
            phase = .open(try tls.facts())
            // The codecs have forgotten the request: its load begins it as any other.
            if endpoint.earlyData == .rejected { (sentEarly, streams) = (nil, [:]) }
            places.setLimit(streams.count + endpoint.streamsLeft)
            slots.append(opener)
        } catch { slots += fail(.io(error)) }
    }

    private mutating func permitStreams(_ slots: inout [PollSlot]) {
        places.setLimit(streams.count + endpoint.streamsLeft)
        wakePostponed(&slots)
    }

    /// Wakes the streams that may begin now.
    private func wakePostponed(_ slots: inout [PollSlot]) {
        for stream in postponed.prefix(endpoint.streamsLeft) { note(stream, &slots) }
    }

    /// Lets no more streams begin. Those that wait for it go elsewhere.
    private func retire(_ slots: inout [PollSlot]) {
        places.retire()
        for stream in postponed { note(stream, &slots) }
    }

    /// The reason of a failed handshake is read in this thread, before another call of OpenSSL.
    private mutating func ended(_ end: QUICEnd, _ slots: inout [PollSlot]) {
        switch (phase, end) {
        case (.opening, .handshakeFailed(let alert)): slots += fail(.io(tls.failure(alert: alert)))
        // A server refuses the certificate of a client after the client's handshake is over.
        case (_, .closedByPeer(.transport(let code))) where code.alert != nil:
            slots += fail(.io(tls.failure(alert: code.alert, isReceived: true)))
        default: slots += fail(.http3(.ended(end)))
        }
    }

    private mutating func deliver(_ event: HTTP3Event, _ slots: inout [PollSlot]) {
        switch event {
        case .informational(let number, let head): change(number, &slots) { $0.inbox.informational.append(head) }
        case .response(let number, let head):
            hasResponded = true
            change(number, &slots) { $0.inbox.head = head }
        case .data(let number, let range):
            guard let stream = streams[number] else { break }
            receivedInTurn += range.count
            endpoint.received.withUnsafeBytes { stream.append(UnsafeRawBufferPointer(rebasing: $0[range])) }
            note(stream, &slots)
        case .lateData(let number, let bytes):
            change(number, &slots) { stream in bytes.withUnsafeBytes { stream.append($0) } }
        case .end(let number, let trailers):
            change(number, &slots) {
                $0.isComplete = true
                $0.inbox.trailers = trailers
            }
        case .sent(let number, let count): change(number, &slots) { $0.inbox.sent += count }
        case .sentAll(let number):
            change(number, &slots) {
                $0.hasSentAll = true
                $0.inbox.hasSentAll = true
            }
        case .reset(let number, let code): fail(number, .http3(.reset(code)), &slots)
        case .violation(let number, let violation): fail(number, .wire(violation), &slots)
        case .unprocessed(let number): fail(number, .unprocessed, &slots)
        case .settings: if let memory = endpoint.memory { tls.remember(memory) }
        case .goAway: retire(&slots)
        case .failed(let violation, _): slots += fail(.wire(violation))
        }
    }

    private func change(_ number: Int64, _ slots: inout [PollSlot], _ body: (HTTP3Stream) -> Void) {
        guard let stream = streams[number] else { return }
        body(stream)
        note(stream, &slots)
    }

    private func fail(_ number: Int64, _ failure: HTTP2Failure, _ slots: inout [PollSlot]) {
        change(number, &slots) { stream in
            stream.isOver = true
            // After a complete response, the peer may stop receiving the request (RFC 9114 §4.1).
            if !stream.isComplete { stream.inbox.failure = failure }
            stream.hasSentAll = true
            stream.inbox.hasSentAll = true
        }
    }

    /// Notes an event of a stream, and wakes its task if it waits.
    private func note(_ stream: HTTP3Stream, _ slots: inout [PollSlot]) {
        stream.hasUnseenEvents = true
        stream.isHeldBack = false
        guard stream.isWaiting else { return }
        stream.isWaiting = false
        slots.append(stream.slot)
    }

    /// Notes an event of a stream from outside of the connection. Returns the slot to wake.
    func noteExternalEvent(_ stream: HTTP3Stream) -> PollSlot {
        stream.hasUnseenEvents = true
        return stream.slot
    }

    // MARK: The end

    /// Whether nothing more is received. A last datagram may be due.
    var isOver: Bool { failure != nil }

    /// Fails the connection; only the first failure counts. Streams see it after they have taken what arrived before.
    /// - Returns: the slots to wake.
    mutating func fail(_ why: HTTP2Failure) -> [PollSlot] {
        var slots: [PollSlot] = []
        switch phase {
        case .over: return []
        case .opening(let opener): slots.append(opener)
        case .open: break
        }
        phase = .over(why)
        places.retire()
        endpoint.close()
        for stream in streams.values { note(stream, &slots) }
        for stream in postponed { note(stream, &slots) }
        return slots
    }
}

extension HTTP3State: CustomStringConvertible {
    var description: String {
        switch phase {
        case .opening: "h3(opening)"
        case .open: "h3(\(streams.count) streams)"
        case .over(let failure): "h3(failed: \(failure))"
        }
    }
}

#endif
