// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoading
import URLLoadingCNghttp3
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// What a server answers.
struct HTTP3Answer {
    var status = 200
    var interim: [Int] = []
    var fields: [(String, String)] = []
    var body: [UInt8] = []
    var trailers: [(String, String)] = []
    /// Resets the stream behind the head.
    var reset: HTTP3ErrorCode?
    /// Sends no response.
    var isSilent = false
}

/// A request that a server has received whole.
struct HTTP3Received {
    var fields: [(String, String)] = []
    var body: [UInt8] = []
    var trailers: [(String, String)] = []
    subscript(name: String) -> String? { fields.first { $0.0 == name }?.1 }
}

/// A server over the same libraries as the client, without sockets.
final class HTTP3MemoryServer {
    private(set) var quic: QUICCodec?
    private let security: QUICTLS
    private let limits: QUICLimits
    private let answer: (HTTP3Received) -> HTTP3Answer
    private var session: OpaquePointer?
    private(set) var requests: [Int64: HTTP3Received] = [:]
    private(set) var stops: [Int64: UInt64] = [:]
    private(set) var end: QUICEnd?
    /// The requests that were whole before the end of the handshake.
    private(set) var early: Set<Int64> = []
    private var hasCompleted = false
    /// Changes the settings.
    var configure: (inout nghttp3_settings) -> Void = { _ in }
    /// How often the client has answered on a path.
    private(set) var moves = 0
    private var inTrailers: Set<Int64> = []
    /// Held until the end, because retransmissions need them.
    private var bodies: [Int64: UnsafeMutableRawBufferPointer] = [:]
    private var given: [Int64: Int] = [:]
    private var trailers: [Int64: [(String, String)]] = [:]
    /// Consumes what it receives at once, or never.
    var consumes = true

    init(
        _ security: QUICTLS, limits: QUICLimits = .forServers, answer: @escaping (HTTP3Received) -> HTTP3Answer
    ) {
        (self.security, self.limits, self.answer) = (security, limits, answer)
    }

    deinit {
        quic = nil
        if let session { nghttp3_conn_del(session) }
        for body in bodies.values { body.deallocate() }
    }

    func receive(_ datagram: UnsafeRawBufferPointer, on path: UInt32 = 0, now: Int64) throws {
        if quic == nil {
            // A server takes no notice of datagrams that begin no connection.
            quic = try? QUICCodec(server: security, limits: limits, first: datagram, now: now)
        }
        quic?.receive(datagram, ecn: 0, on: path, now: now)
        try pump()
    }

    func nextDatagrams(into buffer: UnsafeMutableRawBufferPointer, now: Int64) throws -> QUICDatagrams? {
        let datagrams = quic?.nextDatagrams(into: buffer, from: session == nil ? nil : self, now: now)
        try pump()
        return datagrams
    }

    func passDeadline(now: Int64) throws {
        quic?.passDeadline(now: now)
        try pump()
    }

    func goAway() { if let session { nghttp3_conn_shutdown(session) } }

    private func pump() throws {
        guard let quic else { return }
        for event in quic.takeEvents() {
            switch event {
            case .handshakeCompleted:
                hasCompleted = true
                if session == nil { try begin(quic) }
            case .data(let stream, let range, let isEnd):
                // Early data comes before the end of the handshake.
                if session == nil { try begin(quic) }
                guard let session else { continue }
                let consumed = quic.received[range].withUnsafeBytes {
                    nghttp3_conn_read_stream2(
                        session, stream, $0.bindMemory(to: UInt8.self).baseAddress, $0.count, isEnd ? 1 : 0, 0)
                }
                guard consumed >= 0 else {
                    quic.close(.application(nghttp3_err_infer_quic_app_error_code(Int32(consumed))))
                    continue
                }
                quic.arrived(range.count)
                quic.consumed(consumes ? range.count : consumed, on: stream)
            case .acknowledged(let stream, let count): nghttp3_conn_add_ack_offset(session, stream, UInt64(count))
            case .unblocked(let stream): nghttp3_conn_unblock_stream(session, stream)
            case .reset(let stream, let code):
                stops[stream] = code
                nghttp3_conn_shutdown_stream_read(session, stream)
            case .closed(let stream, let code):
                if let code { stops[stream] = code }
                nghttp3_conn_close_stream(session, stream, code ?? 0x100)
            // Nothing has begun: a later datagram may do.
            case .ended(.dropped): self.quic = nil
            case .ended(let end): self.end = end
            case .moved: moves += 1
            case .handshakeConfirmed, .streamsPermitted, .token, .pathFailed, .earlyDataRejected: break
            }
        }
        quic.releaseReceived()
    }

