// Failures that only streams know.

extension LoadError.Reason {
    /// Somebody reads already, or writes already: a stream has one reader and one writer at a time.
    public static let streamBusy = Self("streamBusy", -1)
    /// This side of the stream was closed by this program.
    public static let streamClosed = Self("streamClosed", -1005)
    /// A read or write took longer than its caller gave it. The stream goes on.
    public static let streamCallTimeout = Self("streamCallTimeout", -1001)
    /// An earlier write was given up on its way, so nobody can say how much of it the peer has got:
    /// nothing may follow it.
    public static let writeIncomplete = Self("writeIncomplete", -1005)
    /// Bytes in the clear were there when TLS was to begin. Whoever sits between may have put them there,
    /// to be taken for words of the peer that TLS protects (CVE-2011-0411).
    public static let unexpectedPlaintext = Self("unexpectedPlaintext", -1200)
}
