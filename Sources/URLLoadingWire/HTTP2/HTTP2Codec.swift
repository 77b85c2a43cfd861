// What must live here: one HTTP/2 connection as seen by a client (RFC 9113), over nghttp2. What this file does not
// know: where bytes come from, whose the streams are. nghttp2 calls us back (`HTTP2Callbacks`), which only appends
// events; nobody is called from inside a callback.

import URLLoadingCNghttp2

/// HTTP/2 as bytes and events, without input or output.
///
/// ```swift
/// let codec = try HTTP2Codec(limits: HTTP2Limits())
/// let stream = try codec.submit(request, hasBody: false)
/// codec.takeOutput(into: &output, upTo: 64 * 1024)
/// // …write `output`, read into `input`, then:
/// let consumed = codec.receive(input, second: now)
/// for event in codec.takeEvents() { … }
/// ```
///
/// It holds no bytes of a response: what was not consumed comes again at the front of the next input, because nghttp2
/// 1.52 counts reads and not frames against its cap on CONTINUATION; bodies are ranges of the input. The bytes of a
/// request's body it holds until a frame takes them. One user at a time.
package final class HTTP2Codec {
    package let limits: HTTP2Limits
    let session: OpaquePointer
    private(set) var events: [HTTP2Event] = []
    var streams: [Int32: HTTP2StreamState] = [:]

    /// The head or trailers that are being received.
    var section = HTTP2Section()
    /// Where the input of this call begins: bodies are ranges of it.
    var inputBase: UnsafeRawPointer?
    private var scanner = HTTP2FrameScanner()
    private var hasFailed = false

    /// Speaks first: the output holds the preface and our SETTINGS (RFC 9113 3.4).
    package init(limits: HTTP2Limits = HTTP2Limits()) throws(WireViolation) {
        self.limits = limits
        var made: OpaquePointer?
        guard let options = HTTP2Callbacks.options(limits), let callbacks = HTTP2Callbacks.table else {
            throw Self.noMemory
        }
        defer { nghttp2_option_del(options) }
        guard nghttp2_session_client_new2(&made, callbacks, nil, options) == 0, let made else { throw Self.noMemory }
        session = made
        nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
        guard submitSettings() else { throw Self.noMemory }
    }

    deinit { nghttp2_session_del(session) }

    private static var noMemory: WireViolation { .local(.illegalState, "nghttp2") }

    private func submitSettings() -> Bool {
        var settings = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
                value: UInt32(max(0, limits.streamWindow))),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
                value: UInt32(clamping: limits.headSize)),
        ]
        guard nghttp2_submit_settings(session, 0, &settings, settings.count) == 0 else { return false }
        return nghttp2_session_set_local_window_size(session, 0, 0, limits.connectionWindow) == 0
    }

    // MARK: Receiving

    /// Takes what it can use of the input, and returns how much that is. What follows from it are events.
    /// - Parameter second: any clock's seconds: limits on frames that cost nothing hold for ten of them.
    package func receive(_ input: UnsafeRawBufferPointer, second: Int64 = 0) -> Int {
        guard !hasFailed else { return input.count }
        inputBase = input.baseAddress
        defer { inputBase = nil }
        scanner.turn(second)
        var consumed = 0
        while consumed < input.count {
            let isFrame = !scanner.isInsideData
            let piece: UnsafeRawBufferPointer
            do throws(HTTP2Refusal) {
                let step = try scanner.next(input, at: consumed, limits, streams)
                guard step > 0 else { break }
                piece = UnsafeRawBufferPointer(rebasing: input[consumed..<consumed + step])
                if isFrame { try checkSendWindows(piece) }
            } catch {
                fail(error.violation, error.code)
                return input.count
            }
            let taken = nghttp2_session_mem_recv(session, piece.bindMemory(to: UInt8.self).baseAddress, piece.count)
            guard taken == piece.count else {
                fail(Self.violation(Int32(truncatingIfNeeded: taken)))
                return input.count
            }
            consumed += piece.count
            if hasFailed { return input.count }
        }
        return consumed
    }

    /// Whether a frame has begun and not ended: an end of the input is then no orderly one.
    package var isInsideFrame: Bool { scanner.isInsideFrame }

    /// Frames that begin in so many bytes of input or output, a line for each: for those who watch.
    package struct Watch: Sendable {
        private var scanner = HTTP2FrameLines()
        package init() {}
        package mutating func lines(_ bytes: UnsafeRawBufferPointer, skipsPreface: Bool = false) -> [String] {
            scanner.lines(bytes, skipsPreface: skipsPreface)
        }
    }

    /// What has happened since the last call.
    package func takeEvents() -> [HTTP2Event] {
        guard !events.isEmpty else { return [] }
        defer { events = [] }
        return events
    }

    func add(_ event: HTTP2Event) {
        switch event {
        case .data, .response, .informational, .end, .sent: scanner.progressed()
        default: break
        }
        events.append(event)
    }

    /// Ends the connection for what the peer did, and tells it why.
    func fail(_ violation: WireViolation, _ code: HTTP2ErrorCode = .internalError) {
        guard !hasFailed else { return }
        hasFailed = true
        nghttp2_session_terminate_session(session, code.rawValue)
        events.append(.failed(violation))
    }

    /// nghttp2 has ended it already: its GOAWAY has gone into the output.
    func ended(with code: HTTP2ErrorCode) {
        guard !hasFailed else { return }
        hasFailed = true
        let violation: WireViolation.Code = code == .flowControlError ? .http2FlowControl : .http2Violation
        events.append(.failed(.remote(violation, "RFC 9113 5.4.1, \(code)")))
    }

    private static func violation(_ error: Int32) -> WireViolation {
        switch error {
        case NGHTTP2_ERR_FLOODED.rawValue: .remote(.http2Flood, "RFC 9113 10.5")
        default: .remote(.http2Violation, "RFC 9113 5.4.1")
        }
    }

    // MARK: Sending

    /// Takes frames into `output` until it holds so many bytes, or there are none.
    package func takeOutput(into output: inout [UInt8], upTo most: Int) {
        while output.count < most {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &bytes)
            guard count > 0, let bytes else {
                // Out of memory, or a callback of ours said so: neither leaves a connection to go on with.
                if count < 0 { fail(.local(.illegalState, "nghttp2")) }
                return
            }
            output.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
        }
    }

    /// Begins a stream. Its number is known before anything is sent.
    package func submit(_ request: HTTP2Request, hasBody: Bool) throws(WireViolation) -> Int32 {
        let fields = try HTTP2FieldList(request)
        // nghttp2 would drop the request without a word.
        guard fields.size <= 65536 else { throw .local(.headTooLarge, "RFC 9113 6.5.2") }
        let number = fields.withFields { list, count in
            var provider = HTTP2Callbacks.bodyProvider
            guard hasBody else { return nghttp2_submit_request(session, nil, list, count, nil, nil) }
            return nghttp2_submit_request(session, nil, list, count, &provider, nil)
        }
        guard number > 0 else { throw .local(.http2NoStream, "RFC 9113 5.1.1") }
        streams[number] = HTTP2StreamState(isHead: request.method == .head, sizeOfHead: fields.size, isSending: hasBody)
        return number
    }

    /// Adds to the body of a request. It is held until the peer takes it: see `queued`.
    package func send(_ bytes: UnsafeRawBufferPointer, on stream: Int32) {
        guard !bytes.isEmpty, streams[stream]?.isSending == true else { return }
        streams[stream]?.append(bytes)
        resume(stream)
    }

    /// Ends the body of a request.
    package func endSending(on stream: Int32, trailers: Headers = Headers()) throws(WireViolation) {
        guard streams[stream]?.isSending == true else { return }
        let fields = try HTTP2FieldList(trailers: trailers)
        streams[stream]?.hasEnded = true
        if !fields.isEmpty { streams[stream]?.trailers = fields }
        resume(stream)
    }

    /// Bytes of the body that no frame has taken yet.
    package func queued(on stream: Int32) -> Int { streams[stream]?.queued ?? 0 }

    private func resume(_ stream: Int32) {
        guard streams[stream]?.isDeferred == true else { return }
        streams[stream]?.isDeferred = false
        nghttp2_session_resume_data(session, stream)
    }

    /// Tells the peer that a request has become more or less urgent (RFC 9218 7.1): nothing to those who did not say
    /// that they understand (SETTINGS_NO_RFC7540_PRIORITIES, RFC 9218 2.1).
    package func prioritize(_ stream: Int32, urgency: Int) {
        var value = Array("u=\(urgency)".utf8)
        nghttp2_submit_priority_update(session, 0, stream, &value, value.count)
    }

    /// Ends a stream. What still comes of it is dropped.
    package func reset(_ stream: Int32, _ code: HTTP2ErrorCode) {
        guard let state = streams.removeValue(forKey: stream) else { return }
        expectsLate(state)
        nghttp2_submit_rst_stream(session, 0, stream, code.rawValue)
    }

    /// We have ended a stream that the peer may be sending.
    func expectsLate(_ state: HTTP2StreamState) { scanner.ended(window: state.window ?? limits.streamWindow) }

    /// Nobody asks for the stream any more; it has ended by itself.
    package func forget(_ stream: Int32) { streams[stream] = nil }

    // MARK: Flow control (RFC 9113 5.2)

    /// So many bytes have arrived and lie with their stream: the peer may send as many more on others.
    package func arrived(_ count: Int) { nghttp2_session_consume_connection(session, count) }

    /// So many bytes of a stream were taken by its reader.
    package func consumed(_ count: Int, on stream: Int32) { nghttp2_session_consume_stream(session, stream, count) }

    /// The stream's reader keeps up: it may have more on its way.
    package func widen(_ stream: Int32, to window: Int32) {
        streams[stream]?.window = window
        _ = nghttp2_session_set_local_window_size(session, 0, stream, window)
    }

    // MARK: The connection

    package func ping() { nghttp2_submit_ping(session, 0, nil) }

    /// Says that we leave.
    package func goAway(_ code: HTTP2ErrorCode = .noError) { nghttp2_session_terminate_session(session, code.rawValue) }

    /// The peer opens tunnels for other protocols (SETTINGS_ENABLE_CONNECT_PROTOCOL, RFC 8441 3).
    package var takesTunnels: Bool {
        nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1
    }

    /// Whether nghttp2 wants neither to read nor to write: the connection is over.
    package var isOver: Bool { nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0 }
}

