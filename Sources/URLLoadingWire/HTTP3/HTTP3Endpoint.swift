// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// An HTTP/3 connection of a client as datagrams and events: a `QUICCodec`, and an `HTTP3Codec` for what its streams
/// carry.
///
/// ```swift
/// let endpoint = try HTTP3Endpoint(tls, now: now)
/// while let sent = endpoint.nextDatagrams(into: buffer, now: now) { … }
/// // …wait for a datagram, at most until `endpoint.deadline`, then:
/// endpoint.receive(datagram, ecn: 0, now: now)
/// endpoint.passDeadline(now: now)
/// for event in endpoint.takeEvents() { … }   // bodies are ranges of `endpoint.received`
/// endpoint.releaseReceived()
/// ```
///
/// Used by one task at a time.
package final class HTTP3Endpoint {
    private let quic: QUICCodec
    private var http: HTTP3Codec
    private var events: [HTTP3EndpointEvent] = []
    /// The time at which ngtcp2 was last called, if what it has reported since was not passed on yet.
    private var unseenSince: Int64?
    /// `nil` without a trace.
    private let tracer: HTTP3Tracer?
    package private(set) var earlyData = EarlyData.none

    /// What becomes of requests that are sent before the end of the handshake (RFC 9001 §4.6).
    package enum EarlyData: Sendable, Equatable {
        /// Requests begin after the handshake.
        case none
        /// Requests may begin now. The server may reject them.
        case possible
        case accepted
        /// The requests that had begun are gone without an event.
        case rejected
    }

    /// - Parameters:
    ///   - memory: what ``memory`` was on the connection whose TLS session `security` resumes; `nil` if no early data
    ///     is to be sent.
    ///   - isTraced: whether the connection is written down for ``takeTrace()``.
    package init(
        _ security: any QUICSecurity, quic: QUICLimits = QUICLimits(), http: HTTP3Limits = HTTP3Limits(),
        token: [UInt8] = [], memory: HTTP3Memory? = nil, isTraced: Bool = false, now: Int64
    ) throws(WireViolation) {
        self.quic = try QUICCodec(
            client: security, limits: quic, token: token, remembered: memory?.parameters, isLogged: isTraced, now: now)
        self.http = try HTTP3Codec(http, remembered: self.quic.mayBeEarly ? memory?.settings : nil)
        tracer = isTraced ? HTTP3Tracer(self.http) : nil
        if self.quic.mayBeEarly, self.quic.streamsLeft > 0, self.quic.outgoingStreamsLeft >= 3, openStreams() {
            earlyData = .possible
        }
    }

    /// What early data of a later connection keeps to; `nil` before the server's settings have arrived.
    package var memory: HTTP3Memory? {
        guard let settings = http.peerSettings, let parameters = quic.parameters else { return nil }
        return HTTP3Memory(parameters: parameters, settings: settings)
    }

    /// Returns what has passed since the last call; nothing unless the connection is traced.
    package func takeTrace() -> [HTTP3Trace] { tracer?.takeItems() ?? [] }

    // MARK: Datagrams

    /// Processes one datagram; see ``QUICCodec/receive(_:ecn:on:now:)``. What several of them bring is passed on
    /// together, when the events are taken.
    package func receive(_ datagram: UnsafeRawBufferPointer, ecn: UInt8, on path: UInt32 = 0, now: Int64) {
        quic.receive(datagram, ecn: ecn, on: path, now: now)
        tracer?.log(quic.takeLog())
        unseenSince = now
    }

    /// Writes the datagrams that are due now; see ``QUICCodec/nextDatagrams(into:from:now:)``.
    package func nextDatagrams(into buffer: UnsafeMutableRawBufferPointer, now: Int64) -> QUICDatagrams? {
        pump()
        let wasOver = isOver
        let datagrams = quic.nextDatagrams(into: buffer, from: tracer ?? http, now: now)
        tracer?.log(quic.takeLog())
        unseenSince = now
        pump()
        // An error that was found while the bytes of streams were collected: the peer is told.
        guard datagrams == nil, isOver, !wasOver else { return datagrams }
        return quic.nextDatagrams(into: buffer, from: nil, now: now)
    }

    /// See ``QUICCodec/migrate(to:isImmediate:now:)``.
    package func migrate(to path: UInt32, isImmediate: Bool, now: Int64) -> QUICMigration {
        quic.migrate(to: path, isImmediate: isImmediate, now: now)
    }
    /// See ``QUICCodec/isPeerSilent(now:)``.
    package func isPeerSilent(now: Int64) -> Bool { quic.isPeerSilent(now: now) }
    /// See ``QUICCodec/silentSince``.
    package var silentSince: Int64? { quic.silentSince }

    /// When ``passDeadline(now:)`` must be called; `nil` for never.
    package var deadline: Int64? { quic.deadline }

    package func passDeadline(now: Int64) {
        guard let deadline, deadline <= now else { return }
        quic.passDeadline(now: now)
        tracer?.log(quic.takeLog())
        unseenSince = now
    }

    /// Returns the events since the last call.
    package func takeEvents() -> [HTTP3EndpointEvent] {
        pump()
        guard !events.isEmpty else { return [] }
        defer { events = [] }
        return events
    }

    /// The memory of the bodies in the events.
    package var received: [UInt8] { quic.received }
    /// Gives up the bodies in the events that were taken.
    package func releaseReceived() { quic.releaseReceived() }

    package var isOver: Bool { quic.isOver }

    // MARK: Between the codecs

    private func pump() {
        guard let now = unseenSince else { return }
        unseenSince = nil
        for event in quic.takeEvents() { handle(event, now) }
        for stream in http.uploads where !quic.takesBytes(stream) { http.isStopped(stream) }
        carryOut()
        for event in http.takeEvents() {
            events.append(.http(event))
            if case .failed(_, let code) = event { quic.close(.application(code.rawValue)) }
        }
        // A connection that was closed just now.
        for event in quic.takeEvents() { handle(event, now) }
    }

    private func handle(_ event: QUICEvent, _ now: Int64) {
        switch event {
        case .handshakeCompleted: begin()
        case .earlyDataRejected: beginAnew()
        case .handshakeConfirmed: events.append(.confirmed)
        case .data(let stream, let range, let isEnd): receive(range, isEnd: isEnd, on: stream, now)
        case .acknowledged(let stream, let count): http.acknowledged(count, on: stream)
        case .reset(let stream, let code): http.wasReset(stream, code)
        case .unblocked(let stream): http.unblock(stream)
        case .closed(let stream, let code):
            tracer?.closed(stream)
            http.closed(stream, code)
        case .streamsPermitted: events.append(.streamsPermitted)
        case .token(let token): events.append(.token(token))
        case .moved(let path): events.append(.moved(path))
        case .pathFailed(let path): events.append(.pathFailed(path))
        case .ended(let end): events.append(.ended(end))
        }
    }

    /// Begins after the handshake. A server that speaks another protocol, or does not say which, is refused (RFC 9001
    /// §8.1).
    private func begin() {
        guard quic.applicationProtocol == "h3" else { return quic.refuse(alert: Self.noApplicationProtocol) }
        if earlyData == .possible {
            earlyData = .accepted
        } else if !openStreams() {
            return quic.close(.application(HTTP3ErrorCode.generalProtocolError.rawValue))
        }
        events.append(.ready)
    }

    /// Forgets what was sent as early data, of which the server has seen nothing: its tables are empty, too.
    private func beginAnew() {
        if earlyData == .possible { earlyData = .rejected }
        guard let new = try? HTTP3Codec(limits: http.limits) else {
            return quic.close(.application(HTTP3ErrorCode.internalError.rawValue))
        }
        http = new
        tracer?.restart(with: new)
    }

    /// Opens the three streams that every connection has (RFC 9114 §6.2, RFC 9204 §4.2). Returns false if the server
    /// does not permit them.
    private func openStreams() -> Bool {
        guard let control = quic.openOutgoingStream(), let encoder = quic.openOutgoingStream(),
            let decoder = quic.openOutgoingStream()
        else { return false }
        return (try? http.bind(control: control, encoder: encoder, decoder: decoder)) != nil
    }

    /// The alert of TLS (RFC 7301 §3.2).
    private static let noApplicationProtocol: UInt8 = 120

    /// The connection's credit is returned on arrival, so that an unread stream does not block the others.
    private func receive(_ range: Range<Int>, isEnd: Bool, on stream: Int64, _ now: Int64) {
        let consumed = quic.received.withUnsafeBytes {
            tracer?.receive(UnsafeRawBufferPointer(rebasing: $0[range]), isEnd: isEnd, on: stream)
            return http.receive(
                UnsafeRawBufferPointer(rebasing: $0[range]), in: $0, isEnd: isEnd, on: stream,
                second: now / 1_000_000_000)
        }
        quic.arrived(range.count)
        quic.consumed(consumed, on: stream)
    }

    private func carryOut() {
        for order in http.takeOrders() {
            switch order {
            case .abort(let stream, let code): quic.abort(stream, code.rawValue)
            case .stopReceiving(let stream, let code): quic.stopReceiving(stream, code.rawValue)
            case .stopSending(let stream, let code): quic.stopSending(stream, code.rawValue)
            case .consumed(let stream, let count): quic.consumed(count, on: stream)
            }
        }
    }

    // MARK: Requests

    /// Begins a request; `nil` if the peer permits no more streams until the event `streamsPermitted`.
    package func submit(_ request: HTTP2Request, hasBody: Bool) throws(WireViolation) -> Int64? {
        guard let stream = quic.openStream() else { return nil }
        do throws(WireViolation) { try http.submit(request, hasBody: hasBody, on: stream) } catch {
            quic.abort(stream, HTTP3ErrorCode.requestCancelled.rawValue)
            throw error
        }
        return stream
    }

    /// How many requests may begin now.
    package var streamsLeft: Int { quic.streamsLeft }
    /// The number of requests that are not over.
    package var requestCount: Int { http.requestCount }

    /// Adds to the body of a request; see ``HTTP3Codec/send(_:on:)``.
    package func send(_ bytes: UnsafeRawBufferPointer, on stream: Int64) { http.send(bytes, on: stream) }
    package func endSending(on stream: Int64, trailers: Headers = Headers()) throws(WireViolation) {
        try http.endSending(on: stream, trailers: trailers)
    }
    package func queued(on stream: Int64) -> Int { http.queued(on: stream) }
    package func held(on stream: Int64) -> Int { http.held(on: stream) }

    /// Returns credit for a part of a body that the reader has taken.
    package func consumed(_ count: Int, on stream: Int64) { quic.consumed(count, on: stream) }

    /// Ends a request before its response is complete.
    package func reset(_ stream: Int64, _ code: HTTP3ErrorCode) {
        http.reset(stream, code)
        carryOut()
    }

    package func prioritize(_ stream: Int64, urgency: Int) { http.prioritize(stream, urgency: urgency) }

    /// Ends the connection.
    package func close(_ code: HTTP3ErrorCode = .noError) { quic.close(.application(code.rawValue)) }

    /// See ``QUICCodec/keepAlive(after:)``.
    package func keepAlive(after nanoseconds: Int64?) { quic.keepAlive(after: nanoseconds) }
    /// See ``QUICCodec/idleTimeout``.
    package var idleTimeout: Int64 { quic.idleTimeout }
}

/// An event of a connection.
package enum HTTP3EndpointEvent: Sendable, Equatable {
    /// The handshake is over: requests may begin.
    case ready
    /// The server knows that, too: the connection may move to another path.
    case confirmed
    case http(HTTP3Event)
    /// The peer permits more requests.
    case streamsPermitted
    /// A token for later connections to this server.
    case token([UInt8])
    /// The connection has moved to another path, or the server has not answered there.
    case moved(UInt32)
    case pathFailed(UInt32)
    /// The connection is over.
    case ended(QUICEnd)
}

#endif
