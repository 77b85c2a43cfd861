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
    /// The number of packets without effect between two that make progress, within ten seconds.
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
    /// The largest payload of a datagram that is tried, in bytes.
    package var datagramSize = 1_452

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
        return parameters
    }

    func settings(now: Int64) -> ngtcp2_settings {
        var settings = ngtcp2_settings()
        c_ngtcp2_settings_default(&settings)
        settings.initial_ts = UInt64(now)
        settings.max_tx_udp_payload_size = datagramSize
        settings.max_window = UInt64(connectionWindow)
        settings.max_stream_window = UInt64(largestStreamWindow)
        settings.handshake_timeout = handshakeTimeout.map { UInt64($0) } ?? UInt64.max
        return settings
    }
}

/// Counts packets without effect, such as PINGs and connection ids: a peer that sends nothing else keeps this side busy
/// for nothing (RFC 9000 §21.9).
struct QUICFlood {
    private var counted: UInt64 = 0
    private var idlePackets: UInt64 = 0
    private var turn: Int64 = 0
    private var hasProgressed = false

    mutating func progressed() { hasProgressed = true }

    /// - Parameter packets: all authentic packets of the connection so far.
    mutating func permits(packets: UInt64, now: Int64, _ limits: QUICLimits) -> Bool {
        let added = packets &- counted
        counted = packets
        let turn = now / 10_000_000_000
        if hasProgressed || turn != self.turn {
            idlePackets = 0
            self.turn = turn
            hasProgressed = false
        } else {
            idlePackets += added
        }
        return idlePackets <= UInt64(limits.idlePacketCount)
    }
}

#endif
