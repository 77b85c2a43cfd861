// SPDX-License-Identifier: Apache-2.0

// A request and its response on one leased connection. The exchange is the lease: `release` returns the connection to
// the pool or closes it, and runs at the latest when the exchange is deallocated. Used by one task at a time.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class HTTPExchange: NetworkExchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    let owner: LoadContext
    var load: LoadContext? { owner }
    let connection: HTTP1Connection
    private let url: URL
    /// The record for the metrics; `nil` if metrics are not collected, and after the end.
    var record: TransactionRecord?
    /// The response's head, once `start` has returned.
    private(set) var head: HTTPHead?
    var status: Status? { head?.status }
    private(set) var expectedLength: Int64?
    // Exclusive access follows from the one owner; debug builds check it.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var body = BodyPipeline()
    var isDecoding: Bool { body.isDecoding }
    private var isReleased = false
    let requestTime: Double
    /// Whether the connection was made for another load, be it that it has carried a request or not.
    private let isReused: Bool

    init(
        _ connection: HTTP1Connection, isReused: Bool, _ load: LoadContext, _ url: URL, _ record: TransactionRecord?
    ) {
        self.connection = connection
        self.isReused = isReused
        owner = load
        requestTime = load.core.cache?.now() ?? 0
        self.url = url
        load.attach(connection.slot)
        self.record = record
        guard let record else { return }
        record.lease(connection.facts, connection.route, isReused: isReused, connection.state.codec.sentVersion)
        connection.record = record
    }

    deinit { release() }

    /// True if the request failed because the peer had closed an idle connection before it was used (a stale
    /// connection). A new connection is idle while a signer works, and after a message of authentication.
    var failedStale: Bool {
        (isReused || connection.state.exchanges > 1 || owner.signs) && !connection.state.hasReceived
            && owner.stopReason == nil
    }

    var forwarder: Proxy? { connection.forwarder }
    var refusal: RetryPlan.Refusal? { nil }
    var isLastOnConnection: Bool { connection.state.codec.reuse == .never }
    func fallsBack() -> Bool { false }
    var isShared: Bool { false }
    func leaveConnection() {}
    /// The identity of this request; other requests of the load have their own.
    private(set) var carried = CarriedIdentity()
    var tls: TLSTransport? { connection.secure }
    var source: AnswerSource { AnswerSource(connection.transport, connection.route) }
    var isPrivatelyRouted: Bool { owner.core.routesPrivately(connection.route) }
    func note(_ error: LoadError) { record?.error = error }

    /// Sends the request and waits for the head of the response.
    func start(_ request: PreparedRequest) async throws(LoadError) {
        carried = request.carried
        // Loads that wait here hold this frame only: what few of them do has frames of its own.
        guard isPlain(request) else { return try await startSpecially(request) }
        record?.mark(.requestStart)
        if try !begin(request) { try await connection.send(owner) }
        while try !hasReceivedHead(of: request) { try await connection.fill(owner) }
    }

    /// Whether the request is complete, and the connection needs no authentication.
    private func isPlain(_ request: PreparedRequest) -> Bool {
        request.authenticationHandshake == nil && request.webSocket == nil && !connection.isForwarded
    }

    @inline(never)
    private func startSpecially(_ request: PreparedRequest) async throws(LoadError) {
        if request.authenticationHandshake != nil || connection.forwarder?.login?.opensConnections == true {
            try await open(request)
        } else {
            try await send(request)
        }
    }

    /// True if the peer no longer accepts the connection's earlier authentication; see
    /// `HTTPExchange+AuthenticationHandshake`.
    var hasLostAuthentication = false

    /// Adds what depends on the connection to the request, sends it, and waits for the head of the response.
    func send(_ request: PreparedRequest) async throws(LoadError) {
        record?.mark(.requestStart)
        var request = request
        if let offer = request.webSocket { handshake = try offer.complete(&request, isHTTP2: false) }
        if let forwarder = connection.forwarder, forwarder.login != nil {
            try await request.prove(to: forwarder, owner)
        }
        if try !begin(request) { try await connection.send(owner) }
        while try !hasReceivedHead(of: request) { try await connection.fill(owner) }
    }

    // Not inlined: what an async function calls in place becomes a part of its frame.

    @inline(never)
    private func begin(_ request: PreparedRequest) throws(LoadError) -> Bool {
        guard try connection.begin(request, owner) else { return false }
        record?.mark(.requestEnd)
        return true
    }

    @inline(never)
    private func hasReceivedHead(of request: PreparedRequest) throws(LoadError) -> Bool {
        // The closure of the argument would copy the request.
        let offersUpgrade = request.webSocket != nil
        let head = try connection.bufferedResponse(owner, acceptsUpgrade: offersUpgrade || owner.acceptsUpgrade)
        guard let head else { return false }
        try receive(head, request)
        return true
    }

    func receive(_ head: HTTP1ResponseHead, _ request: PreparedRequest) throws(LoadError) {
        if request.decodesContent(of: head.status) {
            try body.decode(head.headers, owner.core.configuration.limits)
        }
        if !isDecoding { expectedLength = connection.expectedLength }
        if BodyDigest.mayBeStated(by: head.headers) { body.check(DigestCheck.ofContent(head, request.request.method)) }
        if let proof = connection.proxyProof, head.status != .proxyAuthenticationRequired,
            try !proof.process(head.headers)
        {
            prove(proof)
        }
        self.head = HTTPHead(head)
        owner.events?.responded(response, record)
    }

    /// The response for the caller.
    var response: Response { Response(url: url, expectedLength: expectedLength, http: head) }

    // MARK: The body

    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        try body.next(atMost: most, record, trailers: { trailers }) { () throws(LoadError) in
            let piece = try connection.bufferedData()
            // Read before the release, because a returned connection may serve another load at once.
            if case .end? = piece { trailers = connection.state.trailers }
            return piece
        }
    }

    func prove(_ proof: DigestProof) { body.prove(proof) }

    func binding(toProxy: Bool) -> [UInt8]? {
        let hasOwnTLS = connection.forwarder.map { toProxy && $0.kind == .https } ?? !toProxy
        return hasOwnTLS ? tls?.endPointBinding : nil
    }

    func fill(atMost most: Int) async throws(LoadError) {
        try await connection.fill(owner, atMost: most)
    }

    func fillNow() throws(LoadError) -> Bool { try connection.fillNow(owner) }

    var isSending: Bool { !isReleased && connection.sending.isUnfinished }
    func continueSending() async throws(LoadError) {
        try await connection.continueSending(owner, wakingForReads: false)
    }

    /// The trailer fields of a chunked body; empty before its end.
    private(set) var trailers = Headers()

    // MARK: The lease

    func setUnread(_ isUnread: Bool) {
        guard !isReleased, isUnread != self.isUnread else { return }
        self.isUnread = isUnread
        owner.core.pool.setUnread(isUnread, connection.route)
    }
    private var isUnread = false

    /// Ends the exchange. If the body was not read to its end, the connection is closed, unless the rest was already
    /// received.
    func release() {
        guard !isReleased else { return }
        setUnread(false)
        isReleased = true
        owner.detach(connection.slot)
        connection.stopSending()
        if !body.hasEnded { discardBuffered() }
        body.end()
        endRecord()
        // A connection authenticated with a one-load credential is not reused.
        owner.core.pool.giveBack(connection, reusable: connection.isReusable && !connection.route.isForOneLoad)
    }

    /// The WebSocket handshake that the request has offered; nil without one.
    private(set) var handshake: WebSocketHandshake?

    func surrender() -> SurrenderedConnection? {
        guard !isReleased else { return nil }
        setUnread(false)
        isReleased = true
        body.end()
        owner.detach(connection.slot)
        endRecord()
        owner.core.pool.surrender(connection)
        tls?.stopAsking()
        return SurrenderedConnection(
            transport: connection.transport, received: connection.takeUnread(), origin: connection.route.origin)
    }

    private func discardBuffered() {
        guard owner.stopReason == nil else { return }
        while let piece = try? connection.bufferedData() {
            guard case .end = piece else { continue }
            record?.mark(.responseEnd)
            return
        }
    }

    private func endRecord() {
        guard let record else { return }
        record.traffic = connection.traffic
        owner.events?.add(record)
        (self.record, connection.record) = (nil, nil)
    }
}
