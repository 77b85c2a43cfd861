// What the system's error numbers mean for a connection: the floors above know no errno.

import URLLoadingCSystem

package enum SystemError {
    package enum Kind: Sendable {
        /// Nobody listens there.
        case refused
        /// No way to the host.
        case unreachable
        /// The peer ended the connection.
        case lost
        /// The kernel gave up waiting for the peer.
        case timedOut
        case other
    }

    package static func kind(_ number: Int32) -> Kind {
        switch number {
        // A Unix socket without a file behind it is as good as one nobody listens on.
        case ECONNREFUSED, ENOENT: .refused
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL: .unreachable
        case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: .lost
        case ETIMEDOUT: .timedOut
        default: .other
        }
    }

    package enum FileKind: Sendable { case notFound, forbidden, other }

    /// The same for a file.
    package static func fileKind(_ number: Int32) -> FileKind {
        switch number {
        case ENOENT, ENOTDIR: .notFound
        case EACCES, EPERM: .forbidden
        default: .other
        }
    }

    package static func words(_ number: Int32) -> String { String(cString: csys_error_words(number)) }
}
