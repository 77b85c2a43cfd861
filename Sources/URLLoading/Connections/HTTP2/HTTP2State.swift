// The state of a shared connection as a value: its codec and streams, its reader, its writer, and its end. Each
// transition is one method, called under the lock of `HTTP2Connection`; slots to wake and frames to write are returned,
// and handled after the lock is released.
//
//     reader   none ──▶ stream(waiting: no) ⇄ stream(waiting: yes) ──▶ none        none ──▶ timer ──▶ none
//     writer   idle ──▶ busy ──▶ idle, blocked ──▶ busy                            busy ──▶ muted
//     closing  no ──▶ wanted ──▶ done

import URLLoadingIO
import URLLoadingWire

/// Unchecked: the codec and the streams are accessed only under the connection's lock.
struct HTTP2State: @unchecked Sendable {
    let codec: HTTP2Codec
    let places: HTTP2Places
    private(set) var streams: [Int32: HTTP2Stream] = [:]
    private(set) var reading = Reading()
    private(set) var writing = Writing()
    private(set) var tunnels = Tunnels.none
    private(set) var peerSettings = PeerSettings.awaited([])
    var probing: Probing

    /// The failure that ends all streams; nil while the connection works.
    private(set) var failure: HTTP2Failure?
    private(set) var closing = Closing.no
    /// The peer's GOAWAY said ENHANCE_YOUR_CALM: requests that fail from now on are not retried at once (RFC 9113 §7).
    private var isPeerOverloaded = false
    /// The time at which the last stream ended, by the coarse clock.
    private(set) var lastEnd: Int64

