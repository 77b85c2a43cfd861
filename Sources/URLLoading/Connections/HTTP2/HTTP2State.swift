// SPDX-License-Identifier: Apache-2.0

// The state of a shared connection as a value: its codec and streams, its reader, its writer, and its end. Each
// transition is one method, called under the lock of `HTTP2Connection`; slots to wake and frames to write are returned,
// and handled after the lock is released.
//
//     reader   none ──▶ stream(waiting: no) ⇄ stream(waiting: yes) ──▶ none        none ──▶ timer ──▶ none
//     writer   idle ──▶ busy ──▶ idle, blocked ──▶ busy                            busy ──▶ muted
//     closing  no ──▶ wanted ──▶ done

import URLLoadingIO
import URLLoadingWire

struct HTTP2State: Sendable {
    // Unsafe: accessed only under the connection's lock, as the whole state.
    nonisolated(unsafe) let codec: HTTP2Codec
    let places: HTTP2StreamSlots
    private(set) var streams: [Int32: HTTP2Stream] = [:]
    var reading = Reading()
    var writing = Writing()
    private(set) var tunnels = Tunnels.none
    private(set) var peerSettings = PeerSettings.awaited([])
    var probing: Probing
    var windows: HTTP2Windows

    /// The failure that ends all streams; nil while the connection works.
    private(set) var failure: HTTP2Failure?
    private(set) var closing = Closing.no
    /// The peer's GOAWAY said ENHANCE_YOUR_CALM: requests that fail from now on are not retried at once (RFC 9113 §7).
    private var isPeerOverloaded = false
    /// Whether a response has begun.
    private(set) var hasResponded = false
    /// The time at which the last stream ended, by the coarse clock.
    private(set) var lastEnd: Int64

    init(_ codec: HTTP2Codec, _ places: HTTP2StreamSlots, _ windows: HTTP2Windows, now: Int64) {
        (self.codec, self.places, self.windows, lastEnd) = (codec, places, windows, now)
        probing = Probing(now: now)
    }

    enum Closing: Sendable { case no, wanted, done }

    enum PeerSettings {
        /// The streams to wake when SETTINGS arrive.
        case awaited([HTTP2Stream])
        case known
    }

    enum Tunnels {
        case none
        /// - reader: stops the task that reads for the tunnels, which waits on the slot.
        case open(count: Int, reader: StopToken, slot: PollSlot)
    }

    // MARK: Streams

    mutating func begin(_ request: HTTP2Request, _ stream: HTTP2Stream, hasBody: Bool) throws(WireViolation) {
        guard failure == nil, closing == .no else {
            throw WireViolation(.local, .http2NoStream, section: "RFC 9113 5.1.1")
        }
        stream.number = try codec.submit(request, hasBody: hasBody)
        streams[stream.number] = stream
        writing.hasUnwritten = true
    }

    /// Takes what has arrived for a stream.
    /// - Parameter now: the time by the coarse clock.
    /// - Returns: the inbox, and whether frames must be written.
    mutating func take(
        _ stream: HTTP2Stream, used: Int, readsBody: Bool, now: @autoclosure () -> Int64
    ) -> (HTTP2Inbox, mustFlush: Bool) {
        runs(stream)
        stream.hasUnseenEvents = false
        stream.readsBody = readsBody
        var mustFlush = false
        if used > 0, !stream.isOver, !stream.isComplete {
            let size = windows.take(
                used, of: &stream.window, isTunnel: stream.isTunnel, held: stream.inbox.dataCount,
                streamCount: streams.count, now: now())
            if let size { codec.resizeWindow(stream.number, to: Int32(clamping: size)) }
            codec.consumed(used, on: stream.number)
            (mustFlush, writing.hasUnwritten) = (true, true)
        }
        var inbox = HTTP2Inbox()
        swap(&inbox, &stream.inbox)
        if inbox.failure == nil, !stream.isComplete { inbox.failure = failure }
        return (inbox, mustFlush)
    }

    /// Appends to a request's body.
    mutating func send(_ bytes: UnsafeRawBufferPointer, on stream: HTTP2Stream) {
        codec.send(bytes, on: stream.number)
        writing.hasUnwritten = true
    }

    mutating func endSending(on stream: HTTP2Stream, _ trailers: Headers) throws(WireViolation) {
        try codec.endSending(on: stream.number, trailers: trailers)
        writing.hasUnwritten = true
    }

