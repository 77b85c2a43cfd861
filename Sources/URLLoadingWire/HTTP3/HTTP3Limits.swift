// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// Limits of what a peer can make the codec hold or do on one connection.
package struct HTTP3Limits: Sendable, Hashable {
    /// The size of one head as defined in RFC 9114 §4.2.2: names, values and 32 bytes for each field.
    package var headSize = 64 * 1024
    /// The number of fields in one head or trailer section.
    package var fieldCount = 1_000
    /// The number of interim responses before the final one.
    package var informationalCount = 16
    /// The table with which the peer compresses fields, in bytes (RFC 9204 §3.2.3).
    package var tableSize = 4_096
    /// The number of streams that may wait for an entry of the table (RFC 9204 §2.1.2).
    package var blockedStreamCount = 16
    /// The bytes of frames without effect (settings, unknown frames, empty DATA, unknown streams) between two that make
    /// progress, within ten seconds. A head has an effect only once it is whole: `headSize` is permitted besides for
    /// each request without one.
    package var idleByteCount = 128 * 1024

    package init() {}
}

/// Counts bytes without effect: a peer that sends nothing else keeps this side busy for nothing (RFC 9114 §10.5).
struct HTTP3Flood {
    private var idleBytes = 0
    private var turn: Int64 = 0

    mutating func progressed() { idleBytes = 0 }

    /// - Parameter heads: the number of responses without a final head.
    mutating func permits(_ count: Int, second: Int64, heads: Int, _ limits: HTTP3Limits) -> Bool {
        if second / 10 != turn { (turn, idleBytes) = (second / 10, 0) }
        idleBytes += count
        return idleBytes <= limits.idleByteCount + heads * limits.headSize
    }
}

#endif
