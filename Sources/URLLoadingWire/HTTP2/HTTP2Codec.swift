// SPDX-License-Identifier: Apache-2.0

// In this folder: HTTP/2 over nghttp2, without I/O: frames in, events out

// One HTTP/2 connection as seen by a client (RFC 9113), based on nghttp2. I/O and the owners of streams are handled
// elsewhere. nghttp2's callbacks (`HTTP2Callbacks`) only append events, so no other code runs inside a callback.

import URLLoadingCNghttp2

/// HTTP/2 as bytes and events, without I/O.
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
/// The codec holds no bytes of a response. Unconsumed bytes must be at the front of the next input, because nghttp2
/// 1.52 counts reads instead of frames against its limit of CONTINUATION; bodies are ranges of the input. It holds the
/// bytes of a request's body until a frame takes them. Used by one task at a time.
package final class HTTP2Codec {
    package let limits: HTTP2Limits
    let isTolerant: Bool
    let session: OpaquePointer
    // Exclusive access follows from the one task that uses the codec at a time; release builds do not check it again
    // with each field, debug builds and so all tests do.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private(set) var events: [HTTP2Event] = []
    /// Empty, with the memory of earlier events.
    private var spareEvents: [HTTP2Event] = []
    private static let mostSpareEvents = 64
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var streams = HTTP2StreamTable<HTTP2StreamState>()

    /// The head or trailer section being received.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var section = HTTP2Section()
    /// The start of the current input; body ranges are relative to it.
    var inputBase: UnsafeRawPointer?
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var scanner = HTTP2FrameScanner()
    private var hasFailed = false
    /// The fields of the last request.
    private var fields = HTTP2FieldList()
    private let memory = HTTP2Memory()

    /// Creates the codec; its first output is the preface and the client's SETTINGS (RFC 9113 §3.4).
    /// - Parameter isTolerant: whether blanks around the value of a field are cut off (RFC 9113 §8.2.1 forbids them).
    package init(limits: HTTP2Limits = HTTP2Limits(), isTolerant: Bool = false) throws(WireViolation) {
        self.limits = limits
        self.isTolerant = isTolerant
        var made: OpaquePointer?
        guard let options = HTTP2Callbacks.options(limits, isTolerant: isTolerant), let callbacks = HTTP2Callbacks.table
        else {
            throw Self.noMemory
        }
        defer { nghttp2_option_del(options) }
        var functions = memory.functions
        guard nghttp2_session_client_new3(&made, callbacks, nil, options, &functions) == 0, let made else {
            throw Self.noMemory
        }
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

    /// Processes the input as far as possible and returns the number of bytes consumed. The results are events.
    /// - Parameter second: seconds of any clock; the limits on frames without effect apply to ten seconds each.
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

    /// Whether a frame has begun and not ended: an end of the input is then not orderly.
    package var isInsideFrame: Bool { scanner.isInsideFrame }

    /// Describes the frames that begin in received or sent bytes, one line each, for observers.
    package struct Watch: Sendable {
        private var scanner = HTTP2FrameLines()
        package init() {}
        package mutating func lines(_ bytes: UnsafeRawBufferPointer, skipsPreface: Bool = false) -> [String] {
            scanner.lines(bytes, skipsPreface: skipsPreface)
        }
    }

    /// Returns the events since the last call.
    package func takeEvents() -> [HTTP2Event] {
        guard !events.isEmpty else { return [] }
        defer { (events, spareEvents) = (spareEvents, []) }
        return events
    }

    /// Takes back what ``takeEvents()`` has returned, if it is not used any more: its memory serves the next events.
    package func giveBack(_ taken: consuming [HTTP2Event]) {
        // A list without events has no memory.
        guard taken.capacity > spareEvents.capacity, taken.capacity <= Self.mostSpareEvents else { return }
        taken.removeAll(keepingCapacity: true)
        spareEvents = taken
    }

    func add(_ event: HTTP2Event) {
        switch event {
        case .data, .response, .informational, .end, .sent: scanner.progressed()
        default: break
        }
        events.append(event)
    }

    /// Ends the connection because of a violation by the peer, and sends the peer the reason.
    func fail(_ violation: WireViolation, _ code: HTTP2ErrorCode = .internalError) {
        guard !hasFailed else { return }
        hasFailed = true
        nghttp2_session_terminate_session(session, code.rawValue)
        events.append(.failed(violation))
    }

    /// Reports that nghttp2 has ended the connection itself; its GOAWAY is in the output.
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

    /// Appends frames to `output` until it holds at least `most` bytes, or none are left.
    package func takeOutput(into output: inout [UInt8], upTo most: Int) {
        while output.count < most {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &bytes)
            guard count > 0, let bytes else {
                // Out of memory, or a failed callback: the connection cannot continue after either.
                if count < 0 { fail(.local(.illegalState, "nghttp2")) }
                return
            }
            output.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
        }
    }

    /// Begins a stream and returns its id, before anything is sent.
    package func submit(_ request: HTTP2Request, hasBody: Bool) throws(WireViolation) -> Int32 {
        try fields.set(request)
        // nghttp2 would silently drop the request.
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

    /// Adds to the body of a request. The bytes are held until frames take them: see `queued`.
    package func send(_ bytes: UnsafeRawBufferPointer, on stream: Int32) {
        guard !bytes.isEmpty, let state = streams[stream], state.isSending else { return }
        state.append(bytes)
        resume(stream, state)
    }

    /// Ends the body of a request.
    package func endSending(on stream: Int32, trailers: Headers = Headers()) throws(WireViolation) {
        guard let state = streams[stream], state.isSending else { return }
        let fields = try HTTP2FieldList(trailers: trailers)
        state.hasEnded = true
        if !fields.isEmpty { state.trailers = fields }
        resume(stream, state)
    }

    /// The bytes of the body that no frame has taken yet.
    package func queued(on stream: Int32) -> Int { streams[stream]?.queued ?? 0 }

    private func resume(_ stream: Int32, _ state: HTTP2StreamState) {
        guard state.isDeferred else { return }
        state.isDeferred = false
        nghttp2_session_resume_data(session, stream)
    }

    /// Changes the urgency of a request (RFC 9218 §7.1). Has no effect on peers that have not announced support
    /// (SETTINGS_NO_RFC7540_PRIORITIES, RFC 9218 §2.1).
    package func prioritize(_ stream: Int32, urgency: Int) {
        var value = Array("u=\(urgency)".utf8)
        nghttp2_submit_priority_update(session, 0, stream, &value, value.count)
    }

    /// Resets a stream. Data that still arrives for it is dropped.
    package func reset(_ stream: Int32, _ code: HTTP2ErrorCode) {
        guard let state = streams.remove(stream) else { return }
        allowLateFrames(state)
        nghttp2_submit_rst_stream(session, 0, stream, code.rawValue)
    }

    /// Allows for frames that arrive on a stream that was reset while the peer was sending.
    func allowLateFrames(_ state: HTTP2StreamState) {
        scanner.ended(window: state.largestWindow ?? limits.streamWindow, limits)
    }

    /// Removes the state of a stream that has ended by itself.
    package func forget(_ stream: Int32) { streams.remove(stream) }

    // MARK: Flow control (RFC 9113 §5.2)

    /// Returns connection flow-control credit for data that has arrived and is held by its stream, so that the peer may
    /// send on other streams.
    package func arrived(_ count: Int) { nghttp2_session_consume_connection(session, count) }

    /// Returns stream flow-control credit for data that the stream's reader has taken, and for padding, once it is an
    /// eighth of the window, or half of a small one. nghttp2 would withhold up to half of any window, and the peer
    /// would have only the other half for each round trip.
    package func consumed(_ count: Int, on stream: Int32) {
        guard let state = streams[stream] else { return }
        state.unreadCount -= count
        // What was received without credit, less by what the window has lost.
        let received = Int(nghttp2_session_get_stream_effective_recv_data_length(session, stream))
        let credit = received - state.unreadCount
        let window = Int(state.window ?? limits.streamWindow)
        guard credit > 0, credit >= min(window / 2, max(window / 8, Self.leastCredit)) else { return }
        nghttp2_submit_window_update(session, 0, stream, Int32(clamping: credit))
    }

    /// The least credit that is worth a frame in a window that is large enough for others.
    private static let leastCredit = 128 << 10

    /// Changes the window of a stream. A larger one is announced with the next output; for a smaller one, credit is
    /// held back as its data is consumed.
    package func resizeWindow(_ stream: Int32, to window: Int32) {
        guard let state = streams[stream] else { return }
        state.window = window
        state.largestWindow = max(state.largestWindow ?? limits.streamWindow, window)
        _ = nghttp2_session_set_local_window_size(session, 0, stream, window)
    }

    // MARK: Connection

    package func ping() { nghttp2_submit_ping(session, 0, nil) }

    /// Sends a GOAWAY that ends the connection.
    package func goAway(_ code: HTTP2ErrorCode = .noError) { nghttp2_session_terminate_session(session, code.rawValue) }

    /// Whether the peer supports Extended CONNECT (SETTINGS_ENABLE_CONNECT_PROTOCOL, RFC 8441 §3).
    package var takesTunnels: Bool {
        nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1
    }

    /// Whether the connection is over: nghttp2 wants neither to read nor to write.
    package var isOver: Bool { nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0 }
}

/// The codec's state of one stream. An object: changing a large value in a dictionary allocates.
final class HTTP2StreamState {
    let isHead: Bool
    /// The size of the request's fields as defined in RFC 9113 §6.5.2.
    let sizeOfHead: Int
    var informationalCount = 0
    /// What was tolerated of the interim responses: it counts for the final one behind them.
    var violations = WireViolations()
    var hasHead = false
    /// Whether the peer has begun to answer, and so to process the request.
    var hasBegun = false
    /// The receive window, and the largest one that the stream has had, once it was changed.
    var window: Int32?
    var largestWindow: Int32?
    /// The bytes of the body that the stream's reader has not taken.
    var unreadCount = 0
    /// The reason for which the codec ended the stream.
    var violation: WireViolation?

    // The request's body.
    var isSending: Bool
    private var queue: [UInt8] = []
    private var taken = 0
    /// Sent bytes stay in the queue until it is worth moving the rest.
    private static let maximumTaken = 64 * 1024
    var hasEnded = false
    var trailers: HTTP2FieldList?
    /// True while nghttp2 waits to be told that there is more data.
    var isDeferred = false

    init(isHead: Bool, sizeOfHead: Int, isSending: Bool) {
        (self.isHead, self.sizeOfHead, self.isSending) = (isHead, sizeOfHead, isSending)
    }

    var queued: Int { queue.count - taken }

    func append(_ bytes: UnsafeRawBufferPointer) {
        if taken == queue.count {
            queue.removeAll(keepingCapacity: true)
            taken = 0
        } else if taken >= Self.maximumTaken {
            // A queue that is refilled before it is empty would otherwise grow to the size of the whole body.
            queue.removeFirst(taken)
            taken = 0
        }
        queue.append(contentsOf: bytes)
    }

    /// Moves as many bytes as fit into a frame.
    func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, queued)
        guard count > 0 else { return 0 }
        queue.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[taken..<taken + count])) }
        taken += count
        return count
    }
}
