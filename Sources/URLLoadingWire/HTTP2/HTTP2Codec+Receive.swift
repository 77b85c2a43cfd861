// SPDX-License-Identifier: Apache-2.0

// Handles nghttp2's callbacks: only changes the codec's own state and appends events.

import URLLoadingCNghttp2

extension HTTP2Codec {
    /// Adds a field. Returns false if the message is refused.
    func receive(field name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, on stream: Int32) -> Bool {
        guard section.stream == stream, section.isAwaited else { return true }
        section.size += name.count + value.count + 32
        guard section.size <= limits.headSize else { return refuse(.headTooLarge, "RFC 9113 6.5.2", stream) }
        if name.first == UInt8(ascii: ":") {
            // nghttp2 has verified that it occurs once, comes first and has three digits.
            guard name.matches(":status", in: 0..<name.count), let status = Self.status(value) else {
                return refuse(.http2MalformedMessage, "RFC 9113 8.3.2", stream)
            }
            section.status = status
            return true
        }
        guard section.headers.count < limits.fieldCount else { return refuse(.tooManyFields, "RFC 9113 6.5.2", stream) }
        // Fits most heads; growing field by field allocates eight times.
        if section.headers.isEmpty { section.headers.reserve(fields: 12, bytes: 384) }
        section.headers.appendRaw(name: name, value: isTolerant ? withoutBlanks(value) : value)
        return true
    }

    /// Returns a value without the blanks around it, which are noted.
    private func withoutBlanks(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard value.first?.isBlank == true || value.last?.isBlank == true else { return value }
        section.violations = WireViolations([.remote(.http2MalformedMessage, "RFC 9113 8.2.1")])
        return UnsafeRawBufferPointer(rebasing: value[value.trimmed(0..<value.count)])
    }

    /// Returns whether a field that nghttp2 finds invalid may be dropped: a cookie with a control character other than
    /// CR, LF and NUL (RFC 9110 §5.5). Any other field makes the message malformed, which is recorded.
    func mayLeaveOut(field name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, on stream: Int32) -> Bool {
        let hasControl = value.firstControl(from: 0, to: value.count) < value.count
        guard name.elementsEqual("set-cookie".utf8), hasControl, !value.contains(where: { [0, .cr, .lf].contains($0) })
        else { return refuse(.http2MalformedMessage, "RFC 9113 8.2.1", stream) }
        section.size += name.count + value.count + 32
        return section.size <= limits.headSize || refuse(.headTooLarge, "RFC 9113 6.5.2", stream)
    }

    private static func status(_ value: UnsafeRawBufferPointer) -> Status? {
        guard value.count == 3, value.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Status(value.reduce(0) { $0 * 10 + Int($1 - 0x30) })
    }

    /// Records the reason why nghttp2 is about to end a stream. Returns false.
    @discardableResult
    func refuse(_ code: WireViolation.Code, _ section: String, _ stream: Int32) -> Bool {
        if let state = streams[stream], state.violation == nil { state.violation = .remote(code, section) }
        return false
    }

    func receive(data bytes: UnsafePointer<UInt8>, _ count: Int, on stream: Int32) {
        guard let inputBase else { return }
        let start = UnsafeRawPointer(bytes) - inputBase
        // The stream is gone, so its data is released at once.
        guard let state = streams[stream] else {
            arrived(count)
            return
        }
        state.unreadCount += count
        add(.data(stream, start..<start + count))
    }

    func received(_ frame: UnsafePointer<nghttp2_frame>) {
        let header = frame.pointee.hd
        let isLast = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch Int32(header.type) {
        case Int32(NGHTTP2_HEADERS.rawValue): receivedHeaders(header.stream_id, isLast: isLast)
        case Int32(NGHTTP2_DATA.rawValue):
            if isLast, let state = streams[header.stream_id] { end(header.stream_id, state, Headers()) }
        case Int32(NGHTTP2_SETTINGS.rawValue):
            if header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0 { return add(.settingsAcknowledged) }
            let limit = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
            add(.concurrency(Int(limit)))
        case Int32(NGHTTP2_PING.rawValue):
            if header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0 { add(.pong) }
        case Int32(NGHTTP2_GOAWAY.rawValue):
            let last = frame.pointee.goaway.last_stream_id
            add(.goAway(HTTP2ErrorCode(rawValue: frame.pointee.goaway.error_code), last: last))
        case Int32(NGHTTP2_RST_STREAM.rawValue):
            let code = HTTP2ErrorCode(rawValue: frame.pointee.rst_stream.error_code)
            guard let state = streams.remove(header.stream_id) else { return }
            // With a part of a response the peer has shown that it has processed the request (RFC 9113 §8.7).
            let isUnprocessed = code == .refusedStream && !state.hasBegun
            add(isUnprocessed ? .unprocessed(header.stream_id) : .reset(header.stream_id, code))
        default: break
        }
    }