    private func begin(_ quic: QUICCodec) throws {
        var settings = nghttp3_settings()
        c_nghttp3_settings_default(&settings)
        settings.qpack_max_dtable_capacity = 4_096
        settings.qpack_encoder_max_dtable_capacity = 4_096
        settings.qpack_blocked_streams = 16
        settings.qpack_indexing_strat = NGHTTP3_QPACK_INDEXING_STRAT_EAGER
        configure(&settings)
        var callbacks = Self.callbacks
        var made: OpaquePointer?
        let context = Unmanaged.passUnretained(self).toOpaque()
        guard c_nghttp3_conn_server_new(&made, &callbacks, &settings, context) == 0, let made,
            let control = quic.openOutgoingStream(), let encoder = quic.openOutgoingStream(),
            let decoder = quic.openOutgoingStream(), nghttp3_conn_bind_control_stream(made, control) == 0,
            nghttp3_conn_bind_qpack_streams(made, encoder, decoder) == 0
        else { throw WireViolation(.local, .illegalState) }
        session = made
    }

    private static var callbacks: nghttp3_callbacks {
        var callbacks = nghttp3_callbacks()
        callbacks.recv_header = { _, stream, _, name, value, _, context, _ in
            peer(context)?.add(name, value, stream)
            return 0
        }
        callbacks.begin_trailers = { _, stream, context, _ in
            peer(context)?.inTrailers.insert(stream)
            return 0
        }
        callbacks.recv_trailer = { _, stream, _, name, value, _, context, _ in
            peer(context)?.add(name, value, stream)
            return 0
        }
        callbacks.recv_data = { _, stream, bytes, count, context, _ in
            peer(context)?.requests[stream, default: HTTP3Received()].body += UnsafeRawBufferPointer(
                start: bytes, count: count)
            return 0
        }
        callbacks.end_stream = { session, stream, context, _ in
            if let session { peer(context)?.respond(session, stream) }
            return 0
        }
        return callbacks
    }

    private func add(_ name: OpaquePointer?, _ value: OpaquePointer?, _ stream: Int64) {
        let (name, value) = (nghttp3_rcbuf_get_buf(name), nghttp3_rcbuf_get_buf(value))
        let field = (
            String(decoding: UnsafeBufferPointer(start: name.base, count: name.len), as: UTF8.self),
            String(decoding: UnsafeBufferPointer(start: value.base, count: value.len), as: UTF8.self)
        )
        if inTrailers.contains(stream) {
            requests[stream, default: HTTP3Received()].trailers.append(field)
        } else {
            requests[stream, default: HTTP3Received()].fields.append(field)
        }
    }

