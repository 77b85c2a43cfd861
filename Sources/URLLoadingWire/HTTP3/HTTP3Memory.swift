// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCNghttp3

/// What a client remembers of a server beside the ticket of a TLS session. Early data keeps to it, because it is sent
/// before the server says what it permits now.
package struct HTTP3Memory: Sendable, Hashable {
    /// The parameters of QUIC (RFC 9000 §7.4.1), as ngtcp2 encodes them: some 60 bytes.
    let parameters: [UInt8]
    /// The settings of HTTP/3 (RFC 9114 §7.2.4.2).
    let settings: HTTP3PeerSettings
}

/// The SETTINGS of a server, as far as nghttp3 knows them.
struct HTTP3PeerSettings: Sendable, Hashable {
    /// The largest head that the server takes, as defined in RFC 9114 §4.2.2.
    var headSize = UInt64.max
    /// The table of compression, and the streams that may wait for it (RFC 9204 §5).
    var tableSize = 0
    var blockedStreamCount = 0
    var takesDatagrams = false

    init() {}

    init(_ settings: nghttp3_proto_settings) {
        headSize = settings.max_field_section_size
        (tableSize, blockedStreamCount) = (settings.qpack_max_dtable_capacity, settings.qpack_blocked_streams)
        takesDatagrams = settings.h3_datagram != 0
    }

    /// Returns the error of a server that has accepted early data and goes back on the settings that the early data
    /// kept to (RFC 9114 §7.2.4.2, RFC 9204 §3.2.3); `nil` if it does not.
    func breach(of remembered: HTTP3PeerSettings) -> HTTP3ErrorCode? {
        if remembered.tableSize != 0, tableSize != remembered.tableSize { return .qpackDecoderStreamError }
        let keeps =
            headSize >= remembered.headSize && blockedStreamCount >= remembered.blockedStreamCount
            && (takesDatagrams || !remembered.takesDatagrams)
        return keeps ? nil : .settingsError
    }
}

#endif
