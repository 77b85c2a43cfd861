// SPDX-License-Identifier: Apache-2.0

// Classifies the system's error numbers, so that higher layers need no errno.

import URLLoadingCSystem

package enum SystemError {
    package enum Kind: Sendable {
        /// No process listens at the address.
        case refused
        /// There is no route to the host.
        case unreachable
        /// The peer ended the connection.
        case lost
        /// The kernel's own timeout for the peer expired.
        case timedOut
        case other
    }

    package static func kind(_ number: Int32) -> Kind {
        switch number {
        // A Unix socket whose file is missing counts as refused.
        case ECONNREFUSED, ENOENT: .refused
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL: .unreachable
        case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: .lost
        case ETIMEDOUT: .timedOut
        default: .other
        }
    }

    package enum FileKind: Sendable { case notFound, forbidden, other }

    /// Classifies the error number of a file operation.
    package static func fileKind(_ number: Int32) -> FileKind {
        switch number {
        case ENOENT, ENOTDIR: .notFound
        case EACCES, EPERM: .forbidden
        default: .other
        }
    }

    package static func words(_ number: Int32) -> String { String(cString: csys_error_words(number)) }

    /// Describes why no connection was made to a Unix socket.
    package static func words(_ number: Int32, ofSocket path: String) -> String {
        switch number {
        case ENOENT, ENOTDIR: "the socket file \(path) does not exist"
        case ECONNREFUSED: "no program listens on the Unix socket \(path)"
        default: "the Unix socket \(path): \(words(number))"
        }
    }
}