    /// Returns whether a frame must be written.
    mutating func prioritize(_ stream: HTTP2Stream, urgency: Int) -> Bool {
        guard stream.urgency != urgency, !stream.isOver, !stream.isComplete, streams[stream.number] === stream
        else { return false }
        stream.urgency = urgency
        codec.prioritize(stream.number, urgency: urgency)
        writing.hasUnwritten = true
        return true
    }

    /// Releases a stream. One that has not ended is reset.
    /// - Returns: the slot of the stream that reads next, and whether frames must be written.
    mutating func end(_ stream: HTTP2Stream, now: Int64) -> (PollSlot?, mustFlush: Bool) {
        runs(stream)
        stream.isWaiting = false
        reading.dequeue(stream)
        lastEnd = now
        windows.release(stream.window)
        guard stream.number > 0 else { return (reading.nextSlot(), false) }
        streams[stream.number] = nil
        guard !stream.isOver, failure == nil else { return (reading.nextSlot(), false) }
        if stream.isComplete, stream.hasSentAll {
            codec.forget(stream.number)
            return (reading.nextSlot(), false)
        }
        codec.reset(stream.number, .cancel)
        writing.hasUnwritten = true
        return (reading.nextSlot(), true)
    }

    /// Notes that the stream's task runs. Each call of the task begins with this.
    mutating func runs(_ stream: HTTP2Stream) {
        guard stream.wasWoken else { return }
        stream.wasWoken = false
        reading.wokenCount -= 1
    }

    func hasUnseenEvents(_ stream: HTTP2Stream) -> Bool { stream.hasUnseenEvents || failure != nil }

    // MARK: Tunnels (RFC 8441)

    /// Returns whether the peer's SETTINGS have arrived. If not, the stream is woken when they do.
    mutating func knowsPeerSettings(_ stream: HTTP2Stream) -> Bool {
        guard case .awaited(var waiting) = peerSettings else { return true }
        if !waiting.contains(where: { $0 === stream }) {
            waiting.append(stream)
            peerSettings = .awaited(waiting)
        }
        return false
    }

    /// - Parameter startReader: called for the first tunnel.
    mutating func beginTunnel(_ stream: HTTP2Stream, startReader: () -> (StopToken, PollSlot)) {
        stream.isTunnel = true
        if case .open(let count, let reader, let slot) = tunnels {
            tunnels = .open(count: count + 1, reader: reader, slot: slot)
        } else {
            let (reader, slot) = startReader()
            tunnels = .open(count: 1, reader: reader, slot: slot)
        }
    }

    /// Ends a tunnel with END_STREAM if the peer has done so (RFC 8441 §5).
    /// - Returns: whether frames must be written.
    mutating func finishTunnel(_ stream: HTTP2Stream) -> Bool {
        guard failure == nil, stream.isComplete, !stream.isOver, codec.queued(on: stream.number) == 0 else {
            return false
        }
        writing.hasUnwritten = true
        return (try? codec.endSending(on: stream.number, trailers: Headers())) != nil
    }

    /// - Returns: the reader to stop, if the tunnel was the last.
    mutating func leaveTunnel() -> StopToken? {
        guard case .open(let count, let reader, let slot) = tunnels else { return nil }
        tunnels = count > 1 ? .open(count: count - 1, reader: reader, slot: slot) : .none
        return count > 1 ? nil : reader
    }

    // MARK: Events of the codec

    /// Delivers the events since the last call to their streams. Returns the slots to wake.
    /// - Parameter input: the buffer that the body ranges of the events refer to.
    mutating func deliver(from input: HTTP2Input?) -> [PollSlot] {
        let events = codec.takeEvents()
        var slots: [PollSlot] = []
        for event in events {
            switch event {
            case .informational(let number, let head): change(number, &slots) { $0.inbox.informational.append(head) }
            case .response(let number, let head):
                hasResponded = true
                change(number, &slots) { $0.inbox.head = head }
            case .data(let number, let range):
                codec.arrived(range.count)
                guard let input, let stream = streams[number] else { break }
                let isAwaited = stream.readsBody && (reading.isReader(stream) || stream.isWaiting || stream.wasWoken)
                stream.inbox.chunks.append(input.chunk(range, isAwaited: isAwaited, beside: &stream.inbox.lent))
                stream.inbox.dataCount += range.count
                note(stream, &slots)
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
            case .reset(let number, let code): fail(number, .reset(code), &slots)
            case .violation(let number, let violation): fail(number, .wire(violation), &slots)
            case .unprocessed(let number): fail(number, isPeerOverloaded ? .enhanceYourCalm : .unprocessed, &slots)
            case .concurrency(let count):
                places.setLimit(count)
                places.setTakesTunnels(codec.takesTunnels)
                if case .awaited(let waiting) = peerSettings { for stream in waiting { note(stream, &slots) } }
                peerSettings = .known
            case .goAway(let code, let last):
                if code == .enhanceYourCalm { isPeerOverloaded = true }
                if code == .noError, streams.keys.contains(where: { $0 > last }) { places.noteEnd(afterStream: last) }
                places.retire()
            case .failed(let violation): slots += fail(.wire(violation))
            case .settingsAcknowledged:
                probing.areSettingsAcknowledged = true
                windows.settingsAcknowledged(now: probing.lastReceived)
            case .pong:
                if let sent = probing.pinged { windows.answered(after: probing.lastReceived - sent) }
            }
        }
        codec.giveBack(consume events)
        return slots
    }

