// SPDX-License-Identifier: Apache-2.0

// In this folder: the errors of this layer

// Failures below the protocols. URLLoading translates them into `LoadError` in one place.

package struct IOFailure: Error, Sendable {
    /// The operation that failed.
    package enum Operation: String, Sendable {
        case open, resolve, connect, handshake, read, write, listen, accept, sleep
    }

    package enum Code: Sendable {
        /// Stopped from outside, by the owner of the work.
        case stopped(StopReason)
        /// The attempt under way exceeded its time limit (`TimedAttempt`).
        case attemptTimedOut
        /// The system refused, with this errno.
        case system(Int32)
        /// An authoritative answer said that the host does not exist.
        case hostNotFound(String)
        /// The lookup itself failed; a retry may succeed.
        case lookupFailed(String)
        /// Indirect, because each function that throws has room for the largest case.
        indirect case tls(TLSFailure)
        /// The peer closed the connection while more data was due.
        case closedByPeer
        case invalidAddress(String)
        /// The local interface or address for connections is not available.
        case cannotBind(String)
        /// No connection to a Unix socket, with its path (`@` and the name of an abstract one) and the errno. Indirect
        /// for the same reason.
        indirect case unixSocket(String, Int32)
    }

    package let code: Code
    package let operation: Operation

    package init(_ code: Code, _ operation: Operation) {
        self.code = code
        self.operation = operation
    }

    /// The failure in words, for the detail of an error.
    package var words: String {
        if case .system(let number) = code { SystemError.words(number) } else { "\(code)" }
    }
}
