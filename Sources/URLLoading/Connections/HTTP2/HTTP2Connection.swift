// One HTTP/2 connection: a codec, a transport, and the streams that share them. No task of its own: whoever waits
// for his stream reads the socket if nobody does (`HTTP2Connection+Leading`), lays what is others' into their inboxes,
// and wakes them. Everything here is under one lock, which is held for no system call.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class HTTP2Connection: @unchecked Sendable {
    let transport: any Transport
    let route: Route
    let identifier: Int
    let tap: (@Sendable (WireTapEvent) -> Void)?
    let clock: LoopClock
    let continueTimeout: Duration
    let facts: ConnectionFacts

    let lock = Lock<Void>(())
    // Under the lock.
    let codec: HTTP2Codec
    var streams: [Int32: HTTP2Stream] = [:]
    /// Why nothing more comes.
    var failure: HTTP2Failure?
    /// Somebody reads; it is the task of `leader`, or the keeper.
    var isLed = false
    /// What fails from now on is not to be sent again at once (RFC 9113 7).
    var wasToldToCalm = false
    var leader: HTTP2Stream?
    /// He waits for the socket, and will not see by himself what was put into the output.
    var isLeaderParked = false
    /// Who may read next, each at its `place`.
    var line: [HTTP2Stream] = []
    /// Woken by news, and not running yet.
    var wokenCount = 0
    var isKeeping = false
    // See `HTTP2Probe`.
    let probeInterval: Int64?
    let probeTimeout: Int64
    var isWatched = false
    /// When the PING went out that is not answered.
    var probed: Int64?
    var areSettingsAcknowledged = false
    // See `HTTP2Connection+Tunnels`.
    var hasPeerSettings = false
    var awaitingSettings: [HTTP2Stream] = []
    var tunnels = 0
    var tunnelReader: HTTP2TunnelReader?
    var lastWritten: Int64
    /// How often a reader found nothing more to read.
    let looks = Atomic<Int>(0)
    private var isClosed = false
    var lastHeard: Int64
    private var lastEnd: Int64

    // Of whoever writes: one at a time.
    private var output: [UInt8] = []
    private var outputSent = 0
    private var isWriting = false
    /// There may be frames that nobody has begun to write.
    var hasUnwritten = true
    var writeBlockedOn: PollSlot.Interest?
    private var isMute = false
    private var sentLines = HTTP2Codec.Watch()

    // Of whoever reads: one at a time.
    var input = HTTP2Input()
    var mustRead = false
    var readBlockedOn = PollSlot.Interest.read
    var receivedLines = HTTP2Codec.Watch()

    // For the pool, without the lock: how many streams there are, and may be.
    private let places = Atomic<Int>(0)
    private let limit = Atomic<Int>(100)
    private let isOpen = Atomic<Bool>(true)
    let takesTunnels = Atomic<Bool>(false)
    private let begun = Atomic<Int>(0)
    /// Places that have come since the pool was told.
    private let grown = Atomic<Int>(0)
    private let hasReport = Atomic<Bool>(false)
    /// Whose it is, set before anybody else sees it.
    var anchor: Anchor.Weak?

    init(_ transport: any Transport, _ route: Route, _ identifier: Int, _ configuration: Configuration) throws(WireViolation) {
        self.transport = transport
        self.route = route
        self.identifier = identifier
        facts = ConnectionFacts(transport, identifier)
        tap = configuration.wireTap
        clock = configuration.clock
        continueTimeout = configuration.continueTimeout
        codec = try HTTP2Codec(limits: HTTP2Limits(configuration.limits))
        probeInterval = configuration.probeInterval.map(LoadControl.nanoseconds)
        probeTimeout = LoadControl.nanoseconds(configuration.probeTimeout)
        lastHeard = configuration.clock.coarseNow()
        lastWritten = lastHeard
        lastEnd = lastHeard
    }

    // MARK: Places

    /// Takes a place for a stream, if there is one. `leave` gives it back.
    func enter() -> Bool {
        var count = places.load(ordering: .relaxed)
        while isOpen.load(ordering: .acquiring), count < limit.load(ordering: .relaxed) {
            let (exchanged, seen) = places.compareExchange(expected: count, desired: count + 1, ordering: .acquiringAndReleasing)
            if exchanged { return true }
            count = seen
        }
        return false
    }

    /// Returns whether that was the last stream.
    func leave() -> Bool { places.subtract(1, ordering: .sequentiallyConsistent).newValue == 0 }

    /// It takes no more streams.
    var isRetired: Bool { !isOpen.load(ordering: .sequentiallyConsistent) }
    /// To be followed by `report`, outside of the lock.
    func retire() {
        if isOpen.exchange(false, ordering: .sequentiallyConsistent) { hasReport.store(true, ordering: .releasing) }
    }
    /// In one order with `isRetired`: of who leaves last and who retires it, at least one sees what the other did.
    var streamCount: Int { places.load(ordering: .sequentiallyConsistent) }
    /// Streams that were begun so far.
    var streamsBegun: Int { begun.load(ordering: .relaxed) }
    /// When its last stream ended.
    var restsSince: Int64 { lock.withLock { _ in lastEnd } }
    /// After how many others it came to rest; see `PoolState.Idle`. Under the pool's lock.
    var rest: UInt64 = 0

    /// To be followed by `report`, outside of the lock.
    func setLimit(_ count: Int) {
        let new = max(0, min(count, 1 << 20))
        let old = limit.exchange(new, ordering: .relaxed)
        guard new > old else { return }
        grown.add(new - old, ordering: .relaxed)
        hasReport.store(true, ordering: .releasing)
    }

    /// Tells the pool what loads that wait there can do something with: places, or that there are none any more.
    func report() {
        guard hasReport.load(ordering: .relaxed), hasReport.exchange(false, ordering: .acquiringAndReleasing) else { return }
        anchor?.anchor?.pool.changed(self, grownBy: grown.exchange(0, ordering: .relaxed))
    }

    // MARK: Streams

    /// Begins a stream for whoever has a place. Nothing goes out before he waits, or `flush`.
    func begin(_ request: HTTP2Request, _ stream: HTTP2Stream, hasBody: Bool) throws(LoadError) {
        begun.add(1, ordering: .relaxed)
        do throws(WireViolation) {
            let beginsWatch = try lock.withLock { (_) throws(WireViolation) in
                guard failure == nil, !isClosed else { throw WireViolation(.local, .http2NoStream, section: "RFC 9113 5.1.1") }
                stream.number = try codec.submit(request, hasBody: hasBody)
                streams[stream.number] = stream
                hasUnwritten = true
                return self.beginsWatch()
            }
            if beginsWatch { scheduleWatch() }
        } catch {
            if error.code == .http2NoStream {
                retire()
                report()
            }
            throw LoadError(error, .sending)
        }
    }

    /// What has come for a stream since the last time.
    /// - Parameters:
    ///   - used: bytes of what was taken before that its reader has used up: the peer may send as many more.
    ///   - readsBody: if there is nothing, its body is what he waits for.
    func take(_ stream: HTTP2Stream, used: Int, readsBody: Bool) -> HTTP2Inbox {
        var mustFlush = false
        let taken = lock.withLock { _ in
            runs(stream)
            stream.hasNews = false
            stream.readsBody = readsBody
            if used > 0, !stream.isOver, !stream.isComplete {
                stream.taken += Int64(used)
                codec.consumed(used, on: stream.number)
                // Who has read twice what may be on its way reads as fast as it comes.
                if stream.window < HTTP2Stream.widestWindow, stream.taken >= Int64(stream.window) * 2 {
                    stream.window = min(stream.window * 4, HTTP2Stream.widestWindow)
                    codec.widen(stream.number, to: stream.window)
                }
                (mustFlush, hasUnwritten) = (true, true)
            }
            var taken = HTTP2Inbox()
            swap(&taken, &stream.inbox)
            if taken.failure == nil, !stream.isComplete { taken.failure = failure }
            return taken
        }
        if mustFlush { nudge() }
        return taken
    }

    /// Its task runs, whatever it does next: nobody waits for that. Under the lock.
    func runs(_ stream: HTTP2Stream) {
        guard stream.wasWoken else { return }
        stream.wasWoken = false
        wokenCount -= 1
    }

    /// Adds to a request's body. Returns how much waits for the peer then.
    func send(_ bytes: UnsafeRawBufferPointer, on stream: HTTP2Stream) -> Int {
        lock.withLock { _ in
            codec.send(bytes, on: stream.number)
            hasUnwritten = true
            return codec.queued(on: stream.number)
        }
    }

    func queued(on stream: HTTP2Stream) -> Int { lock.withLock { _ in codec.queued(on: stream.number) } }

    func endSending(on stream: HTTP2Stream, _ trailers: Headers) throws(WireViolation) {
        try lock.withLock { (_) throws(WireViolation) in
            try codec.endSending(on: stream.number, trailers: trailers)
            hasUnwritten = true
        }
    }

    /// Its load has become more or less urgent.
    func prioritize(_ stream: HTTP2Stream?, urgency: Int) {
        guard let stream else { return }
        let hasChanged = lock.withLock { _ in
            guard stream.urgency != urgency, !stream.isOver, !stream.isComplete, streams[stream.number] === stream else { return false }
            stream.urgency = urgency
            codec.prioritize(stream.number, urgency: urgency)
            hasUnwritten = true
            return true
        }
        if hasChanged { nudge() }
    }

    /// Nobody has the stream any more. One that has not ended is ended.
    func end(_ stream: HTTP2Stream) {
        let (next, mustFlush) = lock.withLock { _ in
            runs(stream)
            stream.isWaiting = false
            dropFromLine(stream)
            lastEnd = clock.coarseNow()
            guard stream.number > 0 else { return (nextInLine(), false) }
            streams[stream.number] = nil
            guard !stream.isOver, failure == nil else { return (nextInLine(), false) }
            if stream.isComplete, stream.hasSentAll {
                codec.forget(stream.number)
                return (nextInLine(), false)
            }
            codec.reset(stream.number, .cancel)
            hasUnwritten = true
            return (nextInLine(), true)
        }
        next?.wake()
        if mustFlush { nudge() }
    }

    /// Something of the stream's own has happened, outside of the connection.
    func poke(_ stream: HTTP2Stream) {
        let leads = lock.withLock { _ in
            stream.hasNews = true
            return leader === stream
        }
        if leads { transport.slot.wake() } else { stream.slot.wake() }
    }

    // MARK: The end

    /// Nothing more comes. Streams hear of it when they have taken what had come before.
    func fail(_ why: HTTP2Failure) {
        retire()
        let slots = lock.withLock { _ in failUnderLock(why) }
        for slot in slots { slot.wake() }
        report()
    }

    func failUnderLock(_ why: HTTP2Failure) -> [PollSlot] {
        guard failure == nil else { return [] }
        failure = wasToldToCalm && why.isLostConnection ? .calm : why
        retire()
        var slots: [PollSlot] = []
        for stream in streams.values { note(stream, &slots) }
        for stream in awaitingSettings { note(stream, &slots) }
        if let tunnelReader { slots.append(tunnelReader.stream.slot) }
        return slots
    }

    func close() {
        retire()
        let isOurs = lock.withLock { _ in
            guard !isClosed else { return false }
            isClosed = true
            // The keeper is looking: he closes it when he has.
            return !isLed
        }
        if isOurs { closeTransport() }
        report()
    }

    /// Whoever reads last closes what was to be closed meanwhile. Under the lock.
    var closesAfterReading: Bool { isClosed && !isTransportClosed }

    func closeTransport() {
        let says = lock.withLock { _ in
            guard !isTransportClosed else { return false }
            isTransportClosed = true
            guard failure == nil else { return true }
            codec.goAway()
            return true
        }
        guard says else { return }
        flush()
        fail(.closed)
        transport.close()
        tap?(.closed(connection: identifier))
    }
    private var isTransportClosed = false

    // MARK: Writing

    /// Sends what there is, unless somebody does so soon.
    func nudge() {
        if lock.withLock({ _ in !isLed || isLeaderParked }) { flush() }
    }

    /// Sends what there is, as far as it goes without waiting. Whoever comes while somebody writes leaves his frames
    /// to him.
    func flush() {
        guard claimWriting() else { return }
        while fillOutput() {
            let outcome = output.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[outputSent...])
                return Result { () throws(IOFailure) in try transport.write(rest) }
            }
            switch outcome {
            case .success(.moved(let count)):
                if let tap { told(count, tap) }
                outputSent += count
            case .success(.blocked(let interest)):
                let wakesLeader = lock.withLock { _ in
                    isWriting = false
                    writeBlockedOn = interest
                    return isLeaderParked
                }
                // He waits for what can be read alone.
                if wakesLeader { transport.slot.wake() }
                return
            case .success(.end), .failure: return stopWriting()
            }
        }
    }

    private func told(_ count: Int, _ tap: @Sendable (WireTapEvent) -> Void) {
        let lines = output.withUnsafeBytes {
            sentLines.lines(UnsafeRawBufferPointer(rebasing: $0[outputSent..<outputSent + count]), skipsPreface: true)
        }
        for line in lines { tap(.frame(line, isSent: true, connection: identifier)) }
    }

    /// Under the lock: the reader is to write before he waits.
    var mustWriteFirst: Bool { hasUnwritten && !isWriting && !isMute && writeBlockedOn == nil }

    private func claimWriting() -> Bool {
        lock.withLock { _ in
            guard !isWriting, !isMute else { return false }
            isWriting = true
            return true
        }
    }

    /// Returns false if there is nothing to write; nobody writes then.
    private func fillOutput() -> Bool {
        var slots: [PollSlot] = []
        let goesOn = lock.withLock { _ in
            if outputSent == output.count {
                if outputSent > 0 { lastWritten = clock.coarseNow() }
                output.removeAll(keepingCapacity: true)
                outputSent = 0
                hasUnwritten = false
                codec.takeOutput(into: &output, upTo: Self.outputSize)
                slots = deposit(codec.takeEvents())
            }
            guard !output.isEmpty else {
                isWriting = false
                writeBlockedOn = nil
                return false
            }
            return true
        }
        for slot in slots { slot.wake() }
        report()
        return goesOn
    }
    private static let outputSize = 64 * 1024

    /// The peer hears nothing more. What it has said before may still lie here: whoever reads finds it, and the end.
    private func stopWriting() {
        retire()
        lock.withLock { _ in
            (isWriting, isMute) = (false, true)
            writeBlockedOn = nil
        }
        transport.slot.wake()
        report()
    }
}

extension HTTP2Limits {
    fileprivate init(_ limits: Configuration.Limits) {
        self.init()
        headSize = min(max(0, limits.headSize), 1 << 30)
        fieldCount = max(0, limits.fieldCount)
        informationalCount = max(0, limits.informationalCount)
    }
}
