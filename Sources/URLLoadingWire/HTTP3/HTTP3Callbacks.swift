// SPDX-License-Identifier: Apache-2.0

// The callbacks of nghttp3. Each finds the codec's collector in the user data, copies its arguments into it, and
// returns: no callback calls other code, or nghttp3 to read or write.

#if HTTP3

import URLLoadingCNghttp3

enum HTTP3Callbacks {
    // Unsafe: set up once, and only read afterwards by nghttp3, which copies it.
    nonisolated(unsafe) static var table: nghttp3_callbacks = {
        var callbacks = nghttp3_callbacks()
        callbacks.begin_headers = { _, stream, context, _ in
            collector(context)?.beginSection(stream)
            return 0
        }
        callbacks.recv_header = { _, stream, _, name, value, _, context, _ in
            receive(name, value, stream, context)
        }
        callbacks.end_headers = { _, stream, _, context, _ in
            collector(context)?.endHead(stream)
            return 0
        }
        callbacks.begin_trailers = { _, stream, context, _ in
            collector(context)?.beginSection(stream)
            return 0
        }
        callbacks.recv_trailer = { _, stream, _, name, value, _, context, _ in
            receive(name, value, stream, context)
        }
        callbacks.end_trailers = { _, stream, _, context, _ in
            collector(context)?.endTrailers(stream)
            return 0
        }
        callbacks.recv_data = { _, stream, bytes, count, context, _ in
            guard let collector = collector(context), count > 0 else { return 0 }
            let isTaken = collector.receive(data: UnsafeRawBufferPointer(start: bytes, count: count), on: stream)
            if !isTaken { collector.order(.consumed(stream, count)) }
            return 0
        }
        callbacks.end_stream = { _, stream, context, _ in
            collector(context)?.end(stream)
            return 0
        }
        addStreams(&callbacks)
        return callbacks
    }()

    private static func addStreams(_ callbacks: inout nghttp3_callbacks) {
        callbacks.acked_stream_data = { _, stream, count, context, _ in
            collector(context)?.acknowledged(Int(clamping: count), on: stream)
            return 0
        }
        callbacks.deferred_consume = { _, stream, count, context, _ in
            collector(context)?.order(.consumed(stream, count))
            return 0
        }
        callbacks.stop_sending = { _, stream, code, context, _ in
            collector(context)?.rejected(stream, code)
            collector(context)?.order(.stopReceiving(stream, HTTP3ErrorCode(rawValue: code)))
            return 0
        }
        callbacks.reset_stream = { _, stream, code, context, _ in
            collector(context)?.rejected(stream, code)
            collector(context)?.order(.stopSending(stream, HTTP3ErrorCode(rawValue: code)))
            return 0
        }
        callbacks.shutdown = { _, first, context in
            collector(context)?.goAway(from: first)
            return 0
        }
        callbacks.recv_settings2 = { _, settings, context in
            if let settings { collector(context)?.receive(HTTP3PeerSettings(settings.pointee)) }
            return 0
        }
    }

    /// Provides the body of a request from its queue.
    static var bodyReader: nghttp3_data_reader {
        nghttp3_data_reader { session, stream, pieces, count, flags, context, _ in
            guard let collector = collector(context), let session, let pieces, let flags, count > 0 else {
                return Int(NGHTTP3_ERR_CALLBACK_FAILURE)
            }
            return collector.lend(pieces, flags, session, stream)
        }
    }

    private static func receive(
        _ name: OpaquePointer?, _ value: OpaquePointer?, _ stream: Int64, _ context: UnsafeMutableRawPointer?
    ) -> Int32 {
        guard let collector = collector(context) else { return 0 }
        let (name, value) = (nghttp3_rcbuf_get_buf(name), nghttp3_rcbuf_get_buf(value))
        collector.receive(
            field: UnsafeRawBufferPointer(start: name.base, count: name.len),
            UnsafeRawBufferPointer(start: value.base, count: value.len), on: stream)
        return 0
    }
}

private func collector(_ context: UnsafeMutableRawPointer?) -> HTTP3Collector? {
    context.map { Unmanaged<HTTP3Collector>.fromOpaque($0).takeUnretainedValue() }
}

extension HTTP2FieldList {
    /// Lends the fields in nghttp3's representation; nghttp3 copies them.
    func withHTTP3Fields<R>(_ body: (UnsafePointer<nghttp3_nv>?, Int) -> R) -> R {
        bytes.withUnsafeBufferPointer { bytes in
            // Never empty when there are entries, because each has a name.
            guard let base = bytes.baseAddress else { return body(nil, 0) }
            return withUnsafeTemporaryAllocation(of: nghttp3_nv.self, capacity: entries.count) { list in
                for (index, entry) in entries.enumerated() {
                    list.initializeElement(
                        at: index,
                        to: nghttp3_nv(
                            name: base + entry.name.lowerBound, value: base + entry.value.lowerBound,
                            namelen: entry.name.count, valuelen: entry.value.count,
                            flags: UInt8(entry.isSecret ? NGHTTP3_NV_FLAG_NEVER_INDEX : NGHTTP3_NV_FLAG_NONE)))
                }
                return body(list.baseAddress, entries.count)
            }
        }
    }
}

#endif
