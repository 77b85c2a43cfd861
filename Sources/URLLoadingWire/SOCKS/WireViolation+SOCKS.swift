// SPDX-License-Identifier: Apache-2.0

extension WireViolation.Code {
    /// The peer is not a SOCKS proxy of this version.
    public static let notSOCKS = Self(rawValue: "notSOCKS")
    /// A SOCKS reply violates the grammar (RFC 1928 §6).
    public static let malformedSOCKSReply = Self(rawValue: "malformedSOCKSReply")
    /// A user name or password that the protocol cannot carry.
    public static let invalidCredential = Self(rawValue: "invalidCredential")
}
