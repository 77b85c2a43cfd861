// What can go wrong below the protocols. Translated once, above, into `LoadError`.

package struct IOFailure: Error, Sendable {
    /// What was being done.
    package enum Operation: String, Sendable {
        case open, resolve, connect, handshake, read, write, listen, accept, sleep
    }

    package enum Code: Sendable {
        /// Ended from outside, by the one whose work it was.
        case stopped(StopReason)
        /// The attempt under way took longer than its limit (`TimedAttempt`).
        case attemptTimedOut
        /// The system said no: an errno.
        case system(Int32)
        /// No such host, by an authoritative answer.
        case hostNotFound(String)
        /// The look-up itself failed; it may succeed later.
        case lookupFailed(String)
        case tls(TLSFailure)
        /// The peer closed while more was due.
        case closedByPeer
        case invalidAddress(String)
        /// The interface or address that connections are to come from cannot be had.
        case cannotBind(String)
    }

    package let code: Code
    package let operation: Operation

    package init(_ code: Code, _ operation: Operation) {
        self.code = code
        self.operation = operation
    }
}