/// What the codec knows of one stream.
struct HTTP2StreamState {
    let isHead: Bool
    /// Of the request, as RFC 9113 6.5.2 counts.
    let sizeOfHead: Int
    var informationalCount = 0
    var hasHead = false
    /// What the peer may send of it, once that was changed.
    var window: Int32?
    /// Why we ended it.
    var violation: WireViolation?

    // The request's body.
    var isSending: Bool
    private var queue: [UInt8] = []
    private var taken = 0
    /// What has gone is kept until it is worth a move of the rest.
    private static let mostTaken = 64 * 1024
    var hasEnded = false
    var trailers: HTTP2FieldList?
    /// nghttp2 waits to be told that there is more.
    var isDeferred = false

    init(isHead: Bool, sizeOfHead: Int, isSending: Bool) {
        (self.isHead, self.sizeOfHead, self.isSending) = (isHead, sizeOfHead, isSending)
    }

    var queued: Int { queue.count - taken }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if taken == queue.count {
            queue.removeAll(keepingCapacity: true)
            taken = 0
        } else if taken >= Self.mostTaken {
            // Filled again before it is empty, it would grow with the whole body.
            queue.removeFirst(taken)
            taken = 0
        }
        queue.append(contentsOf: bytes)
    }

    /// Moves as much as there is room for into a frame.
    mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, queued)
        guard count > 0 else { return 0 }
        queue.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[taken..<taken + count])) }
        taken += count
        return count
    }
}