    private mutating func change(_ number: Int32, _ slots: inout [PollSlot], _ body: (HTTP2Stream) -> Void) {
        guard let stream = streams[number] else { return }
        body(stream)
        note(stream, &slots)
    }

    private mutating func fail(_ number: Int32, _ failure: HTTP2Failure, _ slots: inout [PollSlot]) {
        change(number, &slots) { stream in
            stream.isOver = true
            // After a complete response, the peer may stop receiving the request (RFC 9113 §8.1).
            if !stream.isComplete { stream.inbox.failure = failure }
            stream.hasSentAll = true
            stream.inbox.hasSentAll = true
        }
    }

    /// Notes an event of a stream, and wakes its task if it waits.
    private mutating func note(_ stream: HTTP2Stream, _ slots: inout [PollSlot]) {
        stream.hasUnseenEvents = true
        if reading.isReader(stream) {
            if let socket = reading.waitingSocket { slots.append(socket) }
        } else if stream.isTunnel {
            if slots.last !== stream.slot { slots.append(stream.slot) }
        } else if stream.isWaiting {
            stream.isWaiting = false
            stream.wasWoken = true
            reading.wokenCount += 1
            slots.append(stream.slot)
        }
    }

    /// Notes an event of a stream from outside of the connection. Returns the slot to wake.
    mutating func noteExternalEvent(_ stream: HTTP2Stream, socket: PollSlot) -> PollSlot {
        stream.hasUnseenEvents = true
        return reading.isReader(stream) ? socket : stream.slot
    }

    // MARK: The end

    /// Fails the connection; only the first failure counts. Streams see it after they have taken what arrived before.
    mutating func fail(_ why: HTTP2Failure) -> [PollSlot] {
        guard failure == nil else { return [] }
        failure = isPeerOverloaded && why.isLostConnection ? .enhanceYourCalm : why
        places.retire()
        var slots: [PollSlot] = []
        for stream in streams.values { note(stream, &slots) }
        if case .awaited(let waiting) = peerSettings { for stream in waiting { note(stream, &slots) } }
        if case .open(_, _, let slot) = tunnels { slots.append(slot) }
        return slots
    }

    /// Returns whether the caller must close the transport; otherwise its reader or its writer does when it stops.
    mutating func requestClose() -> Bool {
        guard closing == .no else { return false }
        closing = .wanted
        return mustClose
    }

    /// Whether the transport is to be closed, and no task reads or writes: a descriptor that is closed during a system
    /// call may already denote another file.
    var mustClose: Bool { closing == .wanted && reading.isFree && writing.phase != .busy }

    /// Fails the connection before its transport is closed. Returns the slots to wake; nil if the caller must not close
    /// the transport.
    mutating func beginClosing() -> [PollSlot]? {
        guard mustClose else { return nil }
        closing = .done
        if failure == nil { codec.goAway() }
        return fail(.closed)
    }
}

extension HTTP2State: CustomStringConvertible {
    var description: String {
        var words = ["h2(\(streams.count) streams"]
        if let failure { words.append("failed: \(failure)") }
        if closing != .no { words.append("closing") }
        words.append(reading.isFree ? "no reader" : reading.waitingSocket == nil ? "reading" : "waiting for bytes")
        switch writing.phase {
        case .idle: if writing.hasUnwritten { words.append("unwritten frames") }
        case .busy: words.append("writing")
        case .blocked: words.append("waiting for room")
        case .muted: words.append("muted")
        }
        if case .open(let count, _, _) = tunnels { words.append("\(count) tunnels") }
        return words.joined(separator: ", ") + ")"
    }
}
