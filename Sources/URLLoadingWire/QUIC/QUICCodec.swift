// SPDX-License-Identifier: Apache-2.0

// In this folder: QUIC over ngtcp2, without I/O and clock: datagrams and the time in, datagrams, events and deadlines
//     out

#if HTTP3

import URLLoadingCNgtcp2

/// One QUIC connection (RFC 9000), without sockets and clock.
///
/// ```swift
/// let codec = try QUICCodec(client: tls, now: now)
/// while let sent = codec.nextDatagrams(into: buffer, from: streams, now: now) { … }
/// // …wait for a datagram, at most until `codec.deadline`, then:
/// codec.receive(datagram, ecn: 0, now: now)
/// codec.passDeadline(now: now)
/// for event in codec.takeEvents() { … }
/// ```
///
/// The bytes of streams are ranges of `received`, until `releaseReceived` is called. Times are nanoseconds of one
/// monotonic clock. ngtcp2's callbacks (`QUICCallbacks`) only append events. Used by one task at a time.
package final class QUICCodec {
    package let limits: QUICLimits
    let connection: OpaquePointer
    // Driven by ngtcp2's helper, so it must live as long as `connection`.
    private let security: any QUICSecurity
    private let collector: QUICCollector
    private let side: QUICPath.Side
    private var silence = QUICSilence()
    /// The number of authentic packets so far.
    private var packets: UInt64 = 0
    /// The latest time that the codec was told. ngtcp2 ends the process if the clock steps back, so it stops instead.
    private var last: Int64
    /// The reason that the peer is told; `nil` once it was told, and if there is none to tell.
    private var closing: ngtcp2_ccerr?
    /// True once the connection is over for its streams; a last datagram may be due.
    package private(set) var isOver = false

    // MARK: Beginning

    /// Creates the client side. Nothing is sent before `nextDatagrams`.
    /// - Parameters:
    ///   - token: a token with which the server knows the client's address from an earlier connection (RFC 9000
    ///     §8.1.3).
    ///   - remembered: the server's ``parameters`` of the connection whose TLS session `security` resumes: streams
    ///     that they permit can be opened at once, for early data (RFC 9001 §4.6).
    ///   - isLogged: whether ngtcp2 writes a log; see ``takeLog()``.
    package init(
        client security: any QUICSecurity, limits: QUICLimits = QUICLimits(), token: [UInt8] = [],
        remembered: [UInt8]? = nil, isLogged: Bool = false, now: Int64
    ) throws(WireViolation) {
        self.limits = limits
        self.security = security
        side = .client
        last = max(0, now)
        let collector = QUICCollector(limits, security)
        self.collector = collector
        var (destination, own) = (ngtcp2_cid(random: 18), ngtcp2_cid(random: limits.connectionIDLength))
        let parameters = limits.parameters
        var made: OpaquePointer?
        let result = token.withUnsafeBufferPointer { token in
            var settings = limits.settings(now: max(0, now))
            settings.token = token.isEmpty ? nil : token.baseAddress
            settings.tokenlen = token.count
            if isLogged { settings.qlog_write = QUICCallbacks.log }
            return QUICPath(0, of: .client).withPointer { path in
                withUnsafePointer(to: parameters) {
                    c_ngtcp2_conn_client_new(
                        &made, &destination, &own, path, &QUICCallbacks.client, &settings, $0,
                        collector.context)
                }
            }
        }
        guard result == 0, let made else { throw .local(.illegalState, "ngtcp2") }
        connection = made
        begin()
        guard let remembered else { return }
        collector.mayBeEarly =
            ngtcp2_conn_decode_and_set_0rtt_transport_params(connection, remembered, remembered.count) == 0
    }

    /// Creates the server side for the first datagram of a client, which is then passed to `receive`, with the path 0.
    /// For test servers.
    package init(
        server security: any QUICSecurity, limits: QUICLimits, first: UnsafeRawBufferPointer, now: Int64
    ) throws(WireViolation) {
        self.limits = limits
        self.security = security
        side = .server
        last = max(0, now)
        let collector = QUICCollector(limits, security)
        self.collector = collector
        var header = ngtcp2_pkt_hd()
        guard ngtcp2_accept(&header, first.bindMemory(to: UInt8.self).baseAddress, first.count) == 0 else {
            throw .remote(.quicViolation, "RFC 9000 7.2")
        }
        var own = ngtcp2_cid(random: limits.connectionIDLength)
        var parameters = limits.parameters
        parameters.original_dcid = header.dcid
        parameters.original_dcid_present = 1
        var settings = limits.settings(now: last)
        var made: OpaquePointer?
        let result = QUICPath(0, of: .server).withPointer { path in
            c_ngtcp2_conn_server_new(
                &made, &header.scid, &own, path, header.version, &QUICCallbacks.server, &settings, &parameters,
                collector.context)
        }
        guard result == 0, let made else { throw .local(.illegalState, "ngtcp2") }
        connection = made
        begin()
    }

    private func begin() {
        security.bind(to: connection)
        ngtcp2_conn_set_tls_native_handle(connection, security.handle)
    }

    deinit {
        security.beginCalls()
        ngtcp2_conn_del(connection)
        security.bind(to: nil)
    }

    /// Returns the time, which does not step back.
    private func time(_ now: Int64) -> Int64 {
        last = max(last, now)
        return last
    }

    // MARK: Receiving

    /// Processes one datagram. The results are events; the output may have changed too.
    /// - Parameters:
    ///   - ecn: the mark of congestion of its packet (RFC 3168), 0 to 3.
    ///   - path: where it arrived. On a path that a client has not asked for, nothing is received.
    package func receive(_ datagram: UnsafeRawBufferPointer, ecn: UInt8, on path: UInt32 = 0, now: Int64) {
        guard !isOver, !datagram.isEmpty else { return }
        let now = time(now)
        security.beginCalls()
        let result = QUICPath(path, of: side).withPointer {
            c_ngtcp2_conn_read_pkt(
                connection, $0, ecn, datagram.bindMemory(to: UInt8.self).baseAddress, datagram.count, UInt64(now))
        }
        guard result == 0 else { return end(result) }
        let info = self.info
        if info.pkt_recv != packets { silence.received() }
        packets = info.pkt_recv
        // Only authentic packets count, because others may be of any sender.
        let traffic = QUICTraffic(
            packets: info.pkt_recv, received: info.bytes_recv, sent: info.bytes_sent, inFlight: info.bytes_in_flight)
        guard collector.flood.permits(traffic, now: now, limits) else {
            return close(.transport(.internalError), because: .violation(.remote(.quicFlood, "RFC 9000 21.9")))
        }
    }

    private var info: ngtcp2_conn_info {
        var info = ngtcp2_conn_info()
        c_ngtcp2_conn_get_conn_info(connection, &info)
        return info
    }

    /// The bytes of the streams in the events since `releaseReceived`.
    package var received: [UInt8] { collector.input }

    /// Gives up the bytes of the events that were taken.
    package func releaseReceived() { collector.releaseInput() }

    /// Returns the events since the last call.
    package func takeEvents() -> [QUICEvent] { collector.takeEvents() }

    /// Returns the records of the log (qlog in JSON-SEQ) since the last call, without tokens.
    package func takeLog() -> [[UInt8]] { collector.log.takeRecords() }

    // MARK: Sending

    /// Writes datagrams of one size and path into `buffer`, for packets that are due now.
    /// - Parameters:
    ///   - buffer: at least 1,500 bytes; 64 KiB is the most that is written at once.
    ///   - source: provides the bytes of streams.
    /// - Returns: the datagrams; `nil` if none are due before `deadline`.
    package func nextDatagrams(
        into buffer: UnsafeMutableRawBufferPointer, from source: (any QUICStreamSource)?, now: Int64
    ) -> QUICDatagrams? {
        let now = time(now)
        security.beginCalls()
        let bytes = buffer.bindMemory(to: UInt8.self)
        if closing != nil { return lastDatagram(bytes, now) }
        guard !isOver else { return nil }
        collector.source = source
        defer { collector.source = nil }
        var (size, ecn) = (0, UInt8(0))
        var storage = ngtcp2_path_storage()
        // The addresses of the path are inside of `storage`, which must not move.
        let (count, path) = withUnsafeMutablePointer(to: &storage) { storage in
            ngtcp2_path_storage_zero(storage)
            let count = c_ngtcp2_conn_write_packets(
                connection, &storage.pointee.path, &ecn, bytes.baseAddress, bytes.count, &size, QUICCallbacks.write,
                collector.isAsking, UInt64(now))
            return (count, QUICPath.number(of: storage.pointee.path) ?? self.path)
        }
        if count < 0 {
            end(Int32(truncatingIfNeeded: count))
            return closing == nil ? nil : lastDatagram(bytes, now)
        }
        ngtcp2_conn_update_pkt_tx_time(connection, UInt64(now))
        if silence.isBroken { silence.sent(inFlight: info.bytes_in_flight, now: now) }
        return count == 0 ? nil : QUICDatagrams(count: count, size: size > 0 ? size : count, ecn: ecn, path: path)
    }

    // MARK: Paths

    /// The path that is sent on. Besides, datagrams may be due on one that is asked for.
    package var path: UInt32 { QUICPath.number(of: ngtcp2_conn_get_path(connection).pointee) ?? 0 }

    /// Begins to move a client to another path, where the peer is asked for an answer (RFC 9000 §9).
    /// - Parameters:
    ///   - path: a number below 2^24 that the connection has not used before.
    ///   - isImmediate: whether the present path is given up at once, and not only after the answer.
    package func migrate(to path: UInt32, isImmediate: Bool, now: Int64) -> QUICMigration {
        guard side == .client else { return .forbidden }
        guard !isOver else { return .tooEarly }
        let now = time(now)
        security.beginCalls()
        let result = QUICPath(path, of: side).withPointer {
            isImmediate
                ? ngtcp2_conn_initiate_immediate_migration(connection, $0, UInt64(now))
                : ngtcp2_conn_initiate_migration(connection, $0, UInt64(now))
        }
        switch result {
        case 0:
            collector.isAsking = true
            return .begun
        case NGTCP2_ERR_CONN_ID_BLOCKED: return .noConnectionID
        case NGTCP2_ERR_INVALID_STATE:
            let forbids = ngtcp2_conn_get_remote_transport_params(connection)?.pointee.disable_active_migration ?? 0
            return forbids != 0 ? .forbidden : .tooEarly
        default: return .tooEarly
        }
    }

    /// Whether the peer has been silent for three probe time-outs in a row, or for three seconds, although it was sent
    /// what it must acknowledge.
    package func isPeerSilent(now: Int64) -> Bool {
        !isOver && silence.isLong(probeTimeout: Int64(clamping: ngtcp2_conn_get_pto(connection)), now: max(last, now))
    }

    /// When the peer was sent what it must acknowledge, if it was not heard since.
    package var silentSince: Int64? { silence.start }

    /// Whether a datagram carries a connection id of this side, by which a server knows a client whose address has
    /// changed. For test servers.
    package func isAddressee(of datagram: UnsafeRawBufferPointer) -> Bool {
        var found = ngtcp2_version_cid()
        guard
            ngtcp2_pkt_decode_version_cid(
                &found, datagram.bindMemory(to: UInt8.self).baseAddress, datagram.count, limits.connectionIDLength)
                == 0, let start = found.dcid
        else { return false }
        var own = [ngtcp2_cid](repeating: ngtcp2_cid(), count: ngtcp2_conn_get_scid(connection, nil))
        let count = min(own.count, ngtcp2_conn_get_scid(connection, &own))
        let wanted = UnsafeRawBufferPointer(start: start, count: found.dcidlen)
        return own[..<count].contains { id in
            withUnsafeBytes(of: id.data) { $0.prefix(id.datalen).elementsEqual(wanted) }
        }
    }

    // MARK: Time

    /// When `passDeadline` must be called, unless a datagram is received before; `nil` for never.
    package var deadline: Int64? {
        guard !isOver else { return nil }
        return Int64(exactly: ngtcp2_conn_get_expiry(connection))
    }

    /// Handles the deadline, if it has passed: losses, pacing, and the end of a connection whose peer is silent.
    package func passDeadline(now: Int64) {
        let now = time(now)
        guard let deadline, deadline <= now else { return }
        security.beginCalls()
        let result = ngtcp2_conn_handle_expiry(connection, UInt64(now))
        if result != 0 { end(result) }
    }

    /// Sends a PING after this many nanoseconds of silence; `nil` for never.
    package func keepAlive(after nanoseconds: Int64?) {
        // ngtcp2 takes 0 for never.
        ngtcp2_conn_set_keep_alive_timeout(connection, nanoseconds.map { UInt64(max(1, $0)) } ?? 0)
    }

    /// The nanoseconds of silence after which the connection is over: the smaller of what both sides have stated
    /// (RFC 9000 §10.1).
    package var idleTimeout: Int64 {
        let peer = ngtcp2_conn_get_remote_transport_params(connection)?.pointee.max_idle_timeout ?? 0
        return peer > 0 ? min(limits.idleTimeout, Int64(clamping: peer)) : limits.idleTimeout
    }

    // MARK: Early data

    /// Whether streams may carry early data, until the handshake shows what became of it.
    package var mayBeEarly: Bool { collector.mayBeEarly }

    /// The parameters of the server that early data of a later connection keeps to; `nil` if they are not known.
    package var parameters: [UInt8]? {
        guard ngtcp2_conn_get_handshake_completed(connection) != 0 else { return nil }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.mostParameters) { bytes in
            let count = ngtcp2_conn_encode_0rtt_transport_params(connection, bytes.baseAddress, bytes.count)
            return count > 0 ? Array(bytes[..<count]) : nil
        }
    }
    private static let mostParameters = 256

    // MARK: Streams

    /// How many streams in both directions may be opened now.
    package var streamsLeft: Int { Int(clamping: ngtcp2_conn_get_streams_bidi_left(connection)) }

    /// How many streams in one direction may be opened now.
    package var outgoingStreamsLeft: Int { Int(clamping: ngtcp2_conn_get_streams_uni_left(connection)) }

    /// Opens a stream in both directions; `nil` if the peer permits no more for now.
    package func openStream() -> Int64? { open { ngtcp2_conn_open_bidi_stream(connection, $0, nil) } }

    /// Opens a stream in one direction.
    package func openOutgoingStream() -> Int64? { open { ngtcp2_conn_open_uni_stream(connection, $0, nil) } }

    private func open(_ body: (UnsafeMutablePointer<Int64>) -> Int32) -> Int64? {
        var stream: Int64 = -1
        guard !isOver else { return nil }
        return body(&stream) == 0 ? stream : nil
    }

    /// Ends both directions of a stream with an error of the application (RFC 9000 §19.4, §19.5).
    package func abort(_ stream: Int64, _ code: UInt64) { ngtcp2_conn_shutdown_stream(connection, 0, stream, code) }
    package func stopReceiving(_ stream: Int64, _ code: UInt64) {
        ngtcp2_conn_shutdown_stream_read(connection, 0, stream, code)
    }
    package func stopSending(_ stream: Int64, _ code: UInt64) {
        ngtcp2_conn_shutdown_stream_write(connection, 0, stream, code)
    }

    /// Whether a stream takes bytes to send: not once they are at their end, or the peer wants no more of them.
    package func takesBytes(_ stream: Int64) -> Bool { c_ngtcp2_conn_takes_bytes(connection, stream) }

    /// Lets the peer send as much more on all streams (RFC 9000 §4.1).
    package func arrived(_ count: Int) {
        if count > 0 { ngtcp2_conn_extend_max_offset(connection, UInt64(count)) }
    }
    /// Lets the peer send as much more on this stream.
    package func consumed(_ count: Int, on stream: Int64) {
        if count > 0 { ngtcp2_conn_extend_max_stream_offset(connection, stream, UInt64(count)) }
    }

    // MARK: Ending

    /// Ends the connection, which tells the peer the reason in a last datagram.
    package func close(_ code: QUICErrorCode) { close(code, because: .closedHere) }

    /// The application protocol that the handshake has agreed on.
    package var applicationProtocol: String? { security.applicationProtocol }
    /// Ends the connection, because this side does not accept what the handshake has agreed on (RFC 9001 §4.8).
    package func refuse(alert: UInt8) {
        close(.transport(QUICTransportError(alert: alert)), because: .handshakeFailed(alert: alert))
    }

    private func close(_ code: QUICErrorCode, because end: QUICEnd) {
        guard !isOver else { return }
        var reason = ngtcp2_ccerr()
        switch code {
        case .application(let code): ngtcp2_ccerr_set_application_error(&reason, code, nil, 0)
        case .transport(let code): ngtcp2_ccerr_set_transport_error(&reason, code.rawValue, nil, 0)
        }
        closing = reason
        finish(end)
    }

    private func finish(_ end: QUICEnd) {
        isOver = true
        collector.add(.ended(end))
    }

    private func lastDatagram(_ bytes: UnsafeMutableBufferPointer<UInt8>, _ now: Int64) -> QUICDatagrams? {
        guard var reason = closing else { return nil }
        closing = nil
        let count = c_ngtcp2_conn_write_connection_close(
            connection, bytes.baseAddress, min(bytes.count, Self.lastSize), &reason, UInt64(now))
        return count > 0 ? QUICDatagrams(count: count, size: count, ecn: 0, path: path) : nil
    }
    private static let lastSize = 1200
    /// The alert of TLS for a failure that has nothing to do with the peer (RFC 8446 §6.2).
    private static let internalError: UInt8 = 80
    /// The results of ngtcp2 for which the peer is not the cause.
    private static let ownFailures = [
        NGTCP2_ERR_NOMEM, NGTCP2_ERR_CALLBACK_FAILURE, NGTCP2_ERR_INVALID_STATE, NGTCP2_ERR_INVALID_ARGUMENT,
    ]

    /// Handles a result of ngtcp2 with which a connection ends.
    private func end(_ result: Int32) {
        guard !isOver else { return }
        switch result {
        case NGTCP2_ERR_DRAINING:
            let reason = ngtcp2_conn_get_ccerr(connection).pointee
            let isApplication = reason.type == NGTCP2_CCERR_TYPE_APPLICATION
            if collector.wasReset { return finish(.forgottenByPeer) }
            finish(
                .closedByPeer(
                    isApplication ? .application(reason.error_code) : .transport(.init(rawValue: reason.error_code))))
        case NGTCP2_ERR_IDLE_CLOSE: finish(.idle)
        case NGTCP2_ERR_HANDSHAKE_TIMEOUT: finish(.handshakeTimedOut)
        case NGTCP2_ERR_RECV_VERSION_NEGOTIATION: finish(.noCommonVersion)
        // NGTCP2_ERR_RETRY asks a server to prove the client's address first, which a test server does not.
        case NGTCP2_ERR_CLOSING, NGTCP2_ERR_DROP_CONN, NGTCP2_ERR_RETRY: finish(.dropped)
        case NGTCP2_ERR_CRYPTO: refuse(alert: ngtcp2_conn_get_tls_alert(connection))
        // TLS has failed without an alert, such as before its first message.
        case NGTCP2_ERR_CALLBACK_FAILURE where ngtcp2_conn_get_handshake_completed(connection) == 0:
            refuse(alert: Self.internalError)
        default:
            var reason = ngtcp2_ccerr()
            ngtcp2_ccerr_set_liberr(&reason, result, nil, 0)
            closing = reason
            let words = ngtcp2_strerror(result).map { String(cString: $0) } ?? ""
            let isLocal = Self.ownFailures.contains(result)
            finish(
                .violation(
                    isLocal
                        ? .local(.illegalState, "ngtcp2, \(words)") : .remote(.quicViolation, "RFC 9000 20.1, \(words)")
                ))
        }
    }
}

#endif
