// SPDX-License-Identifier: Apache-2.0

// In this folder: HTTP/3 over nghttp3, without I/O: the bytes of streams in and out, events

#if HTTP3

import URLLoadingCNghttp3

/// One HTTP/3 connection as seen by a client (RFC 9114), between the streams of a transport and the owners of requests.
///
/// ```swift
/// let codec = try HTTP3Codec(limits: HTTP3Limits())
/// try codec.bind(control: 2, encoder: 6, decoder: 10)
/// try codec.submit(request, hasBody: false, on: 0)
/// // …the transport asks `nextOutput` for bytes to send; with bytes that it has received:
/// let credit = codec.receive(bytes, isEnd: false, on: 0, second: now)
/// for event in codec.takeEvents() { … }
/// for order in codec.takeOrders() { … }
/// ```
///
/// It holds the bytes of a request's body until they are acknowledged, and none of a response, except what waits for
/// the tables of compression. nghttp3's callbacks (`HTTP3Callbacks`) only append events and orders. Used by one task at
/// a time.
package final class HTTP3Codec {
    package let limits: HTTP3Limits
    let session: OpaquePointer
    let collector: HTTP3Collector
    private var hasFailed: Bool { collector.hasFailed }
    /// The fields of the last request.
    private var fields = HTTP2FieldList()
    /// The latest second that the codec was told. nghttp3 ends the process if the clock steps back.
    private var second: Int64 = 0
    /// The streams that are over for the transport, and whose responses wait for the table of compression.
    private var waiting: [(stream: Int64, code: UInt64?)] = []

    /// Creates the codec; the first output is the client's SETTINGS (RFC 9114 §3.2), once its streams are bound.
    package convenience init(limits: HTTP3Limits = HTTP3Limits()) throws(WireViolation) {
        try self.init(limits, remembered: nil)
    }

    /// - Parameter remembered: the settings of the server that early data keeps to.
    init(_ limits: HTTP3Limits, remembered: HTTP3PeerSettings?) throws(WireViolation) {
        self.limits = limits
        let collector = HTTP3Collector(limits, remembered: remembered)
        self.collector = collector
        var settings = nghttp3_settings()
        c_nghttp3_settings_default(&settings)
        settings.max_field_section_size = UInt64(limits.headSize)
        settings.qpack_max_dtable_capacity = limits.tableSize
        settings.qpack_blocked_streams = limits.blockedStreamCount
        var made: OpaquePointer?
        guard c_nghttp3_conn_client_new(&made, &HTTP3Callbacks.table, &settings, collector.context) == 0, let made
        else { throw .local(.illegalState, "nghttp3") }
        session = made
    }

    deinit { nghttp3_conn_del(session) }

    /// Names the three streams that the client opens first (RFC 9114 §6.2, RFC 9204 §4.2).
    package func bind(control: Int64, encoder: Int64, decoder: Int64) throws(WireViolation) {
        guard nghttp3_conn_bind_control_stream(session, control) == 0,
            nghttp3_conn_bind_qpack_streams(session, encoder, decoder) == 0
        else { throw .local(.illegalState, "nghttp3") }
    }

    // MARK: Receiving

    /// Processes bytes of a stream. The results are events.
    /// - Parameters:
    ///   - bytes: a part of `whole`, or the same.
    ///   - whole: the memory in which bodies are ranges; `nil` for `bytes`.
    ///   - second: seconds of any clock; the limits on frames without effect apply to ten seconds each.
    /// - Returns: the bytes that are consumed. The others are those of bodies: their readers consume them.
    package func receive(
        _ bytes: UnsafeRawBufferPointer, in whole: UnsafeRawBufferPointer? = nil, isEnd: Bool, on stream: Int64,
        second: Int64 = 0
    ) -> Int {
        guard !hasFailed else { return bytes.count }
        // nghttp3 has forgotten the stream, or was told not to read it.
        if stream & 3 == 0, collector.streams[stream] == nil { return bytes.count }
        if isEnd { collector.streams[stream]?.hasReceivedAll = true }
        self.second = max(self.second, second)
        let second = self.second
        collector.input = whole ?? bytes
        defer { collector.input = nil }
        let before = collector.progress
        let result = nghttp3_conn_read_stream2(
            session, stream, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, isEnd ? 1 : 0,
            UInt64(second) * 1_000_000_000)
        switch Int32(truncatingIfNeeded: result) {
        // A malformed message is an error of its stream (RFC 9114 §4.1.2). nghttp3 is passed no more of it. Found while
        // the table's stream was read, its stream is not known, and the connection ends.
        case NGHTTP3_ERR_MALFORMED_HTTP_HEADER where stream & 3 == 0,
            NGHTTP3_ERR_MALFORMED_HTTP_MESSAGING where stream & 3 == 0:
            collector.refuse(stream, .http3MalformedMessage, "RFC 9114 4.1.2", .messageError)
            endRefused()
            closeWaiting()
            return bytes.count
        case let error where result < 0:
            fail(error)
            return bytes.count
        default:
            endRefused()
            closeWaiting()
        }
        let consumed = Int(result)
        // A byte more than was received, so that empty pieces count too.
        guard
            collector.progress != before
                || collector.flood.permits(consumed + 1, second: second, heads: collector.awaitedHeads, limits)
        else {
            collector.fail(.remote(.http3Flood, "RFC 9114 10.5"), .excessiveLoad)
            return bytes.count
        }
        if collector.progress != before { collector.flood.progressed() }
        return consumed
    }

    /// Ends the streams whose messages were refused by a callback.
    private func endRefused() {
        for (stream, code) in collector.takeRefused() {
            nghttp3_conn_shutdown_stream_read(session, stream)
            nghttp3_conn_shutdown_stream_write(session, stream)
            collector.order(.abort(stream, code))
        }
    }

    /// Returns the events since the last call.
    package func takeEvents() -> [HTTP3Event] { collector.takeEvents() }
    /// Returns what is to be done with streams since the last call.
    package func takeOrders() -> [HTTP3StreamOrder] { collector.takeOrders() }

    /// The peer has received more bytes of a stream.
    package func acknowledged(_ count: Int, on stream: Int64) {
        guard !hasFailed else { return }
        let result = nghttp3_conn_add_ack_offset(session, stream, UInt64(count))
        if result != 0 { fail(result) }
    }

    /// The peer has reset its direction of a stream. That changes nothing once its response is complete.
    package func wasReset(_ stream: Int64, _ code: UInt64) {
        let state = collector.streams[stream]
        guard !hasFailed, state?.isComplete != true else { return }
        // A critical stream must not be closed (RFC 9114 §6.2.1); nghttp3 finds out by `closed`.
        nghttp3_conn_shutdown_stream_read(session, stream)
        guard collector.forget(stream) else { return }
        let code = HTTP3ErrorCode(rawValue: code)
        nghttp3_conn_shutdown_stream_write(session, stream)
        collector.order(.stopSending(stream, .requestCancelled))
        // With a part of a response the peer has shown that it has processed the request (RFC 9114 §4.1.1).
        let isUnprocessed = code == .requestRejected && state?.hasBegun == false
        collector.add(isUnprocessed ? .unprocessed(stream) : .reset(stream, code))
    }

    /// Both directions of a stream are over.
    package func closed(_ stream: Int64, _ code: UInt64?) {
        guard !hasFailed else { return }
        // nghttp3 drops what a closed stream has received, and what waits for the table of compression is whole.
        if let state = collector.streams[stream], state.hasReceivedAll, !state.isComplete {
            return waiting.append((stream, code))
        }
        let result = nghttp3_conn_close_stream(session, stream, code ?? HTTP3ErrorCode.noError.rawValue)
        guard result == 0 || result == NGHTTP3_ERR_STREAM_NOT_FOUND else { return fail(result) }
        // A response that was not complete never will be.
        defer { collector.release(stream) }
        guard collector.forget(stream) else { return }
        collector.add(.reset(stream, HTTP3ErrorCode(rawValue: code ?? HTTP3ErrorCode.requestIncomplete.rawValue)))
    }

    /// Closes the streams that wait no more.
    private func closeWaiting() {
        guard !waiting.isEmpty else { return }
        let all = waiting
        waiting = []
        for (stream, code) in all { closed(stream, code) }
    }

    private func fail(_ result: Int32) {
        let code = HTTP3ErrorCode(rawValue: nghttp3_err_infer_quic_app_error_code(result))
        switch result {
        case NGHTTP3_ERR_QPACK_DECOMPRESSION_FAILED, NGHTTP3_ERR_QPACK_ENCODER_STREAM_ERROR,
            NGHTTP3_ERR_QPACK_DECODER_STREAM_ERROR:
            collector.fail(.remote(.http3Compression, "RFC 9204 6, \(code)"), code)
        case NGHTTP3_ERR_H3_EXCESSIVE_LOAD: collector.fail(.remote(.http3Flood, "RFC 9114 10.5"), code)
        case NGHTTP3_ERR_NOMEM, NGHTTP3_ERR_CALLBACK_FAILURE, NGHTTP3_ERR_INVALID_ARGUMENT,
            NGHTTP3_ERR_INVALID_STATE:
            collector.fail(.local(.illegalState, "nghttp3"), .internalError)
        default: collector.fail(.remote(.http3Violation, "RFC 9114 8.1, \(code)"), code)
        }
    }

    // MARK: Sending

    /// Begins a request on a stream that the transport has opened.
    package func submit(_ request: HTTP2Request, hasBody: Bool, on stream: Int64) throws(WireViolation) {
        try fields.set(request)
        try checkSize(fields)
        let result = fields.withHTTP3Fields { list, count in
            var reader = HTTP3Callbacks.bodyReader
            guard hasBody else { return nghttp3_conn_submit_request(session, stream, list, count, nil, nil) }
            return nghttp3_conn_submit_request(session, stream, list, count, &reader, nil)
        }
        guard result == 0 else { throw .local(.http3NoStream, "RFC 9114 6.1") }
        collector.begin(stream, hasBody: hasBody)
    }

    private func checkSize(_ fields: HTTP2FieldList) throws(WireViolation) {
        let most = Int(clamping: collector.peerSettings.headSize)
        guard fields.size <= min(65536, most) else { throw .local(.headTooLarge, "RFC 9114 4.2.2") }
    }

    /// Adds to the body of a request. The bytes are held until the peer has received them: see `held`.
    package func send(_ bytes: UnsafeRawBufferPointer, on stream: Int64) {
        guard !bytes.isEmpty, let state = upload(stream), !state.hasEnded else { return }
        state.body.append(bytes)
        resume(stream, state)
    }

    /// Ends the body of a request.
    package func endSending(on stream: Int64, trailers: Headers = Headers()) throws(WireViolation) {
        guard let state = upload(stream) else { return }
        let fields = try HTTP2FieldList(trailers: trailers)
        try checkSize(fields)
        state.hasEnded = true
        if !fields.isEmpty { state.endingTrailers = fields }
        resume(stream, state)
    }

    /// The bytes of the body that no frame has taken yet.
    package func queued(on stream: Int64) -> Int { collector.streams[stream]?.body.queued ?? 0 }
    /// The bytes of the body that the peer has not acknowledged.
    package func held(on stream: Int64) -> Int { collector.streams[stream]?.body.held ?? 0 }

    /// The requests of whose bodies more will be sent.
    package var uploads: Set<Int64> { collector.uploads }
    private func upload(_ stream: Int64) -> HTTP3StreamState? {
        collector.uploads.contains(stream) ? collector.streams[stream] : nil
    }

    private func resume(_ stream: Int64, _ state: HTTP3StreamState) {
        guard state.isDeferred else { return }
        state.isDeferred = false
        nghttp3_conn_resume_stream(session, stream)
    }

    /// Changes the urgency of a request (RFC 9218 §7.2).
    package func prioritize(_ stream: Int64, urgency: Int) {
        let value = Array("u=\(urgency)".utf8)
        _ = nghttp3_conn_set_client_stream_priority(session, stream, value, value.count)
    }

    /// Ends a request before its response is complete. Data that still arrives for it is dropped.
    package func reset(_ stream: Int64, _ code: HTTP3ErrorCode) {
        guard collector.streams[stream] != nil else { return }
        collector.forget(stream)
        nghttp3_conn_shutdown_stream_read(session, stream)
        nghttp3_conn_shutdown_stream_write(session, stream)
        collector.order(.abort(stream, code))
    }

    /// Tells the peer that no more pushes are accepted and the connection will end (RFC 9114 §5.2).
    package func goAway() { _ = nghttp3_conn_shutdown(session) }

    /// The number of requests that are not over.
    package var requestCount: Int { collector.streams.count }

    /// The settings of the server; `nil` before they have arrived.
    var peerSettings: HTTP3PeerSettings? { collector.hasPeerSettings ? collector.peerSettings : nil }
}

