// What the steps of a load tell its observers. The sink makes the public events of it.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

protocol EventSink: AnyObject, Sendable {
    /// Lets the observers add to a request that is about to begin: one per redirect.
    func prepare(_ request: inout Request)
    func canonicalized(_ request: Request)
    func challenged(_ challenge: Challenge)
    func sent(_ bytes: TransferProgress)
    func informed(_ head: HTTPHead)
    func retrying(_ retry: Retry)
    func waitingForConnectivity()
    /// So many bytes of the body have reached their reader.
    func received(_ count: Int)
    /// Two requests of the load run at once from now on: each has an order of events of its own.
    func allowOverlap()

    /// What the cache did with a response. The greatest outcome is told at the end of the load.
    func note(_ outcome: CacheOutcome)
    /// The load has a stream of a shared connection, or has none any more.
    func hasStream(_ stream: HTTP2Stream?, on connection: HTTP2Connection)
    /// Other loads wait for what this one fetches.
    func leads(_ fetch: SharedFetch)

    /// Begins the record of a transaction with a server.
    func begin(_ request: PreparedRequest) -> TransactionRecord
    /// Begins the record of a response from the cache.
    func beginCached(_ request: Request) -> TransactionRecord
    /// A transaction is over.
    func add(_ record: TransactionRecord, _ error: LoadError?)
    /// A request that a file or a handler may answer begins.
    func beginLocal(_ request: Request)
    func answeredLocally(_ exchange: any Exchange)
    func failedLocally(_ error: LoadError)
    /// The last events of a load.
    func complete(_ error: LoadError?)
}

extension EventSink {
    func add(_ record: TransactionRecord) { add(record, nil) }
}

/// What the cache did with the responses of a load, in ascending order.
enum CacheOutcome: UInt8 { case nothing, refused, stored }