    private func receivedHeaders(_ stream: Int32, isLast: Bool) {
        guard section.stream == stream, let state = streams[stream] else { return }
        let section = section
        self.section = HTTP2Section()
        if let status = section.status {
            state.hasBegun = true
            let head = HTTP1ResponseHead(
                status: status, reason: "", version: .http2, headers: section.headers,
                violations: state.violations.adding(section.violations))
            if status.kind == .informational {
                state.violations = head.violations
                return receivedInformational(head, stream, state)
            }
            state.hasHead = true
            add(.response(stream, head))
            if isLast { end(stream, state, Headers()) }
        } else {
            end(stream, state, section.headers)
        }
    }

    private func receivedInformational(_ head: HTTP1ResponseHead, _ stream: Int32, _ state: HTTP2StreamState) {
        state.informationalCount += 1
        guard state.informationalCount <= limits.informationalCount else {
            streams.remove(stream)
            allowLateFrames(state)
            nghttp2_submit_rst_stream(session, 0, stream, HTTP2ErrorCode.enhanceYourCalm.rawValue)
            return add(.violation(stream, .remote(.tooManyInformational, "RFC 9110 15.2")))
        }
        add(.informational(stream, head))
    }

    private func end(_ stream: Int32, _ state: HTTP2StreamState, _ trailers: Headers) {
        guard state.hasHead else { return }
        state.hasHead = false
        add(.end(stream, trailers: trailers))
    }

    /// Handles a stream that nghttp2 has closed: both sides have ended, or one has reset it.
    func closed(_ stream: Int32, _ code: HTTP2ErrorCode) {
        guard let state = streams.remove(stream) else { return }
        if code != .noError { allowLateFrames(state) }
        if let violation = state.violation { return add(.violation(stream, violation)) }
        switch code {
        case .noError: break
        // After a GOAWAY nghttp2 closes the streams that the peer has not processed with this code.
        case .refusedStream: add(state.hasBegun ? .reset(stream, code) : .unprocessed(stream))
        default: add(.violation(stream, Self.violation(endedWith: code)))
        }
    }

    /// Returns the violation for the code of the RST_STREAM with which nghttp2 ends a stream (RFC 9113 §5.4.2).
    private static func violation(endedWith code: HTTP2ErrorCode) -> WireViolation {
        switch code {
        case .protocolError: .remote(.http2MalformedMessage, "RFC 9113 8.1.1")
        case .flowControlError: .remote(.http2FlowControl, "RFC 9113 6.9.1")
        case .internalError: .local(.illegalState, "RFC 9113 7, \(code)")
        default: .remote(.http2Violation, "RFC 9113 5.4.2, \(code)")
        }
    }

    /// Records why nghttp2 ends the stream of an invalid frame: HEADERS and DATA make the message malformed, other
    /// frames violate a rule of the stream.
    func refuse(_ frame: UnsafePointer<nghttp2_frame>, _ error: Int32) {
        let header = frame.pointee.hd
        switch (error, Int32(header.type)) {
        case (NGHTTP2_ERR_FLOW_CONTROL.rawValue, _): refuse(.http2FlowControl, "RFC 9113 6.9.1", header.stream_id)
        case (_, Int32(NGHTTP2_HEADERS.rawValue)), (_, Int32(NGHTTP2_DATA.rawValue)):
            refuse(.http2MalformedMessage, "RFC 9113 8.1.1", header.stream_id)
        default: refuse(.http2Violation, "RFC 9113 5.4.2", header.stream_id)
        }
    }

    /// Reports a request that was never sent.
    func notSent(_ stream: Int32) {
        if streams.remove(stream) != nil { add(.unprocessed(stream)) }
    }

    /// Fills a DATA frame.
    func fill(_ buffer: UnsafeMutableRawBufferPointer, _ flags: UnsafeMutablePointer<UInt32>, _ stream: Int32) -> Int {
        guard let state = streams[stream] else {
            // The stream was ended meanwhile; its RST_STREAM is about to be sent.
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let count = state.take(into: buffer)
        if count > 0 { add(.sent(stream, count)) }
        guard state.queued == 0 else { return count }
        guard state.hasEnded else {
            guard count == 0 else { return count }
            state.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
        if let trailers = state.trailers {
            flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue)
            trailers.withFields { _ = nghttp2_submit_trailer(session, stream, $0, $1) }
        }
        state.isSending = false
        add(.sentAll(stream))
        return count
    }
}
