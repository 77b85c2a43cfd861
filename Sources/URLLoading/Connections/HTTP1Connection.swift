// One HTTP/1.1 connection: a codec and a transport, nothing else. It has one owner at a time and no
// lock; it knows neither sessions nor redirects. Bytes are read into a buffer that the chunks handed
// out refer to: nothing is copied between the socket and the caller.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class HTTP1Connection: @unchecked Sendable {
    let transport: any Transport
    /// Whom it serves now. Of those that a proxy forwards for it may become another; see `PoolState`.
    var route: Route
    /// The proxy that requests are said to; `nil` if it is the origin.
    let forwarder: Proxy?
    let identifier: Int
    var codec: HTTP1Codec
    let tap: (@Sendable (WireTapEvent) -> Void)?

    /// What was received and not consumed: `unread` of `storage`.
    private var storage: ChunkStorage?
    private var unread = 0..<0
    private var sawEnd = false
    /// The next buffer's size: it grows while reads fill what they are given.
    private var capacity = HTTP1Connection.smallestBuffer
    /// What is going out; see `HTTP1Connection+Sending`.
    var sending = HTTP1Sending()

    /// A request was answered before all of it had gone out: what is missing would be the beginning
    /// of the next one.
    var isCut = false

    /// The login of its route has opened it.
    var isOpened = false
    /// What the proxy was told last with Digest: it may prove itself.
    var proxyProof: DigestProof?

    /// Bytes of the exchange going on.
    var traffic = HTTP1Traffic()
    /// Whoever wants to know when they came.
    var record: TransactionRecord?
    private(set) lazy var facts = ConnectionFacts(transport, identifier)

    /// Exchanges begun.
    var exchanges = 0
    /// Whether anything was received in the exchange going on.
    var hasReceived = false

    /// Heads and small bodies fit; large bodies grow to the other within two reads.
    private static let smallestBuffer = 16 * 1024
    private static let largestBuffer = 256 * 1024

    init(_ transport: any Transport, _ route: Route, _ identifier: Int, _ configuration: Configuration) {
        self.transport = transport
        secure = transport as? TLSTransport
        self.route = route
        forwarder = route.forwarder
        self.identifier = identifier
        codec = HTTP1Codec(role: .client, limits: HTTP1Limits(configuration.limits))
        tap = configuration.wireTap
        expectContinueTimeout = configuration.expectContinueTimeout
    }

    func close() {
        transport.close()
        tap?(.closed(connection: identifier))
    }

    /// The length of the body, if it was announced or there is none.
    var expectedLength: Int64? { codec.isReceiveComplete ? 0 : codec.remainingLength }

    /// Whether nothing was received behind the last answer, neither bytes nor an end. Such bytes would be taken for
    /// the next answer (security 46), and the poller may not have reported them yet: each call asks the kernel.
    var isClean: Bool { unread.isEmpty && !transport.hasPendingInput(askingKernel: true) }
    /// May it carry another exchange by the rules of the protocol?
    var isReusable: Bool { codec.reuse == .yes && unread.isEmpty && !sawEnd && !isCut }

    /// Before it is kept for later: what a resting connection need not hold is given up. Returns the
    /// buffer if another connection can go on with it.
    func rest() -> ChunkStorage? {
        noteFlood(false)
        sending.rest(keeping: Self.smallestBuffer)
        let isPlain = capacity == Self.smallestBuffer && isKnownUniquelyReferenced(&storage)
        capacity = Self.smallestBuffer
        defer { storage = nil }
        // A place in the buffer that goes is none in the next.
        if unread.isEmpty { unread = 0..<0 }
        return isPlain && unread.isEmpty ? storage : nil
    }

    /// What was received and not consumed, for whoever takes over the transport.
    func takeUnread() -> Chunk? {
        defer { (storage, unread) = (nil, 0..<0) }
        guard let storage, !unread.isEmpty else { return nil }
        return Chunk(storage: storage, range: unread)
    }

    func wake(with spare: inout [ChunkStorage]) {
        if storage == nil { storage = spare.popLast() }
    }

    // MARK: Receiving

    /// Where a failure of receiving falls: before the head of the answer, or after it.
    var phase = LoadError.Phase.waiting

    /// A final response that came while the request was still being sent.
    var answer: HTTP1ResponseHead?

    /// The head of the final response; nil if more must be read.
    /// - Parameter acceptsUpgrade: whether a 101 is a final response (RFC 9110 §15.2.2).
    func bufferedResponse(
        _ client: any ConnectionClient, acceptsUpgrade: @autoclosure () -> Bool
    ) throws(LoadError) -> HTTP1ResponseHead? {
        if let answer {
            phase = .receiving
            return answer
        }
        while true {
            switch try next() {
            case .response(let head)?:
                phase = .receiving
                return head
            case .informational(let head)?: client.informed(head)
            case .upgraded(let head)? where acceptsUpgrade():
                phase = .receiving
                return head
            case .data?, .end?, .request?, .upgraded?:
                throw LoadError(.unexpectedUpgrade, phase: .waiting, party: .remote)
            case nil: return nil
            }
        }
    }

    /// The next piece of the body as far as it is here; `nil` if more must be read.
    func bufferedData() throws(LoadError) -> BodyPiece? {
        let base = unread.lowerBound
        switch try next() {
        case .data(let range)?:
            guard let storage else { return nil }
            return .chunk(Chunk(storage: storage, range: base + range.lowerBound..<base + range.upperBound))
        case .end(let trailers)?:
            self.trailers = trailers
            return .end
        case .request?, .informational?, .response?, .upgraded?:
            throw LoadError(.notHTTP, phase: .receiving, party: .remote)
        case nil: return nil
        }
    }

    /// The fields after a chunked body, once it has ended.
    private(set) var trailers = Headers()

    func hasAnswer(_ client: any ConnectionClient) throws(LoadError) -> Bool {
        while true {
            switch try next() {
            case .response(let head)?:
                answer = head
                return true
            case .informational(let head)?: client.informed(head)
            case .some: throw LoadError(.unexpectedUpgrade, phase: .sending, party: .remote)
            case nil: if try !read() { return false }
            }
        }
    }

    /// Whether the body may be sent: a 100 says so, a final answer that it may not; `nil` for neither yet.
    func hasContinue(_ client: any ConnectionClient) throws(LoadError) -> Bool? {
        while true {
            switch try next() {
            case .response(let head)?:
                answer = head
                return false
            case .informational(let head)?:
                client.informed(head)
                if head.status == .continue { return true }
            case .some: throw LoadError(.unexpectedUpgrade, phase: .sending, party: .remote)
            case nil: if try !read() { return nil }
            }
        }
    }

    private func next() throws(LoadError) -> HTTP1Event? {
        let event = try nextEvent()
        switch event {
        case .response?: traffic.isInBody = true
        case .informational? where record != nil:
            record?.clear(.responseStart)
            if !unread.isEmpty { record?.mark(.responseStart) }
        default: break
        }
        return event
    }

    private func nextEvent() throws(LoadError) -> HTTP1Event? {
        do throws(WireViolation) {
            var consumed = 0
            defer {
                unread = unread.lowerBound + consumed..<unread.upperBound
                traffic.consume(consumed)
            }
            let bytes = storage?.bytes(unread) ?? UnsafeRawBufferPointer(start: nil, count: 0)
            if let event = try codec.next(bytes, consumed: &consumed) { return event }
            guard sawEnd else { return nil }
            if hasReceived { return try codec.receiveEnd() }
        } catch {
            throw LoadError(error, phase)
        }
        throw LoadError(.connectionLost, phase: .waiting, party: .remote, detail: "closed without an answer")
    }

    /// Waits until something was received. What is still to be sent goes out meanwhile.
    /// - Parameter most: reads no more than so many bytes.
    func fill(_ client: any ConnectionClient, atMost most: Int = .max) async throws(LoadError) {
        // An answer takes its time: the first look would find nothing and cost a system call.
        if !hasReceived { await Poller.shared.park(transport.slot, .read, client.handle) }
        while true {
            if client.isSuspended { await pause(client) }
            if let reason = client.stopReason { throw LoadError(reason, phase: phase) }
            if try read(atMost: most) { return try await giveWay() }
            if try await answerQuestion(client) { continue }
            if sending.isGoingOn {
                try await sendOn(client)
            } else {
                await Poller.shared.park(transport.slot, blockedOn, client.handle)
            }
            receivedSinceWait = 0
        }
    }

    /// Receives what is here; `false` if that is nothing, or something else comes first.
    func fillNow(_ client: any ConnectionClient) throws(LoadError) -> Bool {
        guard !sawEnd, !client.isSuspended, client.stopReason == nil, !sending.isGoingOn else { return false }
        return try read()
    }

    /// While its task is suspended the connection takes up no place.
    func pause(_ client: any ConnectionClient) async {
        client.setResting(true, route)
        await client.handle.untilResumed()
        client.setResting(false, route)
    }

    /// A peer faster than its reader never makes it wait: now and then others get their turn.
    private func giveWay() async throws(LoadError) {
        guard receivedSinceWait > Self.turn else { return }
        receivedSinceWait = 0
        await Task.yield()
    }
    private var receivedSinceWait = 0
    private static let turn = 4 << 20

    /// A server may want to know who we are when it has seen what is asked for. Returns whether it has got its answer.
    func answerQuestion(_ client: any ConnectionClient) async throws(LoadError) -> Bool {
        guard let secure, let (peer, question) = secure.laterQuestion else { return false }
        try await HandshakeAsking(transport: secure, peer: peer, client: client).answer(
            question, client.handshakeDecision)
        return true
    }
    private let secure: TLSTransport?

    private var blockedOn = PollSlot.Interest.read
    var blockedOnWrite = PollSlot.Interest.write
    /// How long a body waits for a 100.
    let expectContinueTimeout: Duration

    /// Returns false if nothing is there.
    private func read(atMost most: Int = .max) throws(LoadError) -> Bool {
        var room = makeRoom()
        if room.count > most { room = UnsafeMutableRawBufferPointer(rebasing: room[..<max(1, most)]) }
        let progress: Progress
        do throws(IOFailure) { progress = try transport.read(into: room) } catch {
            // After a reset nothing more comes: bytes received before it are judged like an early end.
            throw LoadError(error, phase)
        }
        switch progress {
        case .moved(let count):
            hasReceived = true
            if let record, !record.has(.responseStart) { record.mark(.responseStart) }
            receivedSinceWait += count
            unread = unread.lowerBound..<unread.upperBound + count
            if count == room.count, count < most { capacity = min(capacity * 4, Self.largestBuffer) }
            noteFlood(count >= Self.flood)
            if let tap, let storage {
                tap(
                    .received(
                        [UInt8](storage.bytes(unread.upperBound - count..<unread.upperBound)), connection: identifier))
            }
            return true
        case .end:
            sawEnd = true
            return true
        case .blocked(let interest):
            blockedOn = interest
            return false
        }
    }

    private func noteFlood(_ isFlood: Bool) {
        guard isFlood != floods else { return }
        floods = isFlood
        transport.slot.gatherReads(isFlood)
    }
    private var floods = false
    /// A read of this size after a wait says that the peer is faster than we wake.
    private static let flood = 48 * 1024

    /// Room behind the unread bytes. A buffer that a chunk still refers to is left to it; only bytes
    /// that were not consumed move.
    private func makeRoom() -> UnsafeMutableRawBufferPointer {
        if isKnownUniquelyReferenced(&storage), let storage, storage.capacity >= capacity {
            if unread.isEmpty { unread = 0..<0 }
            if unread.upperBound < storage.capacity { return storage.room(from: unread.upperBound) }
            if unread.lowerBound > 0 {
                storage.base.copyMemory(from: storage.base + unread.lowerBound, byteCount: unread.count)
                unread = 0..<unread.count
                return storage.room(from: unread.upperBound)
            }
        }
        // The codec bounds what it leaves unconsumed, and with it the growth of this buffer.
        let new = ChunkStorage(capacity: max(capacity, unread.count * 2))
        if let storage { new.base.copyMemory(from: storage.base + unread.lowerBound, byteCount: unread.count) }
        unread = 0..<unread.count
        storage = new
        return new.room(from: unread.upperBound)
    }
}

extension HTTP1Limits {
    init(_ limits: Configuration.Limits) {
        self.init()
        headSize = limits.headSize
        fieldCount = limits.fieldCount
        chunkExtensionSize = limits.chunkExtensionSize
        trailerSize = limits.trailerSize
        informationalCount = limits.informationalCount
    }
}
