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
    private var early: [HTTP3Stream] = []
    /// The streams whose request bodies wait for acknowledgements.
    private var heldBack: [HTTP3Stream] = []
    /// Whether a response has begun.
    private(set) var hasResponded = false
    /// The time at which the last stream ended, by the coarse clock.
    private(set) var lastEnd: Int64
    /// The time between probes in nanoseconds while streams are open; `nil` for none.
    private let probeInterval: Int64?
    /// The bytes of bodies delivered since the driver last yielded.
    var receivedInTurn = 0
    private(set) var migration: HTTP3Migration
    /// The networks that every load of the connection may use.
    private(set) var access: NetworkAccess

    enum Phase: Sendable {
        /// The slot is woken at the end of the handshake.
        case opening(PollSlot)
        case open(QUICPeerFacts)
        case over(HTTP2Failure)
    }

    init(
        _ endpoint: HTTP3Endpoint, _ tls: QUICTLS, _ places: HTTP2StreamSlots, opener: PollSlot, probeInterval: Int64?,
        _ access: NetworkAccess, changeCount: Int, now: Int64
    ) {
        (self.endpoint, self.tls, self.places, self.probeInterval) = (endpoint, tls, places, probeInterval)
        (self.access, migration) = (access, HTTP3Migration(changeCount: changeCount))
        phase = .opening(opener)
        lastEnd = now
    }

    /// The failure that ends all streams; nil while the connection works.
    var failure: HTTP2Failure? { if case .over(let failure) = phase { failure } else { nil } }

    // MARK: Streams

    /// Begins a request. Returns false if the peer permits no more streams now: the stream's task is woken when it
    /// does.
    mutating func begin(_ request: HTTP2Request, _ stream: HTTP3Stream, hasBody: Bool) throws(WireViolation) -> Bool {
        early.removeAll { $0 === stream }
        guard case .open = phase, !places.isRetired else {
            throw WireViolation(.local, .http3NoStream, section: "RFC 9114 6.1")
        }
        guard let number = try endpoint.submit(request, hasBody: hasBody) else {
            early.append(stream)
            return false
        }
        stream.number = number
        if streams.isEmpty { endpoint.keepAlive(after: probeInterval) }
        streams[number] = stream
        return true
    }

    /// Takes what has arrived for a stream.
    /// - Parameter used: the bytes that the reader has consumed; the peer may send as many more.
    /// - Returns: the inbox, and whether datagrams are due.
    mutating func take(_ stream: HTTP3Stream, used: Int) -> (HTTP2Inbox, mustSend: Bool) {
        stream.hasUnseenEvents = false
        stream.closeChunk()
        var mustSend = false
        stream.uncredited += used
        if stream.uncredited >= Self.leastCredit, !stream.isOver, !stream.isComplete {
            endpoint.consumed(stream.uncredited, on: stream.number)
            (stream.uncredited, mustSend) = (0, true)
        }
        var inbox = HTTP2Inbox()
        swap(&inbox, &stream.inbox)
        if inbox.failure == nil, !stream.isComplete { inbox.failure = failure }
        return (inbox, mustSend)
    }
    /// Credit is given in steps of this size, because each takes a packet.
    private static let leastCredit = 32 * 1024

    /// Returns how many bytes of a request's body the connection takes now. If none, the stream's task is woken when it
    /// takes more.
    mutating func room(on stream: HTTP3Stream) -> Int {
        let room = max(
            0,
            min(Self.mostQueued - endpoint.queued(on: stream.number), Self.mostHeld - endpoint.held(on: stream.number)))
        if room == 0, !stream.isHeldBack {
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
    /// - Returns: whether datagrams are due.
    mutating func end(_ stream: HTTP3Stream, now: Int64) -> Bool {
        lastEnd = now
        early.removeAll { $0 === stream }
        heldBack.removeAll { $0 === stream }
        guard stream.number >= 0 else { return false }
        streams[stream.number] = nil
        if streams.isEmpty { endpoint.keepAlive(after: nil) }
        guard !stream.isOver, failure == nil, !(stream.isComplete && stream.hasSentAll) else { return false }
        endpoint.reset(stream.number, .requestCancelled)
        return true
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

    /// Processes received datagrams. Returns the slots to wake.
    mutating func receive(_ input: DatagramBuffer, on path: UInt32, now: Int64) -> [PollSlot] {
        var slots: [PollSlot] = []
        input.forEach { datagram, ecn in
            endpoint.receive(datagram, ecn: ecn, on: path, now: now)
            slots += deliver()
        }
        return slots
    }

    mutating func passDeadline(now: Int64) -> [PollSlot] {
        endpoint.passDeadline(now: now)
        return deliver()
    }

    /// Writes datagrams that are due. Returns them, and the slots to wake.
    mutating func nextDatagrams(
        into buffer: UnsafeMutableRawBufferPointer, now: Int64
    ) -> (QUICDatagrams?, [PollSlot]) {
        let datagrams = endpoint.nextDatagrams(into: buffer, now: now)
        return (datagrams, deliver())
    }

    /// Returns what a trace shows since the last call.
    func takeTrace() -> [HTTP3Trace] { endpoint.takeTrace() }

    /// When `passDeadline` must be called; `.max` for never.
    var deadline: Int64 { endpoint.deadline ?? .max }

    // MARK: Paths

    /// Notes which networks a load of the connection may use.
    mutating func restrict(to access: NetworkAccess) { self.access.restrict(to: access) }

    /// Returns whether another local address is to be looked for now; see ``HTTP3Migration/look(_:now:)``.
    mutating func look(isStranded: Bool, changeCount: Int, now: Int64) -> HTTP3Migration.Look? {
        migration.look(
            .init(isStranded: isStranded, isSilent: endpoint.isPeerSilent(now: now), changeCount: changeCount),
            now: now)
    }

    /// Begins to move to another path. A connection that cannot move takes no more requests.
    /// - Returns: the number of the path, on which datagrams are due; `nil` if the connection stays.
    mutating func migrate(_ look: HTTP3Migration.Look, now: Int64) -> UInt32? {
        let number = migration.nextNumber()
        switch endpoint.migrate(to: number, isImmediate: look == .instead, now: now) {
        case .begun:
            migration.began(number, look)
            return number
        case .forbidden:
            migration.forbidden()
            places.retire()
        case .noConnectionID: if look == .instead { places.retire() }
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
                if migration.failed(path) { places.retire() }
            case .ended(let end): ended(end, &slots)
            case .http(let event): deliver(event, &slots)
            }
        }
        endpoint.releaseReceived()
        for stream in heldBack where endpoint.held(on: stream.number) < Self.mostHeld / 2 { note(stream, &slots) }
        heldBack.removeAll { $0.hasUnseenEvents }
        return slots
    }

    private mutating func opened(_ slots: inout [PollSlot]) {
        guard case .opening(let opener) = phase else { return }
        do throws(IOFailure) {
            phase = .open(try tls.facts())
            places.setLimit(endpoint.streamsLeft)
            slots.append(opener)
        } catch { slots += fail(.io(error)) }
    }

    private mutating func permitStreams(_ slots: inout [PollSlot]) {
        places.setLimit(streams.count + endpoint.streamsLeft)
        for stream in early.prefix(endpoint.streamsLeft) { note(stream, &slots) }
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
        case .settings: break
        case .goAway: places.retire()
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
        for stream in early { note(stream, &slots) }
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
