extension WireViolation.Code {
    /// What answered is no SOCKS proxy of this version.
    public static let notSOCKS = Self(rawValue: "notSOCKS")
    /// A SOCKS reply out of grammar (RFC 1928 6).
    public static let malformedSOCKSReply = Self(rawValue: "malformedSOCKSReply")
    /// A user name or password that the protocol cannot carry.
    public static let invalidCredential = Self(rawValue: "invalidCredential")
}
