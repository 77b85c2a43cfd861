// SPDX-License-Identifier: Apache-2.0

/// The result of a lease: an exclusive connection, or a stream slot on a shared one.
enum LeasedConnection: Sendable {
    case own(HTTP1Connection)
    case shared(HTTP2Connection)
    #if HTTP3
    case http3(HTTP3Connection)
    #endif

    func close() {
        switch self {
        case .own(let connection): connection.close()
        case .shared(let connection): connection.close()
        #if HTTP3
        case .http3(let connection): connection.close()
        #endif
        }
    }
}
