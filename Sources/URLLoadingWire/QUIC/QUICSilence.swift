// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// How long a peer has been silent although it was sent what it must acknowledge.
struct QUICSilence {
    /// When the first datagram was sent, or was on its way, without a packet of the peer since then.
    private(set) var start: Int64?

    /// Whether a packet that is sent now may begin a silence.
    var isBroken: Bool { start == nil }

    mutating func received() { start = nil }

    mutating func sent(inFlight: UInt64, now: Int64) {
        if start == nil, inFlight > 0 { start = now }
    }

    /// Returns whether the silence has lasted for three probe time-outs, each of which is twice the one before
    /// (RFC 9002 §6.2.1), or for three seconds: where answers have taken long, the time-outs would be longer than the
    /// connection lives.
    func isLong(probeTimeout: Int64, now: Int64) -> Bool {
        guard let start else { return false }
        return now - start >= min(probeTimeout, Self.longest) * (1 + 2 + 4) || now - start >= Self.longest
    }
    private static let longest: Int64 = 3_000_000_000
}

#endif
