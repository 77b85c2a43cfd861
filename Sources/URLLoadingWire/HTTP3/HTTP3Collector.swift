// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCNghttp3

/// What the callbacks of nghttp3 write down, and what they need for it.
final class HTTP3Collector {
    let limits: HTTP3Limits
    private(set) var streams: [Int64: HTTP3StreamState] = [:]
    /// The requests of whose bodies more will be sent.
    private(set) var uploads: Set<Int64> = []
    /// The bodies of requests that are over for their owners, and whose bytes the transport may still send again.
    private var retained: [Int64: HTTP3SendQueue] = [:]
    /// The memory of the current input; the ranges of bodies are relative to it.
    var input: UnsafeRawBufferPointer?
    var flood = HTTP3Flood()
    /// Changes with each event that makes progress for a request.
    private(set) var progress = 0
    private(set) var hasFailed = false
    /// The settings of the peer, as far as they are known.
    private(set) var peerSettings = HTTP3PeerSettings()
    private(set) var hasPeerSettings = false
    /// The settings that early data keeps to: the peer may not go back on them.
    private let remembered: HTTP3PeerSettings?
    /// True if nghttp3 has asked for bytes of a body, and there were none.
    var hasBlockedReader = false
    private var events: [HTTP3Event] = []
    private var orders: [HTTP3StreamOrder] = []
    private var refused: [(Int64, HTTP3ErrorCode)] = []

    init(_ limits: HTTP3Limits, remembered: HTTP3PeerSettings?) {
        (self.limits, self.remembered) = (limits, remembered)
        if let remembered { peerSettings = remembered }
    }

    /// What nghttp3 passes to its callbacks. The codec holds this object for longer than the session lives.
    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    func takeEvents() -> [HTTP3Event] {
        guard !events.isEmpty else { return [] }
        defer { events = [] }
        return events
    }

    func takeOrders() -> [HTTP3StreamOrder] {
        guard !orders.isEmpty else { return [] }
        defer { orders = [] }
        return orders
    }

    func takeRefused() -> [(Int64, HTTP3ErrorCode)] {
        guard !refused.isEmpty else { return [] }
        defer { refused = [] }
        return refused
    }

    func add(_ event: HTTP3Event) {
        switch event {
        case .data, .lateData, .response, .informational, .end, .sent: progress &+= 1
        default: break
        }
        events.append(event)
    }

    func order(_ order: HTTP3StreamOrder) { orders.append(order) }

    /// Ends the connection because of a violation.
    func fail(_ violation: WireViolation, _ code: HTTP3ErrorCode) {
        guard !hasFailed else { return }
        hasFailed = true
        events.append(.failed(violation, code))
    }

    /// Ends a stream because of a violation by the peer; nghttp3 is told once its callback has returned.
    func refuse(_ stream: Int64, _ code: WireViolation.Code, _ section: String, _ reason: HTTP3ErrorCode) {
        guard forget(stream) else { return }
        refused.append((stream, reason))
        add(.violation(stream, .remote(code, section)))
    }

    // MARK: Streams

    /// The number of responses whose final heads have not arrived.
    var awaitedHeads: Int { streams.values.count { !$0.hasHead } }

    func begin(_ stream: Int64, hasBody: Bool) {
        streams[stream] = HTTP3StreamState()
        if hasBody { uploads.insert(stream) }
    }

    /// Handles that no more of a request's body will be sent: it is at its end, or the peer wants no more.
    func endUpload(_ stream: Int64) {
        guard uploads.remove(stream) != nil else { return }
        add(.sentAll(stream))
    }

    func receive(_ settings: HTTP3PeerSettings) {
        if let remembered, let code = settings.breach(of: remembered) {
            return fail(.remote(.http3Violation, "RFC 9114 7.2.4.2, \(code)"), code)
        }
        (peerSettings, hasPeerSettings) = (settings, true)
        add(.settings)
    }

    /// Ends the state of a request. Returns whether its response was not complete.
    @discardableResult
    func forget(_ stream: Int64) -> Bool {
        guard let state = streams.removeValue(forKey: stream) else { return false }
        uploads.remove(stream)
        state.body.discard()
        if state.body.held > 0 { retained[stream] = state.body }
        return !state.isComplete
    }

    /// Handles that the transport needs the bytes of a stream no more.
    func release(_ stream: Int64) { retained[stream] = nil }

    func acknowledged(_ count: Int, on stream: Int64) { (streams[stream]?.body ?? retained[stream])?.release(count) }

    // MARK: Messages

    func beginSection(_ stream: Int64) { streams[stream]?.section = HTTP3Section() }