// MARK: - The bytes of streams

extension HTTP3Codec: QUICStreamSource {
    package func nextOutput(_ pieces: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> QUICStreamOutput? {
        guard !hasFailed else { return nil }
        return withUnsafeTemporaryAllocation(of: nghttp3_vec.self, capacity: pieces.count) { list in
            var (stream, isEnd) = (Int64(-1), Int32(0))
            var count = 0
            // nghttp3 looks at one body. If that has nothing to send, others may have.
            repeat {
                collector.hasBlockedReader = false
                count = nghttp3_conn_writev_stream(session, &stream, &isEnd, list.baseAddress, pieces.count)
            } while count == 0 && stream < 0 && collector.hasBlockedReader
            guard count >= 0 else {
                fail(Int32(truncatingIfNeeded: count))
                return nil
            }
            guard stream >= 0 else { return nil }
            for index in 0..<Int(count) {
                pieces.initializeElement(
                    at: index, to: UnsafeRawBufferPointer(start: list[index].base, count: list[index].len))
            }
            return QUICStreamOutput(stream: stream, pieces: Int(count), isEnd: isEnd != 0)
        }
    }

    package func took(_ count: Int, on stream: Int64) {
        let result = nghttp3_conn_add_write_offset(session, stream, count)
        if result != 0 { fail(result) }
    }

    package func isBlocked(_ stream: Int64) { nghttp3_conn_block_stream(session, stream) }

    /// Ends the sending direction of a stream. The peer may want no more of a request at any time, and go on with its
    /// response (RFC 9114 §4.1).
    package func isStopped(_ stream: Int64) {
        nghttp3_conn_shutdown_stream_write(session, stream)
        guard let state = upload(stream) else { return }
        state.body.discard()
        collector.endUpload(stream)
    }

    /// More may be sent on a stream that was blocked.
    package func unblock(_ stream: Int64) { _ = nghttp3_conn_unblock_stream(session, stream) }
}

#endif
