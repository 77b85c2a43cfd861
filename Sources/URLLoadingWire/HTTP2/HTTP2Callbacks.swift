// SPDX-License-Identifier: Apache-2.0

// The callbacks of nghttp2. Each finds its codec in the user data, copies its arguments into it, and returns: no
// callback calls other code, or nghttp2 to send or receive.

import URLLoadingCNghttp2

enum HTTP2Callbacks {
    /// One table for all sessions, which copy it; created once and never freed.
    nonisolated(unsafe) static let table: OpaquePointer? = {
        var made: OpaquePointer?
        guard nghttp2_session_callbacks_new(&made) == 0, let made else { return nil }
        nghttp2_session_callbacks_set_on_begin_headers_callback(made) { _, frame, context in
            guard let frame, let codec = unmanagedCodec(context) else { return 0 }
            let stream = frame.pointee.hd.stream_id
            codec.section = HTTP2Section(stream: stream, isAwaited: codec.streams[stream] != nil)
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(made) {
            _, frame, name, nameLength, value, valueLength, _, context in
            guard let frame, let codec = unmanagedCodec(context) else { return 0 }
            let name = UnsafeRawBufferPointer(start: name, count: nameLength)
            let value = UnsafeRawBufferPointer(start: value, count: valueLength)
            return codec.receive(field: name, value, on: frame.pointee.hd.stream_id)
                ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        // If this callback returns 0, nghttp2 drops the invalid field; RFC 9113 §8.2.1 makes the whole message
        // malformed.
        nghttp2_session_callbacks_set_on_invalid_header_callback(made) {
            _, frame, name, nameLength, value, valueLength, _, context in
            guard let frame, let codec = unmanagedCodec(context) else { return 0 }
            let name = UnsafeRawBufferPointer(start: name, count: nameLength)
            let value = UnsafeRawBufferPointer(start: value, count: valueLength)
            guard codec.mayLeaveOut(field: name, value, on: frame.pointee.hd.stream_id)
            else { return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue }
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made) { _, _, stream, bytes, count, context in
            if let codec = unmanagedCodec(context), let bytes, count > 0 {
                codec.receive(data: bytes, count, on: stream)
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(made) { _, frame, context in
            if let frame, let codec = unmanagedCodec(context) { codec.received(frame) }
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made) { _, frame, error, context in
            guard let frame, let codec = unmanagedCodec(context), frame.pointee.hd.stream_id > 0 else { return 0 }
            codec.refuse(frame, error)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(made) { _, frame, context in
            guard let frame, let codec = unmanagedCodec(context),
                Int32(frame.pointee.hd.type) == Int32(NGHTTP2_GOAWAY.rawValue)
            else { return 0 }
            let code = HTTP2ErrorCode(rawValue: frame.pointee.goaway.error_code)
            if code != .noError { codec.ended(with: code) }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(made) { _, frame, _, context in
            guard let frame, let codec = unmanagedCodec(context),
                Int32(frame.pointee.hd.type) == Int32(NGHTTP2_HEADERS.rawValue)
            else { return 0 }
            codec.notSent(frame.pointee.hd.stream_id)
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(made) { _, stream, error, context in
            unmanagedCodec(context)?.closed(stream, HTTP2ErrorCode(rawValue: error))
            return 0
        }
        return made
    }()

    /// Provides the body of a request from the codec's queue.
    static var bodyProvider: nghttp2_data_provider {
        var provider = nghttp2_data_provider()
        provider.read_callback = { _, stream, buffer, count, flags, _, context in
            guard let codec = unmanagedCodec(context), let buffer, let flags else {
                return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
            }
            return codec.fill(UnsafeMutableRawBufferPointer(start: buffer, count: count), flags, stream)
        }
        return provider
    }

    static func options(_ limits: HTTP2Limits, isTolerant: Bool) -> OpaquePointer? {
        var made: OpaquePointer?
        guard nghttp2_option_new(&made) == 0, let made else { return nil }
        nghttp2_option_set_no_auto_window_update(made, 1)
        nghttp2_option_set_no_closed_streams(made, 1)
        if isTolerant { nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(made, 1) }
        nghttp2_option_set_peer_max_concurrent_streams(made, 100)
        // The scanner passes whole frames and counts them first, so this limit is only a second check.
        nghttp2_option_set_max_continuations(made, limits.continuationCount + 1)
        nghttp2_option_set_max_outbound_ack(made, limits.idleFrameCount + 1)
        return made
    }
}

private func unmanagedCodec(_ context: UnsafeMutableRawPointer?) -> HTTP2Codec? {
    context.map { Unmanaged<HTTP2Codec>.fromOpaque($0).takeUnretainedValue() }
}

/// A head or trailer section whose fields are arriving.
struct HTTP2Section {
    var stream: Int32 = 0
    /// False if the stream was gone when the section began: its fields are not kept.
    var isAwaited = false
    var status: Status?
    var headers = Headers()
    /// The rules that the section breaks, and that were tolerated.
    var violations = WireViolations()
    /// The size as defined in RFC 9113 §6.5.2.
    var size = 0
}