    func receive(field name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, on stream: Int64) {
        guard let state = streams[stream] else { return }
        state.section.size += name.count + value.count + 32
        guard state.section.size <= limits.headSize else {
            return refuse(stream, .headTooLarge, "RFC 9114 4.2.2", .excessiveLoad)
        }
        if name.first == UInt8(ascii: ":") {
            // nghttp3 has verified that it occurs once, comes first and has three digits.
            guard name.matches(":status", in: 0..<name.count), let status = Self.status(value) else {
                return refuse(stream, .http3MalformedMessage, "RFC 9114 4.3.2", .messageError)
            }
            state.section.status = status
            return
        }
        guard state.section.headers.count < limits.fieldCount else {
            return refuse(stream, .tooManyFields, "RFC 9114 4.2.2", .excessiveLoad)
        }
        // Fits most heads; growing field by field allocates eight times.
        if state.section.headers.isEmpty { state.section.headers.reserve(fields: 12, bytes: 384) }
        state.section.headers.appendRaw(name: name, value: value)
    }

    private static func status(_ value: UnsafeRawBufferPointer) -> Status? {
        guard value.count == 3, value.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Status(value.reduce(0) { $0 * 10 + Int($1 - 0x30) })
    }

    func endHead(_ stream: Int64) {
        guard let state = streams[stream], let status = state.section.status else { return }
        let head = HTTP1ResponseHead(
            status: status, reason: "", version: .http3, headers: state.section.headers)
        state.section = HTTP3Section()
        guard status.kind == .informational else {
            state.hasHead = true
            return add(.response(stream, head))
        }
        state.informationalCount += 1
        guard state.informationalCount <= limits.informationalCount else {
            return refuse(stream, .tooManyInformational, "RFC 9110 15.2", .excessiveLoad)
        }
        add(.informational(stream, head))
    }

    func endTrailers(_ stream: Int64) {
        guard let state = streams[stream] else { return }
        state.trailers = state.section.headers
        state.section = HTTP3Section()
    }

    /// - Returns: false if the stream is gone: its bytes are consumed.
    func receive(data: UnsafeRawBufferPointer, on stream: Int64) -> Bool {
        guard streams[stream] != nil else { return false }
        guard let input, let base = input.baseAddress, let start = data.baseAddress, start >= base,
            start + data.count <= base + input.count
        else {
            add(.lateData(stream, Array(data)))
            return true
        }
        add(.data(stream, start - base..<start - base + data.count))
        return true
    }

    func end(_ stream: Int64) {
        guard let state = streams[stream], !state.isComplete else { return }
        guard state.hasHead else {
            return refuse(stream, .http3MalformedMessage, "RFC 9114 4.1", .messageError)
        }
        state.isComplete = true
        add(.end(stream, trailers: state.trailers))
    }

    /// Handles nghttp3's decision to end a stream, because its message is malformed.
    func rejected(_ stream: Int64, _ code: UInt64) {
        let code = HTTP3ErrorCode(rawValue: code)
        guard forget(stream) else { return }
        add(.violation(stream, .remote(.http3MalformedMessage, "RFC 9114 4.1.2, \(code)")))
    }

    /// Handles GOAWAY: the peer processes no stream from `first` on.
    func goAway(from first: Int64) {
        add(.goAway(from: first))
        // A response that is complete needs nothing of the peer any more.
        let given = streams.filter { $0.key >= first && !$0.value.isComplete }.sorted { $0.key < $1.key }
        for (stream, state) in given {
            forget(stream)
            refused.append((stream, .requestCancelled))
            add(state.hasBegun ? .reset(stream, .requestRejected) : .unprocessed(stream))
        }
    }

    // MARK: Bodies

    /// Lends the next piece of a body for a DATA frame.
    func lend(
        _ pieces: UnsafeMutablePointer<nghttp3_vec>, _ flags: UnsafeMutablePointer<UInt32>, _ session: OpaquePointer,
        _ stream: Int64
    ) -> Int {
        guard let state = streams[stream] else {
            // The stream was ended meanwhile, and its reset is about to be sent: an end here would make the body whole.
            hasBlockedReader = true
            return Int(NGHTTP3_ERR_WOULDBLOCK)
        }
        var count = 0
        if let bytes = state.body.lend(Self.frameSize) {
            pieces.pointee = nghttp3_vec(
                base: UnsafeMutablePointer(mutating: bytes.bindMemory(to: UInt8.self).baseAddress), len: bytes.count)
            count = 1
            add(.sent(stream, bytes.count))
        }
        guard state.body.queued == 0 else { return count }
        guard state.hasEnded else {
            guard count == 0 else { return count }
            state.isDeferred = true
            hasBlockedReader = true
            return Int(NGHTTP3_ERR_WOULDBLOCK)
        }
        flags.pointee |= UInt32(NGHTTP3_DATA_FLAG_EOF)
        if let trailers = state.endingTrailers {
            flags.pointee |= UInt32(NGHTTP3_DATA_FLAG_NO_END_STREAM)
            trailers.withHTTP3Fields { _ = nghttp3_conn_submit_trailers(session, stream, $0, $1) }
        }
        endUpload(stream)
        return count
    }
    /// The largest DATA frame in bytes.
    private static let frameSize = 16 * 1024
}

#endif
