// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// The answer to a client's wish to move to another path (RFC 9000 §9).
package enum QUICMigration: Sendable, Equatable {
    /// The event `moved` or `pathFailed` follows, unless the connection ends before.
    case begun
    /// The handshake is not confirmed yet.
    case tooEarly
    /// The peer does not permit it (`disable_active_migration`), or this side is the server.
    case forbidden
    /// The peer has given no connection id that is unused.
    case noConnectionID
}

#endif