    init(_ codec: HTTP2Codec, _ places: HTTP2Places, now: Int64) {
        (self.codec, self.places, lastEnd) = (codec, places, now)
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
    /// - Returns: the inbox, and whether frames must be written.
    mutating func take(_ stream: HTTP2Stream, used: Int, readsBody: Bool) -> (HTTP2Inbox, mustFlush: Bool) {
        runs(stream)
        stream.hasNews = false
        stream.readsBody = readsBody
        var mustFlush = false
        if used > 0, !stream.isOver, !stream.isComplete {
            stream.taken += Int64(used)
            codec.consumed(used, on: stream.number)
            // A reader that has consumed twice the window keeps up with the connection, so its window grows.
            if stream.window < HTTP2Stream.widestWindow, stream.taken >= Int64(stream.window) * 2 {
                stream.window = min(stream.window * 4, HTTP2Stream.widestWindow)
                codec.widen(stream.number, to: stream.window)
            }
            (mustFlush, writing.hasUnwritten) = (true, true)
        }
        var inbox = HTTP2Inbox()
        swap(&inbox, &stream.inbox)
        if inbox.failure == nil, !stream.isComplete { inbox.failure = failure }
        return (inbox, mustFlush)
    }

    /// Appends to a request's body. Returns the number of bytes that wait for the peer.
    mutating func send(_ bytes: UnsafeRawBufferPointer, on stream: HTTP2Stream) -> Int {
        codec.send(bytes, on: stream.number)
        writing.hasUnwritten = true
        return codec.queued(on: stream.number)
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

    func hasNews(_ stream: HTTP2Stream) -> Bool { stream.hasNews || failure != nil }

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

    /// Delivers events to their streams. Returns the slots to wake.
    /// - Parameter input: the buffer that the body ranges of the events refer to.
    mutating func deliver(_ events: [HTTP2Event], from input: HTTP2Input?) -> [PollSlot] {
        var slots: [PollSlot] = []
        for event in events {
            switch event {
            case .informational(let number, let head): change(number, &slots) { $0.inbox.informational.append(head) }
            case .response(let number, let head): change(number, &slots) { $0.inbox.head = head }
            case .data(let number, let range):
                codec.arrived(range.count)
                guard let input, let stream = streams[number] else { break }
                let isAwaited = stream.readsBody && (reading.isReader(stream) || stream.isWaiting || stream.wasWoken)
                stream.inbox.chunks.append(input.chunk(range, isAwaited: isAwaited, after: stream.inbox.chunks.last))
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
            case .unprocessed(let number): fail(number, isPeerOverloaded ? .calm : .unprocessed, &slots)
            case .concurrency(let count):
                places.setLimit(count)
                places.setTakesTunnels(codec.takesTunnels)
                if case .awaited(let waiting) = peerSettings { for stream in waiting { note(stream, &slots) } }
                peerSettings = .known
            case .goAway(let code):
                if code == .enhanceYourCalm { isPeerOverloaded = true }
                places.retire()
            case .failed(let violation): slots += fail(.wire(violation))
            case .settingsAcknowledged: probing.areSettingsAcknowledged = true
            case .pong: break
            }
        }
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
        stream.hasNews = true
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
    mutating func poke(_ stream: HTTP2Stream, socket: PollSlot) -> PollSlot {
        stream.hasNews = true
        return reading.isReader(stream) ? socket : stream.slot
    }

    // MARK: The end

    /// Fails the connection; only the first failure counts. Streams see it after they have taken what arrived before.
    mutating func fail(_ why: HTTP2Failure) -> [PollSlot] {
        guard failure == nil else { return [] }
        failure = isPeerOverloaded && why.isLostConnection ? .calm : why
        places.retire()
        var slots: [PollSlot] = []
        for stream in streams.values { note(stream, &slots) }
        if case .awaited(let waiting) = peerSettings { for stream in waiting { note(stream, &slots) } }
        if case .open(_, _, let slot) = tunnels { slots.append(slot) }
        return slots
    }

    /// Returns whether the caller must close the transport; otherwise the reader does when it stops.
    mutating func wantClose() -> Bool {
        guard closing == .no else { return false }
        closing = .wanted
        return reading.isFree
    }

    /// Returns false if the transport is closed or being closed.
    mutating func beginClosing() -> Bool {
        guard closing != .done else { return false }
        closing = .done
        if failure == nil { codec.goAway() }
        return true
    }
}

// MARK: - The reader

extension HTTP2State {
    /// The task that reads the socket, and the queue of the next ones.
    struct Reading {
        private enum Reader {
            case none
            /// A look by the timer, or by a load that takes a slot.
            case look
            /// The task of a stream.
            case stream(HTTP2Stream)
            /// The task of a stream that waits on the socket's slot, and must be woken to write frames.
            case waiting(HTTP2Stream, PollSlot)
        }
        private var reader = Reader.none
        /// The streams that may read next, each at its `place`.
        private var queue: [HTTP2Stream] = []
        /// The number of tasks that were woken by events and do not run yet.
        fileprivate(set) var wokenCount = 0
        private var isTimerSet = false

        var isFree: Bool { if case .none = reader { true } else { false } }

        func isReader(_ stream: HTTP2Stream) -> Bool {
            switch reader {
            case .none, .look: false
            case .stream(let reader), .waiting(let reader, _): reader === stream
            }
        }

        /// The socket's slot, if the reader waits there.
        var waitingSocket: PollSlot? { if case .waiting(_, let slot) = reader { slot } else { nil } }

        mutating func begin(_ stream: HTTP2Stream) -> Bool {
            guard isFree else { return false }
            reader = .stream(stream)
            return true
        }

        mutating func beginLook() -> Bool {
            guard isFree else { return false }
            reader = .look
            return true
        }

        mutating func wait(on slot: PollSlot) {
            if case .stream(let stream) = reader { reader = .waiting(stream, slot) }
        }
        mutating func endWait() { if case .waiting(let stream, _) = reader { reader = .stream(stream) } }
        mutating func end() { reader = .none }

        mutating func enqueue(_ stream: HTTP2Stream) {
            guard stream.place == nil else { return }
            stream.place = queue.count
            queue.append(stream)
        }

        /// Removes a stream that ends, so that it does not stay in the queue of a long-running reader.
        mutating func dequeue(_ stream: HTTP2Stream) {
            guard let place = stream.place, let last = queue.popLast() else { return }
            stream.place = nil
            guard last !== stream else { return }
            queue[place] = last
            last.place = place
        }

        /// Returns the slot of the next stream to read, if no task reads.
        mutating func nextSlot() -> PollSlot? {
            guard isFree else { return nil }
            while let last = queue.popLast() {
                last.place = nil
                if last.isWaiting, !last.hasNews { return last.slot }
            }
            return nil
        }

        mutating func setTimer() -> Bool {
            defer { isTimerSet = true }
            return !isTimerSet
        }

        mutating func timerFired() { isTimerSet = false }
    }

    enum Part {
        case news
        case read
        /// Waits while another task reads.
        case wait(mustFlush: Bool)
    }

    /// Returns how the task of a stream waits for an event.
    mutating func part(of stream: HTTP2Stream) -> Part {
        if hasNews(stream) { return .news }
        if reading.begin(stream) { return .read }
        stream.isWaiting = true
        reading.enqueue(stream)
        return .wait(mustFlush: reading.waitingSocket != nil)
    }

    /// Handles the wake-up of a stream's task. Returns whether its wait continues, and otherwise the slot of the next
    /// reader.
    mutating func wokeUp(_ stream: HTTP2Stream, isOver: Bool) -> (goesOn: Bool, next: PollSlot?) {
        stream.isWaiting = false
        runs(stream)
        guard stream.hasNews || isOver || failure != nil else { return (true, nil) }
        return (false, reading.nextSlot())
    }

    enum Parking {
        case news, write
        case wait(PollSlot.Interest)
    }

    /// Returns how the reader waits when the socket is empty.
    /// - Parameter blockedOn: the event that its last read waits for: TLS may have to write before it can read.
    mutating func park(_ stream: HTTP2Stream, on slot: PollSlot, blockedOn: PollSlot.Interest) -> Parking {
        if hasNews(stream) { return .news }
        if writing.awaitsWriter { return .write }
        reading.wait(on: slot)
        return .wait(writing.isBlocked(on: .write) || blockedOn == .write ? .write : .read)
    }

    mutating func unpark() { reading.endWait() }

    struct AfterReading {
        /// The slot of the stream that reads next.
        var next: PollSlot?
        var closesTransport = false
        var setsTimer = false
    }

    mutating func endReading() -> AfterReading {
        reading.end()
        var after = AfterReading(next: reading.nextSlot(), closesTransport: closing == .wanted)
        if after.next == nil, failure == nil, !after.closesTransport { after.setsTimer = reading.setTimer() }
        return after
    }

    /// Returns whether the caller may read the socket.
    mutating func beginLook() -> Bool { failure == nil && reading.beginLook() }

    mutating func timerFired() -> Bool {
        reading.timerFired()
        return beginLook()
    }
}

// MARK: - The writer

extension HTTP2State {
    struct Writing {
        fileprivate enum Phase: Equatable {
            case idle
            case busy
            /// The socket is not writable for now.
            case blocked(PollSlot.Interest)
            /// A write has failed, so nothing more is written. Bytes that the peer sent before may still be read.
            case muted
        }
        fileprivate var phase = Phase.idle
        /// There may be frames that no write has included.
        fileprivate(set) var hasUnwritten = true

        /// Frames wait, and no task is writing.
        var awaitsWriter: Bool { hasUnwritten && phase == .idle }

        func isBlocked(on interest: PollSlot.Interest) -> Bool { phase == .blocked(interest) }
    }

    /// Returns whether the caller writes. It also writes the frames that are added meanwhile.
    mutating func beginWriting() -> Bool {
        switch writing.phase {
        case .busy, .muted: return false
        case .idle, .blocked:
            writing.phase = .busy
            return true
        }
    }

    /// Moves frames into the writer's empty buffer.
    mutating func takeOutput(into output: inout [UInt8], upTo size: Int) -> [PollSlot] {
        writing.hasUnwritten = false
        codec.takeOutput(into: &output, upTo: size)
        return deliver(codec.takeEvents(), from: nil)
    }

    mutating func endWriting() { writing.phase = .idle }
    mutating func muteWriting() { writing.phase = .muted }

    /// Returns the slot of a reader that waits for input only, and must now also wait for the socket to become
    /// writable.
    mutating func blockWriting(on interest: PollSlot.Interest) -> PollSlot? {
        writing.phase = .blocked(interest)
        return reading.waitingSocket
    }

    /// Whether the caller must write new frames itself; otherwise the reader does, before it waits.
    var mustFlush: Bool { reading.isFree || reading.waitingSocket != nil }
}

// MARK: - Probes

extension HTTP2State {
    /// The liveness of the peer (`HTTP2Probe`). Times are those of the coarse clock.
    struct Probing {
        var lastReceived: Int64
        var lastWritten: Int64
        /// The time of the PING that has not been answered.
        private(set) var pinged: Int64?
        /// The timer that checks for silence while streams are open is set.
        private var isWatching = false
        fileprivate(set) var areSettingsAcknowledged = false

        init(now: Int64) { (lastReceived, lastWritten) = (now, now) }

        mutating func beginWatching() -> Bool {
            defer { isWatching = true }
            return !isWatching
        }

        fileprivate mutating func keepWatching(_ goesOn: Bool) -> Int64? {
            isWatching = goesOn
            return goesOn ? lastReceived : nil
        }

        fileprivate mutating func ping(now: Int64) { pinged = now }
        fileprivate mutating func answered() { pinged = nil }
    }

    /// Queues a PING if nothing has arrived since a time and no PING is unanswered. Returns whether it did.
    mutating func ping(ifSilentSince moment: Int64, now: Int64) -> Bool {
        guard failure == nil, probing.pinged == nil, probing.lastReceived <= moment else { return false }
        probing.ping(now: now)
        codec.ping()
        writing.hasUnwritten = true
        return true
    }

    /// Handles the silence timer. Returns the time of the last input; nil if no further check is needed.
    mutating func keepWatching() -> Int64? { probing.keepWatching(failure == nil && !streams.isEmpty) }

    enum Judgement {
        case answered
        /// The answer is not due before this time.
        case notBefore(Int64)
        /// The reader must read first, so that a busy machine is not mistaken for a dead path.
        case afterReader
        case late
    }

    /// Decides whether an answer is late.
    /// - Parameters:
    ///   - isPing: true for the answer to a PING, false for the acknowledgement of SETTINGS.
    ///   - hasLooked: whether the reader has read since it was asked to; nil if it was not asked.
    mutating func judge(isPing: Bool, hasLooked: Bool?, now: Int64, timeout: Int64) -> Judgement {
        guard failure == nil, let due = isPing ? pongDue(timeout) : settingsDue else { return .answered }
        guard now >= due else { return .notBefore(due) }
        return reading.isFree || hasLooked == true ? .late : .afterReader
    }

    private var settingsDue: Int64? { probing.areSettingsAcknowledged ? nil : .min }

    private mutating func pongDue(_ timeout: Int64) -> Int64? {
        guard let sent = probing.pinged else { return nil }
        guard probing.lastReceived < sent else {
            probing.answered()
            return nil
        }
        // The PING is queued behind frames that were written before, which may take long on a slow link.
        let isSending = streams.values.contains { $0.isTunnel ? codec.queued(on: $0.number) > 0 : !$0.hasSentAll }
        return max(sent, probing.lastWritten) + timeout * (isSending ? Self.patienceWhileSending : 1)
    }
    private static let patienceWhileSending: Int64 = 6
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
