// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCNgtcp2

/// Limits of what a peer can make the codec hold or do on one connection.
///
/// ngtcp2 has limits of its own: of data out of order by the windows, of paths under validation, and of frames without
/// sense by a rate.
package struct QUICLimits: Sendable, Hashable {
    /// The initial receive window of a stream in bytes, and the largest to which it grows while the stream is read.
    package var streamWindow = 256 * 1024
    package var largestStreamWindow = 16 << 20
    /// The receive window of the connection in bytes.
    package var connectionWindow = 64 << 20
    /// The receive window of a stream in one direction, which carries settings and the tables of compression.
    package var incomingWindow = 64 * 1024
    /// The number of streams in both directions that the peer may have open. A client permits none.
    package var streamCount = 0
    /// The number of streams in one direction that the peer may have open: three of HTTP/3, and unknown ones.
    package var incomingCount = 8
    /// The number of small packets without effect between two that make progress, within ten seconds.
    package var idlePacketCount = 1_000
    /// The size of a token for later connections in bytes; larger ones are ignored.
    package var tokenSize = 1_024
    /// Nanoseconds of silence after which the connection is over; the peer may ask for less.
    package var idleTimeout: Int64 = 30_000_000_000
    /// Nanoseconds after which a handshake fails; `nil` leaves that to the owner.
    package var handshakeTimeout: Int64?
    /// The length of this side's connection ids in bytes.
    package var connectionIDLength = 8
    /// The number of the peer's connection ids that are kept.
    package var connectionIDCount = 4
    /// The largest payload of a datagram that is tried, in bytes; at most 1,500.
    package var datagramSize = 1_452
    /// Whether clients must stay on the path of their handshake. For test servers.
    package var forbidsMigration = false

    package init() {}

    var parameters: ngtcp2_transport_params {
        var parameters = ngtcp2_transport_params()
        c_ngtcp2_transport_params_default(&parameters)
        parameters.initial_max_stream_data_bidi_local = UInt64(streamWindow)
        parameters.initial_max_stream_data_bidi_remote = UInt64(streamWindow)
        parameters.initial_max_stream_data_uni = UInt64(incomingWindow)
        parameters.initial_max_data = UInt64(connectionWindow)
        parameters.initial_max_streams_bidi = UInt64(streamCount)
        parameters.initial_max_streams_uni = UInt64(incomingCount)
        parameters.max_idle_timeout = UInt64(idleTimeout)
        parameters.active_connection_id_limit = UInt64(connectionIDCount)
        parameters.grease_quic_bit = 1
        parameters.disable_active_migration = forbidsMigration ? 1 : 0
        return parameters
    }

    func settings(now: Int64) -> ngtcp2_settings {
        var settings = ngtcp2_settings()
        c_ngtcp2_settings_default(&settings)
        settings.initial_ts = UInt64(now)
        // What is written at once begins with room for one: see `QUICCodec.nextDatagrams`.
        settings.max_tx_udp_payload_size = min(datagramSize, 1_500)
        settings.max_window = UInt64(connectionWindow)
        settings.max_stream_window = UInt64(largestStreamWindow)
        settings.handshake_timeout = handshakeTimeout.map { UInt64($0) } ?? UInt64.max
        return settings
    }
}

/// Counts packets without effect, such as PINGs and connection ids: a peer that sends nothing else keeps this side busy
/// for nothing (RFC 9000 §21.9).
///
/// Behind a lost packet, neither bytes of streams nor acknowledgements have an effect until it is sent again. So more
/// packets are permitted as they carry bytes, at most those of the receive window, and as bytes are sent, which the
/// peer acknowledges.
struct QUICFlood {
    private var counted = QUICTraffic()
    private var turn: Int64 = 0
    private var hasProgressed = false
    /// The bytes for which one more packet is permitted: packets of streams are larger under load, and a peer
    /// acknowledges packets of this side that are.
    private static let bytesPerPacket: UInt64 = 512

    mutating func progressed() { hasProgressed = true }

    mutating func permits(_ traffic: QUICTraffic, now: Int64, _ limits: QUICLimits) -> Bool {
        let turn = now / 10_000_000_000
        if hasProgressed || turn != self.turn {
            (counted, self.turn, hasProgressed) = (traffic, turn, false)
            return true
        }
        let received = min(traffic.received &- counted.received, UInt64(limits.connectionWindow))
        // What was on its way when the count began is acknowledged within it.
        let sent = traffic.sent &- counted.sent &+ counted.inFlight
        let most = UInt64(limits.idlePacketCount) &+ (received &+ sent) / Self.bytesPerPacket
        return traffic.packets &- counted.packets <= most
    }
}

/// What a connection has received and sent so far.
struct QUICTraffic {
    /// The authentic packets that were received, and their bytes.
    var packets: UInt64 = 0
    var received: UInt64 = 0
    /// The bytes that were sent, and those of them that are neither acknowledged nor lost.
    var sent: UInt64 = 0
    var inFlight: UInt64 = 0
}

#endif
