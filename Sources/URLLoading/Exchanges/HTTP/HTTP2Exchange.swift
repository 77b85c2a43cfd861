// SPDX-License-Identifier: Apache-2.0

// A request and its response on one stream of a shared connection. `release` ends the stream and frees its slot, and
// runs at the latest when the exchange is deallocated. Used by one task at a time.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class HTTP2Exchange: NetworkExchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    let owner: LoadContext
    var load: LoadContext? { owner }
    let connection: HTTP2Connection
    let stream: HTTP2Stream
    private let url: URL
    private let route: Route
    private(set) var record: TransactionRecord?
    private(set) var head: HTTPHead?
    var status: Status? { head?.status }
    private(set) var expectedLength: Int64?
    var trailers: Headers { body.hasEnded ? received.trailers ?? Headers() : Headers() }
    /// The unsent part of the request; see `HTTP2Exchange+Sending`.
    var sending = HTTP2Sending()

    // Exclusive access follows from the one owner; debug builds check it.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var body = BodyPipeline()
    var isDecoding: Bool { body.isDecoding }
    private var isReleased = false
    let requestTime: Double
    private let wasUsed: Bool

    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var received = HTTP2Received()
    private var traffic = HTTP1Traffic()

    /// The phase of a failure.
    var phase: LoadError.Phase { head != nil ? .receiving : isSending ? .sending : .waiting }
    var hasFailed: Bool { received.failure != nil }

    /// - Parameter connection: a connection on which a stream is reserved for this exchange.
    init(
        _ connection: HTTP2Connection, _ load: LoadContext, _ request: PreparedRequest, over route: Route,
        _ record: TransactionRecord?
    ) {
        self.connection = connection
        owner = load
        requestTime = load.core.cache?.now() ?? 0
        url = request.request.url
        self.route = route
        wasUsed = connection.places.streamsBegun > 0
        stream = HTTP2Stream(
            slot: Poller.shared.borrowSlot(), urgency: Task.currentPriority.urgency, window: connection.newWindow,
            hasBody: request.body != nil || request.webSocket != nil)
        load.handle.attach(stream.slot)
        self.record = record
        record?.lease(connection.facts, connection.route, isReused: wasUsed, .http2)
    }

    deinit { release() }

    var failedStale: Bool {
        (wasUsed || owner.signs) && !received.hasBegun && owner.stopReason == nil
            && received.failure?.isLostConnection == true
    }
    var refusal: RetryPlan.Refusal? {
        guard owner.stopReason == nil, received.failure?.isUnprocessed == true else { return nil }
        guard connection.isRetired else { return .ofStream }
        return connection.hasResponded ? .amongResponses : .alone
    }
    func fallsBack() -> Bool {
        guard case .reset(.http11Required)? = received.failure, owner.stopReason == nil else { return false }
        return owner.core.pool.speakHTTP1(route)
    }
    var isShared: Bool { true }
    var isLastOnConnection: Bool { false }
    /// The identity of this request; other requests of the load have their own.
    private(set) var carried = CarriedIdentity()
    var source: AnswerSource { AnswerSource(connection.transport, connection.route) }
    var tls: TLSTransport? { connection.transport as? TLSTransport }
    var isPrivatelyRouted: Bool { owner.core.routesPrivately(route) }
    func leaveConnection() { owner.core.pool.leave(connection, for: route) }
    func note(_ error: LoadError) { record?.error = error }

    /// Sends the request and waits for the head of the response.
    func start(_ request: PreparedRequest) async throws(LoadError) {
        carried = request.carried
        if request.authenticationHandshake != nil || request.webSocket != nil {
            try await beginWaiting(request)
        } else {
            record?.mark(.requestStart)
            try begin(request)
        }
        if request.expectsContinue, try await !mayContinue() { cut() }
        while true {
            if let answer = received.finalHead { return try receive(answer, request) }
            try await step()
        }
    }

    /// Begins a request that waits before it is sent: for the first message of its authentication, or for the server's
    /// SETTINGS, which say whether it supports WebSockets (RFC 8441 §3).
    @inline(never)
    private func beginWaiting(_ request: PreparedRequest) async throws(LoadError) {
        var request = request
        if let authenticationHandshake = request.authenticationHandshake {
            // HTTP/2 supports only schemes with a single message; others fall back to HTTP/1.1.
            request.setAuthorization(
                try await authenticationHandshake.first(binding(toProxy: false), owner.handle)?.value, toProxy: false)
        }
        record?.mark(.requestStart)
        if let offer = request.webSocket {
            try await awaitTunnels()
            handshake = try offer.complete(&request, isHTTP2: true)
        }
        try begin(request)
    }

    /// Passes the request to the connection. Not inlined into `start`, whose frame a load holds while it waits
    /// (docs/internals/scale.md).
    @inline(never)
    private func begin(_ request: PreparedRequest) throws(LoadError) {
        let opensTunnel = request.webSocket != nil
        var message = HTTP2Request(request, urgency: stream.urgency)
        if opensTunnel { message.tunnelProtocol = "websocket" }
        traffic.headSize = message.size
        traffic.sent = Int64(traffic.headSize)
        do throws(LoadError) {
            try connection.begin(message, stream, hasBody: request.body != nil || opensTunnel)
        } catch {
            if stream.number == 0, connection.isRetired { received.fail(.unprocessed) }
            throw error
        }
        owner.events?.hasStream(.http2(stream, connection))
        tapHead(
            "\(opensTunnel ? Method.connect.rawValue : message.method.rawValue) "
                + "\(String(decoding: message.path, as: UTF8.self)) HTTP/2",
            message.headers, isSent: true)
        if let body = request.body {
            sending.length = body.length
            sending.body = OutgoingBodyReader(body, for: owner.handle) { [connection, stream] in
                connection.wake(stream)
            }
        } else {
            record?.mark(.requestEnd)
        }
    }

    private func tapHead(_ line: @autoclosure () -> String, _ headers: Headers, isSent: Bool) {
        connection.tap?(
            .head("stream \(stream.number): \(line())", headers, isSent: isSent, connection: connection.identifier))
    }

    private func tap(_ head: HTTP1ResponseHead) {
        guard let tap = connection.tap else { return }
        tapHead("HTTP/2 \(head.status.code)", head.headers, isSent: false)
        for violation in received.unreported(in: head) {
            tap(.tolerated(violation, connection: connection.identifier))
        }
    }

    @inline(never)
    private func receive(_ answer: HTTP1ResponseHead, _ request: PreparedRequest) throws(LoadError) {
        // A server that refuses the request ignores the rest of its body (RFC 9110 §15). After a success the body is
        // sent on.
        if isSending, answer.status.kind != .successful { cut() }
        if request.decodesContent(of: answer.status) {
            try body.decode(answer.headers, owner.core.configuration.limits)
        }
        if !isDecoding { expectedLength = length(of: answer, request.request.method) }
        if BodyDigest.mayBeStated(by: answer.headers) {
            body.check(DigestCheck.ofContent(answer, request.request.method))
        }
        head = HTTPHead(answer)
        owner.events?.responded(response, record)
    }

    private func length(of answer: HTTP1ResponseHead, _ method: Method) -> Int64? {
        if method == .head || answer.status.forbidsContent || received.isEmpty { return 0 }
        return answer.headers.contentLength
    }

    var response: Response { Response(url: url, expectedLength: expectedLength, http: head) }

    // MARK: Waiting

    /// Takes what was received; if there is nothing, sends what can be sent, or waits.
    private func step(readsBody: Bool = false) async throws(LoadError) {
        if owner.isSuspended { await owner.handle.untilResumed() }
        let phase = phase
        if let reason = owner.stopReason { throw LoadError(reason, phase: phase) }
        if takeEvents(readsBody: readsBody) { return }
        if let failure = received.failure { throw failure.loadError(phase, hasBegun: received.hasBegun) }
        switch try pump() {
        case .wantsFile(let reader, let offset, let count): try await fetch(reader, offset, count)
        case .waitsForPiece: await connection.wait(for: stream, owner.handle, countsIdle: false)
        case .idle: await connection.wait(for: stream, owner.handle)
        }
    }

    /// Takes the received frames of the stream. Returns whether any of them belongs to the response.
    func takeEvents(readsBody: Bool = false) -> Bool {
        let inbox = connection.take(stream, used: received.takeUsed(), readsBody: readsBody)
        let hasResponse = received.add(inbox)
        if inbox.sent > 0 {
            sending.queued -= inbox.sent
            traffic.sent += Int64(inbox.sent)
            traffic.content += Int64(inbox.sent)
            owner.sent(TransferProgress(count: inbox.sent, total: traffic.content, expected: sending.length))
        }
        if inbox.hasSentAll {
            sending.hasEnded = true
            if let record, !record.has(.requestEnd) { record.mark(.requestEnd) }
        }
        for head in inbox.informational {
            sending.hasContinue = sending.hasContinue || head.status == .continue
            owner.receivedInterim(head)
            tap(head)
        }
        if let head = inbox.head {
            tap(head)
            record?.mark(.responseStart)
            traffic.receivedHead += Int64(head.headers.size)
        }
        traffic.receivedBody += Int64(inbox.dataCount)
        return hasResponse
    }

    /// Waits for 100 (Continue), until a timeout, because many servers never send it.
    private func mayContinue() async throws(LoadError) -> Bool {
        let deadline = owner.clock.now() &+ LoadHandle.nanoseconds(connection.expectContinueTimeout)
        owner.clock.schedule(stream.slot, at: deadline)
        owner.clock.schedule(connection.transport.slot, at: deadline)
        while true {
            if owner.isSuspended { await owner.handle.untilResumed() }
            if let reason = owner.stopReason { throw LoadError(reason, phase: .waiting) }
            _ = takeEvents()
            if received.finalHead != nil { return false }
            if let failure = received.failure { throw failure.loadError(.waiting, hasBegun: received.hasBegun) }
            if sending.hasContinue || owner.clock.now() >= deadline { return true }
            await connection.wait(for: stream, owner.handle, until: deadline)
        }
    }

    // MARK: The body

    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        try body.next(atMost: most, record, trailers: { received.trailers ?? Headers() }) { () throws(LoadError) in
            try piece()
        }
    }

    func prove(_ proof: DigestProof) { body.prove(proof) }

    func binding(toProxy: Bool) -> [UInt8]? { toProxy ? nil : tls?.endPointBinding }

    private func piece() throws(LoadError) -> BodyPiece? {
        if received.needsMore, received.failure == nil { _ = takeEvents() }
        return try received.next(phase)
    }

    func fill(atMost most: Int) async throws(LoadError) {
        // Chunks may already have been taken while the request was sent.
        while received.needsMore { try await step(readsBody: true) }
    }

    // MARK: Tunnels (RFC 8441)

    /// Waits for the server's SETTINGS, which tell whether it supports extended CONNECT (RFC 8441 §3).
    private func awaitTunnels() async throws(LoadError) {
        while true {
            if owner.isSuspended { await owner.handle.untilResumed() }
            if let reason = owner.stopReason { throw LoadError(reason, phase: .waiting) }
            _ = takeEvents()
            if let failure = received.failure { throw failure.loadError(.waiting, hasBegun: false) }
            if connection.knowsSettings(stream) { break }
            await connection.wait(for: stream, owner.handle)
        }
        guard connection.places.takesTunnels else {
            throw LoadError(
                .webSocketRefused, phase: .waiting, party: .remote,
                detail: "no WebSockets over HTTP/2: SETTINGS_ENABLE_CONNECT_PROTOCOL is not set")
        }
    }

    /// The WebSocket handshake that the request has offered; nil without one.
    private(set) var handshake: WebSocketHandshake?

    func surrender() -> SurrenderedConnection? {
        guard !isReleased else { return nil }
        isReleased = true
        body.end()
        owner.events?.hasStream(nil)
        owner.handle.detach(stream.slot)
        endRecord()
        let tunnel = HTTP2Tunnel(
            connection, stream, owner.core.pool, received: received.chunks, hasEnded: received.trailers != nil,
            failure: received.failure)
        return SurrenderedConnection(transport: tunnel, received: nil, origin: route.origin)
    }

    // MARK: The end

    /// Ends the exchange. The stream of an unread response is reset; the connection stays open.
    func release() {
        guard !isReleased else { return }
        isReleased = true
        body.end()
        cut()
        owner.events?.hasStream(nil)
        connection.end(stream)
        owner.handle.detach(stream.slot)
        Poller.shared.returnSlot(stream.slot)
        endRecord()
        owner.core.pool.leave(connection)
    }

    private func endRecord() {
        guard let record else { return }
        record.traffic = traffic
        owner.events?.add(record)
        self.record = nil
    }
}

extension HTTP2Request {
    init(_ request: PreparedRequest, urgency: Int) {
        let target = request.destination.target
        let fields =
            switch request.fields {
            case .defaults(let prepared): prepared.headers
            case .own(let headers): headers
            }
        self.init(
            method: request.request.method, scheme: target.origin.scheme, authority: target.hostField,
            path: target.originForm,
            headers: fields, framing: request.framing, urgency: urgency)
    }

    /// The size of the fields as RFC 9113 §6.5.2 counts it, before compression.
    var size: Int {
        authority.count + path.count + method.rawValue.utf8.count + scheme.utf8.count + 4 * 32 + headers.size
    }
}

extension Headers {
    var size: Int {
        var size = 0
        forEachRaw { size += $0.count + $1.count + 32 }
        return size
    }
}

extension TaskPriority {
    /// The urgency of RFC 9218 §4.1: 0 is the most urgent, 3 the default.
    var urgency: Int {
        switch rawValue {
        case ..<TaskPriority.utility.rawValue: 6
        case ..<TaskPriority.medium.rawValue: 5
        case TaskPriority.medium.rawValue: 3
        default: 1
        }
    }
}
