// SPDX-License-Identifier: Apache-2.0

// A request and its response on one stream of an HTTP/3 connection. `release` ends the stream and frees its slot, and
// runs at the latest when the exchange is deallocated. Used by one task at a time.

#if HTTP3

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class HTTP3Exchange: NetworkExchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    let owner: LoadContext
    var load: LoadContext? { owner }
    let connection: HTTP3Connection
    let stream: HTTP3Stream
    private let url: URL
    private let route: Route
    private var record: TransactionRecord?
    private(set) var head: HTTPHead?
    var status: Status? { head?.status }
    private(set) var expectedLength: Int64?
    var trailers: Headers { body.hasEnded ? received.trailers ?? Headers() : Headers() }
    /// The unsent part of the request; see `HTTP3Exchange+Sending`.
    var sending = HTTP2Sending()
    private var body = BodyPipeline()
    var isDecoding: Bool { body.isDecoding }
    private var isReleased = false
    let requestTime: Double
    private let wasUsed: Bool
    private var received = HTTP2Received()
    private var traffic = HTTP1Traffic()

    /// The phase of a failure.
    var phase: LoadError.Phase { head != nil ? .receiving : isSending ? .sending : .waiting }
    var hasFailed: Bool { received.failure != nil }

    /// - Parameter connection: a connection on which a stream is reserved for this exchange.
    init(
        _ connection: HTTP3Connection, _ load: LoadContext, _ request: PreparedRequest, over route: Route,
        _ record: TransactionRecord?
    ) {
        self.connection = connection
        owner = load
        requestTime = load.core.cache?.now() ?? 0
        url = request.request.url
        self.route = route
        wasUsed = connection.places.streamsBegun > 0
        stream = HTTP3Stream(
            slot: Poller.shared.borrowSlot(), urgency: Task.currentPriority.urgency, hasBody: request.body != nil)
        load.handle.attach(stream.slot)
        self.record = record
        if let facts = connection.facts { record?.lease(facts, connection.route, isReused: wasUsed, .http3) }
    }

    deinit { release() }

    // MARK: What the handler asks

    var failedStale: Bool {
        (wasUsed || owner.signs) && !received.hasBegun && owner.stopReason == nil
            && received.failure?.isLostConnection == true
    }
    var refusal: RetryPlan.Refusal? {
        guard owner.stopReason == nil, received.failure?.isUnprocessed == true else { return nil }
        guard connection.isRetired else { return .ofStream }
        return connection.hasResponded ? .amongResponses : .alone
    }
    /// Whether the server wants the request over another version of HTTP (RFC 9114 §8.1).
    func fallsBack() -> Bool {
        guard case .http3(.reset(.versionFallback))? = received.failure, owner.stopReason == nil else { return false }
        return owner.core.pool.avoidHTTP3(route)
    }
    var isShared: Bool { true }
    var isLastOnConnection: Bool { false }
    /// The identity of this request; other requests of the load have their own.
    private(set) var carried = CarriedIdentity()
    var handshake: WebSocketHandshake? { nil }
    var isPrivatelyRouted: Bool { owner.core.routesPrivately(route) }
    func leaveConnection() {
        connection.retire()
        _ = owner.core.pool.avoidHTTP3(route)
    }
    func note(_ error: LoadError) { record?.error = error }

    // MARK: The server

    var tls: TLSTransport? { nil }
    private var peer: QUICPeerFacts? { connection.peer }
    var isProven: Bool { peer?.isProven == true }
    var serverDigest: String? { peer?.digest }
    var source: AnswerSource { AnswerSource([connection.socket.peer]) }
    func binding(toProxy: Bool) -> [UInt8]? { toProxy ? nil : peer?.endPointBinding }
    var provenance: Provenance {
        Provenance(
            carried: carried, hasCertificate: peer?.isIdentified ?? false, isForced: false,
            settingsNumber: peer?.settingsNumber, bodyEnd: .marked, server: peer?.digest, source: source,
            isPrivatelyRouted: isPrivatelyRouted, isRepaired: head?.tolerated.isEmpty == false)
    }

    // MARK: Beginning

    /// Sends the request and waits for the head of the response.
    func start(_ request: PreparedRequest) async throws(LoadError) {
        carried = request.carried
        record?.mark(.requestStart)
        var request = request
        if let authenticationHandshake = request.authenticationHandshake {
            // Only schemes with a single message get here.
            request.setAuthorization(
                try await authenticationHandshake.first(binding(toProxy: false), owner.handle)?.value, toProxy: false)
        }
        try await begin(request)
        if request.expectsContinue, try await !mayContinue() { cut() }
        while true {
            if let answer = received.finalHead { return try receive(answer, request) }
            try await step()
        }
    }

    private func begin(_ request: PreparedRequest) async throws(LoadError) {
        let message = HTTP2Request(request, urgency: stream.urgency)
        traffic.headSize = message.size
        traffic.sent = Int64(traffic.headSize)
        do throws(LoadError) {
            while try !connection.begin(message, stream, hasBody: request.body != nil) {
                try await pause()
                await connection.wait(for: stream, owner.handle)
                _ = takeEvents()
            }
        } catch {
            if stream.number < 0, owner.stopReason == nil, connection.isRetired { received.fail(.unprocessed) }
            throw error
        }
        owner.events?.hasStream(.http3(stream, connection))
        tapHead(
            "\(message.method.rawValue) \(String(decoding: message.path, as: UTF8.self)) HTTP/3", message.headers,
            isSent: true)
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
        tapHead("HTTP/3 \(head.status.code)", head.headers, isSent: false)
        for violation in received.unreported(in: head) {
            tap(.tolerated(violation, connection: connection.identifier))
        }
    }

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

    /// Throws if the load is stopped; returns once it is not suspended.
    private func pause() async throws(LoadError) {
        if owner.isSuspended { await owner.handle.untilResumed() }
        if let reason = owner.stopReason { throw LoadError(reason, phase: phase) }
    }

    /// Takes what was received; if there is nothing, sends what can be sent, or waits.
    private func step() async throws(LoadError) {
        let phase = phase
        try await pause()
        if takeEvents() { return }
        if let failure = received.failure { throw failure.loadError(phase, hasBegun: received.hasBegun) }
        switch try pump() {
        case .wantsFile(let reader, let offset, let count): try await fetch(reader, offset, count)
        case .waitsForPiece: await connection.wait(for: stream, owner.handle, countsIdle: false)
        case .idle: await connection.wait(for: stream, owner.handle)
        }
    }

    /// Takes what has arrived for the stream. Returns whether any of it belongs to the response.
    func takeEvents() -> Bool {
        let inbox = connection.take(stream, used: received.takeUsed())
        let hasResponse = received.add(inbox)
        if inbox.sent > 0 {
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
        owner.clock.schedule(stream.slot, at: deadline)
        while true {
            try await pause()
            _ = takeEvents()
            if let failure = received.failure { throw failure.loadError(.waiting, hasBegun: received.hasBegun) }
            if received.finalHead != nil { return false }
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

    private func piece() throws(LoadError) -> BodyPiece? {
        if received.needsMore, received.failure == nil { _ = takeEvents() }
        return try received.next(phase)
    }

    func fill(atMost most: Int) async throws(LoadError) {
        // Chunks may already have been taken while the request was sent.
        while received.needsMore { try await step() }
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

// MARK: - Sending the body of a request

extension HTTP3Exchange {
    private static let filePiece = 64 * 1024

    var isSending: Bool { !sending.hasEnded && (sending.body != nil || sending.queued > 0) }

    func continueSending() async throws(LoadError) {
        try await pause()
        _ = takeEvents()
        guard isSending, !hasFailed else { return cut() }
        switch try pump() {
        case .wantsFile(let reader, let offset, let count): try await fetch(reader, offset, count)
        case .waitsForPiece: await connection.wait(for: stream, owner.handle, countsIdle: false, endsOnWake: true)
        case .idle: await connection.wait(for: stream, owner.handle, endsOnWake: true)
        }
    }

    /// Stops sending the body. If it was incomplete, the stream ends with the exchange.
    private func cut() {
        sending.body?.abandon()
        (sending.body, sending.hasEnded) = (nil, true)
    }

    /// Hands the connection as many bytes as it takes.
    private func pump() throws(LoadError) -> HTTP2Exchange.SendingStep {
        var hasQueued = false
        defer { if hasQueued { connection.send() } }
        while let body = sending.body {
            let room = connection.room(on: stream)
            if room == 0, !body.isAtEnd { break }
            switch try body.nextPart() {
            case .bytes(let available):
                let count = min(room, available)
                body.withBytes { connection.send(UnsafeRawBufferPointer(rebasing: $0[..<count]), on: stream) }
                body.advance(count)
                hasQueued = true
            case .file(let reader, let offset, let left):
                let wanted = Int(min(left, Int64(Self.filePiece)))
                guard try body.loadNow(reader, offset, count: wanted) else { return .wantsFile(reader, offset, wanted) }
            case .pending: return .waitsForPiece
            case .end(let trailers):
                sending.body = nil
                // Bytes are on their way until `sentAll`.
                sending.queued = 1
                hasQueued = true
                do throws(WireViolation) { try connection.endSending(on: stream, trailers) } catch {
                    throw LoadError(error, .sending)
                }
            }
        }
        return .idle
    }

    /// Reads the next bytes of a file into memory.
    private func fetch(_ reader: FileReader, _ offset: Int64, _ count: Int) async throws(LoadError) {
        let chunk = try await OutgoingBodyReader.read(reader, offset, count: count, for: owner.handle)
        try sending.body?.loaded(chunk)
    }
}

#endif
