// SPDX-License-Identifier: Apache-2.0

#if HTTP3

extension WireViolation.Code {
    // MARK: HTTP/3

    /// A rule of a QUIC connection or of its streams was violated (RFC 9000 §20.1).
    public static let quicViolation = Self(rawValue: "quicViolation")
    /// The number of packets without effect exceeds the limit (RFC 9000 §21.9).
    public static let quicFlood = Self(rawValue: "quicFlood")
    /// A rule of the connection or of a stream was violated (RFC 9114 §8), other than those with a code of their own.
    public static let http3Violation = Self(rawValue: "http3Violation")
    /// A malformed message: its fields, their order, or its length (RFC 9114 §4.1.2).
    public static let http3MalformedMessage = Self(rawValue: "http3MalformedMessage")
    /// The compression of fields is broken (RFC 9204 §6).
    public static let http3Compression = Self(rawValue: "http3Compression")
    /// The frames without effect exceed the limit (RFC 9114 §10.5).
    public static let http3Flood = Self(rawValue: "http3Flood")
    /// No further stream can begin on this connection now (RFC 9114 §6.1).
    public static let http3NoStream = Self(rawValue: "http3NoStream")
}

#endif
