// SPDX-License-Identifier: Apache-2.0

// A request and its response on one stream of a shared connection. `release` ends the stream and frees its slot, and
// runs at the latest when the exchange is deallocated. Used by one task at a time.
//
// The versions of HTTP with streams have this in common. Each has a subclass, which is the exchange that handlers see:
// so calls go to this code specialised for one kind of connection.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

class StreamExchange<Connection: StreamConnection>: @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    final let owner: LoadContext
    final var load: LoadContext? { owner }
    final let connection: Connection
    final let stream: Connection.Stream
    private let url: URL
    final let route: Route
    private var record: TransactionRecord?
    final private(set) var head: HTTPHead?
    final var status: Status? { head?.status }
    final private(set) var expectedLength: Int64?
    final var trailers: Headers { body.hasEnded ? received.trailers ?? Headers() : Headers() }
    /// The unsent part of the request; see `StreamExchange+Sending`.
    final var sending = StreamSending()

    // Exclusive access follows from the one owner; debug builds check it.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    final private var body = BodyPipeline()
    final var isDecoding: Bool { body.isDecoding }
    private var isReleased = false
    final let requestTime: Double
    /// Whether the connection was made for another load, or has carried another request before: its peer may have been
    /// about to close it.
    final let isReused: Bool

    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    final private(set) var received = HTTP2Received()
    private var traffic = HTTP1Traffic()

    /// The phase of a failure.
    final var phase: LoadError.Phase { head != nil ? .receiving : isSending ? .sending : .waiting }
    final var hasFailed: Bool { received.failure != nil }

    init(
        _ connection: Connection, isReused: Bool, _ load: LoadContext, _ request: PreparedRequest, over route: Route,
        _ record: TransactionRecord?
    ) {
        self.connection = connection
        self.isReused = isReused || connection.places.streamsBegun > 0
        owner = load
        requestTime = load.core.cache?.now() ?? 0
        url = request.request.url
        self.route = route
        stream = connection.makeStream(hasBody: request.body != nil || request.webSocket != nil)
        load.handle.attach(stream.slot)
        self.record = record
    }

    deinit { release() }

    // MARK: What the handler asks

    final var failedStale: Bool {
        (isReused || owner.signs) && !received.hasBegun && owner.stopReason == nil
            && received.failure?.isLostConnection == true
    }
    final var refusal: RetryPlan.Refusal? {
        guard owner.stopReason == nil, received.failure?.isUnprocessed == true else { return nil }
        guard connection.isRetired else { return .ofStream }
        return connection.hasResponded ? .amongResponses : .alone
    }
    final var isShared: Bool { true }
    final var isLastOnConnection: Bool { false }
    /// The identity of this request; other requests of the load have their own.
    final private(set) var carried = CarriedIdentity()
    /// The WebSocket handshake that the request has offered; nil without one.
    final private(set) var handshake: WebSocketHandshake?
    final var isPrivatelyRouted: Bool { owner.core.routesPrivately(route) }
    final func binding(toProxy: Bool) -> [UInt8]? { toProxy ? nil : connection.endPointBinding }
    final func note(_ error: LoadError) { record?.error = error }

    // MARK: Beginning

    /// Sends the request and waits for the head of the response.
    final func start(_ request: PreparedRequest) async throws(LoadError) {
        carried = request.carried
        if request.authenticationHandshake != nil || request.webSocket != nil {
            try await beginWaiting(request)
        } else {
            record?.mark(.requestStart)
            while try !begin(request) { try await awaitPermission() }
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
            // Streams support only schemes with a single message; others fall back to HTTP/1.1.
            request.setAuthorization(
                try await authenticationHandshake.first(connection.endPointBinding, owner.handle)?.value,
                toProxy: false)
        }
        record?.mark(.requestStart)
        if let offer = request.webSocket {
            try await awaitTunnels()
            handshake = try offer.complete(&request, isHTTP2: true)
        }
        while try !begin(request) { try await awaitPermission() }
    }

    /// Passes the request to the connection. Returns false if its peer permits no more streams now. Not inlined into
    /// `start`, whose frame a load holds while it waits (docs/internals/scale.md).
    @inline(never)
    private func begin(_ request: PreparedRequest) throws(LoadError) -> Bool {
        let opensTunnel = request.webSocket != nil
        var message = HTTP2Request(request, urgency: stream.urgency)
        if opensTunnel { message.tunnelProtocol = "websocket" }
        traffic.headSize = message.size
        traffic.sent = Int64(traffic.headSize)
        do throws(LoadError) {
            let hasBegun = try connection.begin(message, stream, hasBody: request.body != nil || opensTunnel)
            guard hasBegun else { return false }
        } catch {
            if !stream.hasBegun, connection.isRetired { received.fail(.unprocessed) }
            throw error
        }
        owner.events?.hasStream(connection.prioritized(stream))
        tapHead(
            "\(opensTunnel ? Method.connect.rawValue : message.method.rawValue) "
                + "\(String(decoding: message.path, as: UTF8.self)) \(Self.versionName)",
            message.headers, isSent: true)
        if let body = request.body {
            sending.length = body.length
            sending.body = OutgoingBodyReader(body, for: owner.handle) { [connection, stream] in
                connection.wake(stream)
            }
        } else {
            record?.mark(.requestEnd)
        }
        return true
    }

    /// Waits until the peer may permit another stream.
    @inline(never)
    private func awaitPermission() async throws(LoadError) {
        if owner.isSuspended { await owner.handle.untilResumed() }
        try checkStop(phase)
        await connection.wait(for: stream, owner.handle, until: .max, countsIdle: true, endsOnWake: false)
        _ = takeEvents()
    }

    private static var versionName: String { "HTTP/\(Connection.version.major)" }

    private func tapHead(_ line: @autoclosure () -> String, _ headers: Headers, isSent: Bool) {
        connection.tap?(
            .head("stream \(stream.number): \(line())", headers, isSent: isSent, connection: connection.identifier))
    }

    private func tap(_ head: HTTP1ResponseHead) {
        guard let tap = connection.tap else { return }
        tapHead("\(Self.versionName) \(head.status.code)", head.headers, isSent: false)
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

    final var response: Response { Response(url: url, expectedLength: expectedLength, http: head) }

    // MARK: Waiting

    final func checkStop(_ phase: LoadError.Phase) throws(LoadError) {
        if let reason = owner.stopReason { throw LoadError(reason, phase: phase) }
    }

    /// Takes what was received; if there is nothing, sends what can be sent, or waits.
    private func step(readsBody: Bool = false) async throws(LoadError) {
        if owner.isSuspended { await owner.handle.untilResumed() }
        let phase = phase
        try checkStop(phase)
        if takeEvents(readsBody: readsBody) { return }
        if let failure = received.failure { throw failure.loadError(phase, hasBegun: received.hasBegun) }
        switch try pump() {
        case .wantsFile(let reader, let offset, let count): try await fetch(reader, offset, count)
        case .waitsForPiece:
            await connection.wait(for: stream, owner.handle, until: .max, countsIdle: false, endsOnWake: false)
        case .idle: await connection.wait(for: stream, owner.handle, until: .max, countsIdle: true, endsOnWake: false)
        }
    }

    /// Takes what has arrived for the stream. Returns whether any of it belongs to the response.
    final func takeEvents(readsBody: Bool = false) -> Bool {
        let inbox = connection.take(stream, used: received.takeUsed(), readsBody: readsBody)
        let hasResponse = received.add(inbox)
        if inbox.sent > 0 {
            sending.queued -= inbox.sent
            traffic.sent += Int64(inbox.sent)
            traffic.content += Int64(inbox.sent)
            owner.sent(TransferProgress(count: inbox.sent, total: traffic.content, expected: sending.length))
        }
        if inbox.hasSentAll {
            // Also before the end of the body: the server may want no more of it.
            cut()
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
        connection.wake(stream, at: deadline)
        while true {
            if owner.isSuspended { await owner.handle.untilResumed() }
            try checkStop(.waiting)
            _ = takeEvents()
            if received.finalHead != nil { return false }
            if let failure = received.failure { throw failure.loadError(.waiting, hasBegun: received.hasBegun) }
            if sending.hasContinue || owner.clock.now() >= deadline { return true }
            await connection.wait(
                for: stream, owner.handle, until: deadline, countsIdle: true, endsOnWake: false)
        }
    }

    // MARK: The body

    final func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        try body.next(atMost: most, record, trailers: { received.trailers ?? Headers() }) { () throws(LoadError) in
            try piece()
        }
    }

    final func prove(_ proof: DigestProof) { body.prove(proof) }

    private func piece() throws(LoadError) -> BodyPiece? {
        if received.needsMore, received.failure == nil { _ = takeEvents() }
        return try received.next(phase)
    }

    final func fill(atMost most: Int) async throws(LoadError) {
        // Chunks may already have been taken while the request was sent.
        while received.needsMore { try await step(readsBody: true) }
    }

    // MARK: Tunnels (RFC 8441)

    /// Waits for the server's SETTINGS, which tell whether it supports extended CONNECT (RFC 8441 §3).
    private func awaitTunnels() async throws(LoadError) {
        while true {
            if owner.isSuspended { await owner.handle.untilResumed() }
            try checkStop(.waiting)
            _ = takeEvents()
            if let failure = received.failure { throw failure.loadError(.waiting, hasBegun: false) }
            if connection.knowsSettings(stream) { break }
            await connection.wait(for: stream, owner.handle, until: .max, countsIdle: true, endsOnWake: false)
        }
        guard connection.places.takesTunnels else {
            throw LoadError(
                .webSocketRefused, phase: .waiting, party: .remote,
                detail: "no WebSockets over HTTP/2: SETTINGS_ENABLE_CONNECT_PROTOCOL is not set")
        }
    }

    // MARK: The end

    /// Ends the exchange. The stream of an unread response is reset; the connection stays open.
    final func release() {
        guard leaveStream() else { return }
        cut()
        connection.end(stream)
        Poller.shared.returnSlot(stream.slot)
        connection.leave(owner.core.pool)
    }

    /// Ends the body and what the load knows of the stream, which continues. Returns false if that has been done.
    final func leaveStream() -> Bool {
        guard !isReleased else { return false }
        isReleased = true
        body.end()
        owner.events?.hasStream(nil)
        owner.handle.detach(stream.slot)
        endRecord()
        return true
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
