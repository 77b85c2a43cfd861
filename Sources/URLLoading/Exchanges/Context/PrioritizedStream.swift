// SPDX-License-Identifier: Apache-2.0

/// The stream of a load on a shared connection, whose priority can change.
enum PrioritizedStream: Sendable {
    case http2(HTTP2Stream, HTTP2Connection)
    #if HTTP3
    case http3(HTTP3Stream, HTTP3Connection)
    #endif

    /// Tells the server of a priority (RFC 9218).
    func prioritize(urgency: Int) {
        switch self {
        case .http2(let stream, let connection): connection.prioritize(stream, urgency: urgency)
        #if HTTP3
        case .http3(let stream, let connection): connection.prioritize(stream, urgency: urgency)
        #endif
        }
    }
}
