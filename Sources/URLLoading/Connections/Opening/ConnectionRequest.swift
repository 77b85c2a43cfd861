// SPDX-License-Identifier: Apache-2.0

/// A request to the pool or the connector: the load, and the networks that may be used.
struct ConnectionRequest: Sendable {
    let client: any ConnectionClient
    /// The networks that a new connection may use.
    var access = NetworkAccess.open
    /// Receives the times of the connection's stages.
    var record: TransactionRecord?
    /// Keeps a connection on which a proxy asked for credentials, for the next attempt; nil closes such connections.
    var refused: RefusedTunnels?
    /// The lowest identifier that the connection may have, after an idle one was stale: connections that were idle at
    /// the same time may be as stale; `nil` for any.
    var since: Int?
    #if HTTP3
    /// What a new HTTP/3 connection may send as early data.
    var early: EarlyRequest?
    #endif

    var handle: LoadHandle { client.handle }
}
