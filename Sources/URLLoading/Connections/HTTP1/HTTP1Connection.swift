// SPDX-License-Identifier: Apache-2.0

// In this folder: one HTTP/1.1 connection

// One HTTP/1.1 connection: a state and a transport. It has one owner at a time and no lock; it knows neither sessions
// nor redirects. Bytes are read into a buffer that the delivered chunks refer to, so nothing is copied between the
// socket and the caller.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class HTTP1Connection: @unchecked Sendable {
    // Unchecked: a connection has one owner at a time; the pool hands it over under its lock.
    let transport: any Transport
    let slot: PollSlot
    /// The route being served. May change on a connection to a forwarding proxy; see `PoolState`.
    var route: Route
    /// The forwarding proxy that receives the requests; `nil` if the origin does.
    let forwarder: Proxy?
    let isForwarded: Bool
    let identifier: Int
    // Exclusive access to the state below follows from the one owner; release builds do not check it again with each
    // piece, debug builds and so all tests do.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var state: HTTP1State
    let tap: (@Sendable (WireTapEvent) -> Void)?

    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var input: ReceiveBuffer
    /// The request being sent; see `HTTP1Connection+Sending`.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var sending = HTTP1Sending()

    /// The Digest proof of the last request to the proxy, which the proxy may answer with its own.
    var proxyProof: DigestProof?

    /// The byte counts of the current exchange.
    var traffic = HTTP1Traffic()
    /// Receives the times of the current exchange's stages.
    var record: TransactionRecord?
    private(set) lazy var facts = ConnectionFacts(transport, identifier)

    init(_ transport: any Transport, _ route: Route, _ identifier: Int, _ configuration: Configuration) {
        self.transport = transport
        slot = transport.slot
        secure = transport as? TLSTransport
        self.route = route
        forwarder = route.forwarder
        isForwarded = forwarder != nil
        self.identifier = identifier
        // Over TLS 512 KiB gain nothing, and other loads of the same thread wait longer for a read to end.
        input = ReceiveBuffer(largest: (secure == nil ? 512 : 256) * 1024)
        state = HTTP1State(
            HTTP1Codec(
                role: .client, limits: HTTP1Limits(configuration.limits),
                isTolerant: configuration.strictness == .tolerant,
                sendsOldVersion: configuration.requestVersion < .http11))
        tap = configuration.wireTap
        expectContinueTimeout = configuration.timeouts.expectContinue
    }

    func close() {
        transport.close()
        tap?(.closed(connection: identifier))
    }

    /// The length of the body in bytes; zero without a body, nil if unknown.
    var expectedLength: Int64? { state.bodyLength() }

    /// Whether nothing, neither bytes nor an end, follows the last response. Such bytes would be taken for the next
    /// response. The poller may not have reported them yet, so each call asks the kernel.
    var isClean: Bool { input.unread.isEmpty && !transport.hasPendingInput(askingKernel: true) }
    /// Whether the protocol allows another exchange.
    var isReusable: Bool { input.unread.isEmpty && state.isReusable() }

    /// Prepares the connection for being idle, and releases memory.
    func releaseBuffers() {
        endGathering()
        sending.releaseBuffer(keeping: ReceiveBuffer.smallest)
        input.release()
    }

    /// Returns the bytes that were received and not consumed, for the new owner of the transport.
    func takeUnread() -> Chunk? {
        endGathering()
        return input.takeUnread()
    }

    // MARK: Receiving

    /// The head of the final response; nil if more must be read.
    /// - Parameter acceptsUpgrade: whether a 101 is a final response (RFC 9110 §15.2.2).
    func bufferedResponse(
        _ client: any ConnectionClient, acceptsUpgrade: @autoclosure () -> Bool
    ) throws(LoadError) -> HTTP1ResponseHead? {
        if let head = state.takeEarly() { return head }
        while true {
            switch try next() {
            case .response(let head)?: return head
            case .informational(let head)?: client.receivedInterim(head)
            case .upgraded(let head)? where acceptsUpgrade(): return head
            case .data?, .end?, .request?, .upgraded?:
                throw LoadError(.unexpectedUpgrade, phase: .waiting, party: .remote)
            case nil: return nil
            }
        }
    }

    /// The next piece of the body that has been received; `nil` if more must be read.
    func bufferedData() throws(LoadError) -> BodyPiece? {
        let base = input.unread.lowerBound
        switch try next() {
        case .data(let range)?: return input.chunk(range, at: base).map { .chunk($0) }
        case .end?: return .end
        case .request?, .informational?, .response?, .upgraded?:
            throw LoadError(.notHTTP, phase: .receiving, party: .remote)
        case nil: return nil
        }
    }

    /// Whether the final response has come while the request is being sent.
    func hasAnswer(_ client: any ConnectionClient) throws(LoadError) -> Bool {
        try hasContinue(client, isAwaited: false) == false
    }

    /// Whether the body may be sent: true after a 100 that is awaited, false after a final response; `nil` before
    /// either.
    func hasContinue(_ client: any ConnectionClient, isAwaited: Bool = true) throws(LoadError) -> Bool? {
        while true {
            switch try next() {
            case .response(let head)?:
                state.holdEarly(head)
                return false
            case .informational(let head)?:
                client.receivedInterim(head)
                if isAwaited, head.status == .continue { return true }
            case .some: throw LoadError(.unexpectedUpgrade, phase: .sending, party: .remote)
            case nil: if try !read() { return nil }
            }
        }
    }

    private func next() throws(LoadError) -> HTTP1Event? {
        // Most calls precede the response.
        if input.unread.isEmpty, state.awaitsHead { return nil }
        let event = try nextEvent()
        if tap != nil || record != nil { observe(event) }
        return event
    }

    @inline(never)
    private func observe(_ event: HTTP1Event?) {
        switch event {
        case .response(let head)?: report(head)
        case .informational(let head)?:
            report(head)
            record?.clear(.responseStart)
            if !input.unread.isEmpty { record?.mark(.responseStart) }
        default: break
        }
    }

    private func report(_ head: HTTP1ResponseHead) {
        guard tap != nil else { return }
        for violation in state.unreported(in: head) { tap?(.tolerated(violation, connection: identifier)) }
    }

    private func nextEvent() throws(LoadError) -> HTTP1Event? {
        var consumed = 0
        let isInBody = state.hasFinalHead
        defer {
            input.consume(consumed)
            traffic.consume(consumed, isInBody: isInBody)
        }
        return try state.next(input.bytes, consumed: &consumed)
    }

    /// Waits until something is received, and continues to send the request meanwhile.
    /// - Parameter most: the most bytes to read.
    @inline(never)
    func fill(_ client: any ConnectionClient, atMost most: Int = .max) async throws(LoadError) {
        var interest = firstInterest
        while true {
            // The only wait of most loads: it is here, because each function on the way to it would hold a frame.
            if let interest, mustPark(interest, isOffActors: Self.hasNoActor()) {
                await Poller.shared.park(slot, interest, client.handle)
            }
            if client.isSuspended { await pause(client) }
            if try readOrStop(client, atMost: most) {
                // With a peer faster than the reader, the task would never suspend.
                if isTurnOver() { await Task.yield() }
                return
            }
            interest = sending.isUnfinished || secure != nil ? try await goOn(client) : blockedOn
        }
    }

    /// What is waited for before the first read; nil for nothing. Apart from `fill`, whose frame a waiting load holds.
    private var firstInterest: PollSlot.Interest? {
        state.waitsFirst(isGathering: gathering.mark > 1) && !transport.mayHoldMore ? .read : nil
    }

    @inline(never)
    private func readOrStop(_ client: any ConnectionClient, atMost most: Int) throws(LoadError) -> Bool {
        if let reason = client.stopReason { throw LoadError(reason, phase: state.phase) }
        return try read(atMost: most)
    }

    /// Does what is due before the next bytes can come: answers a question, or sends on. Returns what is to be waited
    /// for; nil if there may be bytes already.
    @inline(never)
    private func goOn(_ client: any ConnectionClient) async throws(LoadError) -> PollSlot.Interest? {
        if try await answerQuestion(client) { return nil }
        guard sending.isUnfinished else { return blockedOn }
        try await continueSending(client)
        return nil
    }

    /// Prepares a wait for the socket. Returns false if a short wait in the caller's thread took its place.
    /// - Parameter isOffActors: whether the caller runs outside of actors, whose threads are not kept waiting.
    @inline(never)
    private func mustPark(_ interest: PollSlot.Interest, isOffActors: Bool) -> Bool {
        if interest == .read {
            if isOffActors, waitInThread() { return false }
            if state.acknowledges() { transport.acknowledge() }
        }
        receivedSinceWait = 0
        if let moment = gathering.wait(now: Poller.now()) {
            // Not the session's clock, which a test may hold.
            Poller.shared.schedule(slot, at: moment)
        }
        return true
    }

    /// Waits for some ten microseconds without suspending the task, where that pays. Counts as received bytes, so that
    /// other tasks get the thread after a millisecond or two: see `isTurnOver`.
    private func waitInThread() -> Bool {
        if gathering.nap() {
            receivedSinceWait += Self.turn / 8
            return Poller.shared.napIfAlone()
        }
        // While a request is being sent, another wait may depend on the socket's notifications.
        guard gathering.mark == 1, !sending.isUnfinished else { return false }
        guard Poller.shared.hasFewSockets, !Poller.shared.hasWaiters else { return false }
        receivedSinceWait += Self.turn / 32
        return Poller.shared.waitBriefly(slot)
    }

    /// Whether the caller runs outside of actors. A function, because the compiler crashes on `#isolation == nil` here.
    private static func hasNoActor(_ actor: (any Actor)? = #isolation) -> Bool { actor == nil }

    /// Reads the available bytes; `false` if there are none, or if the request must be sent first.
    func fillNow(_ client: any ConnectionClient) throws(LoadError) -> Bool {
        guard !state.isInputOver, !client.isSuspended, client.stopReason == nil, !sending.isUnfinished else {
            return false
        }
        return try read()
    }

    /// Gives up the slot in the pool while the load is suspended.
    @inline(never)
    func pause(_ client: any ConnectionClient) async {
        client.setUnread(true, route)
        await client.handle.untilResumed()
        client.setUnread(false, route)
    }

    /// Whether the task must yield before it reads on.
    private func isTurnOver() -> Bool {
        guard receivedSinceWait > Self.turn else { return false }
        receivedSinceWait = 0
        return true
    }
    private var receivedSinceWait = 0
    private static let turn = 4 << 20

    /// Answers a handshake question that the server asks after the request, such as for a client certificate. Returns
    /// whether there was one.
    func answerQuestion(_ client: any ConnectionClient) async throws(LoadError) -> Bool {
        guard let secure, let (peer, question) = secure.lateQuestion else { return false }
        try await HandshakeChallenges(transport: secure, peer: peer, client: client).answer(
            question, client.handshakeDecision)
        return true
    }
    let secure: TLSTransport?
    private var blockedOn = PollSlot.Interest.read
    /// The longest wait for a 100 (Continue).
    let expectContinueTimeout: Duration

    /// Reads once; returns false if nothing is available.
    @inline(never)
    private func read(atMost most: Int = .max) throws(LoadError) -> Bool {
        var room = input.makeRoom()
        if room.count > most { room = UnsafeMutableRawBufferPointer(rebasing: room[..<max(1, most)]) }
        let progress: Progress
        do throws(IOFailure) { progress = try transport.read(into: room) } catch {
            // No bytes follow a reset; those received before it are judged like an early end.
            try judgeEnd(error)
            progress = .end
        }
        switch progress {
        case .moved(let count):
            state.received()
            if let record, !record.has(.responseStart) { record.mark(.responseStart) }
            receivedSinceWait += count
            input.received(count, grows: count == room.count && count < most)
            gather { $0.read(count, left: unreadLength, now: Poller.now()) }
            tap?(.received(input.last(count), connection: identifier))
            return true
        case .end:
            state.receivedEnd()
            return true
        case .blocked(let interest):
            blockedOn = interest
            gather { $0.read(0, left: unreadLength, now: Poller.now()) }
            return false
        }
    }

    /// The bytes of the body that are still to be read; nil if unknown, or outside of a body.
    private var unreadLength: Int64? { state.remainingLength().map { $0 - Int64(input.unread.count) } }

    /// Throws the error of a failed read, unless it is an end without close_notify that is conceded: after a whole
    /// record of a body whose only end is that of the connection.
    @inline(never)
    private func judgeEnd(_ failure: IOFailure) throws(LoadError) {
        guard case .tls(let tls) = failure.code, tls.kind == .truncated, state.codec.isCloseDelimited, let secure,
            secure.hasEndedAfterRecord
        else { throw LoadError(failure, state.phase) }
        guard secure.concessions?.allowsMissingCloseNotify == true else {
            throw LoadError(
                TLSFailure(.truncated, name: tls.name, detail: tls.detail, remedies: [.missingCloseNotify]),
                state.phase)
        }
        record?.lacksCloseNotify = true
    }

    /// Lets the data of a fast body gather, as `ReceiveGathering` decides.
    private func gather(_ change: (inout ReceiveGathering) -> Void) {
        let (mark, naps) = (gathering.mark, gathering.naps)
        change(&gathering)
        if gathering.mark != mark, !transport.notifyReadable(at: gathering.mark) { gathering.refuseMark() }
        if gathering.naps != naps { slot.gatherReads(gathering.naps) }
    }
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var gathering = ReceiveGathering()

    /// Without this, the next response would have to be as long as the mark.
    func endGathering() { gather { $0.end() } }
}