    private func respond(_ session: OpaquePointer, _ stream: Int64) {
        if !hasCompleted { early.insert(stream) }
        let answer = answer(requests[stream] ?? HTTP3Received())
        guard !answer.isSilent else { return }
        for status in answer.interim {
            withFields([(":status", "\(status)")]) { _ = nghttp3_conn_submit_info(session, stream, $0, $1) }
        }
        let body = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, answer.body.count), alignment: 1)
        body.copyBytes(from: answer.body)
        bodies[stream] = UnsafeMutableRawBufferPointer(rebasing: body[..<answer.body.count])
        trailers[stream] = answer.trailers
        var reader = nghttp3_data_reader { session, stream, pieces, count, flags, context, _ in
            guard let session, let pieces, let flags else { return Int(NGHTTP3_ERR_CALLBACK_FAILURE) }
            return peer(context)?.give(session, stream, pieces, flags) ?? Int(NGHTTP3_ERR_CALLBACK_FAILURE)
        }
        withFields([(":status", "\(answer.status)")] + answer.fields) {
            _ = nghttp3_conn_submit_response(session, stream, $0, $1, &reader)
        }
        if let code = answer.reset { quic?.abort(stream, code.rawValue) }
    }

    private func give(
        _ session: OpaquePointer, _ stream: Int64, _ pieces: UnsafeMutablePointer<nghttp3_vec>,
        _ flags: UnsafeMutablePointer<UInt32>
    ) -> Int {
        let (body, start) = (bodies[stream], given[stream] ?? 0)
        let end = min(body?.count ?? 0, start + 16_384)
        given[stream] = end
        if end == body?.count ?? 0 {
            flags.pointee |= UInt32(NGHTTP3_DATA_FLAG_EOF)
            if let trailers = trailers[stream], !trailers.isEmpty {
                flags.pointee |= UInt32(NGHTTP3_DATA_FLAG_NO_END_STREAM)
                withFields(trailers) { _ = nghttp3_conn_submit_trailers(session, stream, $0, $1) }
            }
        }
        guard end > start, let base = body?.baseAddress else { return 0 }
        pieces.pointee = nghttp3_vec(base: (base + start).assumingMemoryBound(to: UInt8.self), len: end - start)
        return 1
    }

    private func withFields(_ fields: [(String, String)], _ body: (UnsafePointer<nghttp3_nv>?, Int) -> Void) {
        let bytes = fields.flatMap { Array($0.0.utf8) + Array($0.1.utf8) }
        bytes.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return body(nil, 0) }
            var start = 0
            let list = fields.map { name, value in
                defer { start += name.utf8.count + value.utf8.count }
                return nghttp3_nv(
                    name: base + start, value: base + start + name.utf8.count, namelen: name.utf8.count,
                    valuelen: value.utf8.count, flags: 0)
            }
            list.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
        }
    }
}

private func peer(_ context: UnsafeMutableRawPointer?) -> HTTP3MemoryServer? {
    context.map { Unmanaged<HTTP3MemoryServer>.fromOpaque($0).takeUnretainedValue() }
}

extension HTTP3MemoryServer: QUICStreamSource {
    func nextOutput(_ pieces: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> QUICStreamOutput? {
        withUnsafeTemporaryAllocation(of: nghttp3_vec.self, capacity: pieces.count) { list in
            var (stream, isEnd) = (Int64(-1), Int32(0))
            let count = nghttp3_conn_writev_stream(session, &stream, &isEnd, list.baseAddress, pieces.count)
            guard count >= 0, stream >= 0 else { return nil }
            for index in 0..<Int(count) {
                pieces.initializeElement(
                    at: index, to: UnsafeRawBufferPointer(start: list[index].base, count: list[index].len))
            }
            return QUICStreamOutput(stream: stream, pieces: Int(count), isEnd: isEnd != 0)
        }
    }
    func took(_ count: Int, on stream: Int64) { nghttp3_conn_add_write_offset(session, stream, count) }
    func isBlocked(_ stream: Int64) { nghttp3_conn_block_stream(session, stream) }
    func isStopped(_ stream: Int64) { nghttp3_conn_shutdown_stream_write(session, stream) }
}

extension QUICLimits {
    static var forServers: QUICLimits {
        var limits = QUICLimits()
        limits.streamCount = 100
        return limits
    }
}

#endif
