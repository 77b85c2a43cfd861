// SPDX-License-Identifier: Apache-2.0

/// The result of a lease: an exclusive connection, or a stream slot on a shared one.
enum LeasedConnection: Sendable {
    /// `isNew` if the connection was made for this load; otherwise its peer may be about to close it.
    case own(HTTP1Connection, isNew: Bool)
    /// A place on a connection.
    case shared(HTTP2Connection, isNew: Bool)
    #if HTTP3
    case http3(HTTP3Connection, isNew: Bool)
    #endif

    func close() {
        switch self {
        case .own(let connection, _): connection.close()
        case .shared(let connection, _): connection.close()
        #if HTTP3
        case .http3(let connection, _): connection.close()
        #endif
        }
    }
}
