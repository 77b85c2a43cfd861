// SPDX-License-Identifier: Apache-2.0

// The events that the steps of a load report. The sink turns them into public events.

protocol EventSink: AnyObject, Sendable {
    /// Lets the observers add fields to a request that is about to begin: the first, and one for each redirect.
    func prepare(_ request: inout Request)
    func canonicalized(_ request: Request)
    func challenged(_ challenge: Challenge)
    func sent(_ bytes: TransferProgress)
    func receivedInterim(_ head: HTTPHead)
    /// Notes a response in its record; one to a challenge, from the cache or before a retry as well. The record is nil
    /// while a connection is authenticated.
    func responded(_ response: Response, _ record: TransactionRecord?)
    func retrying(_ retry: Retry)
    func refused(_ retry: Retry)
    func waitingForConnectivity()
    /// Reports that `count` bytes of the body have reached their reader.
    func received(_ count: Int)
    /// Notes that two requests of the load run at once from now on, each with an event order of its own.
    func allowOverlap()

    /// Notes the cache's treatment of a response. The greatest outcome is reported at the end of the load.
    func note(_ outcome: CacheOutcome)
    /// Sets the load's stream on a shared connection; nil when it has none any more.
    func hasStream(_ stream: PrioritizedStream?)
    /// Notes that other loads wait for this load's fetch.
    func leads(_ fetch: SharedFetch)

    /// Begins the record of a transaction with a server.
    func begin(_ request: PreparedRequest) -> TransactionRecord
    /// Begins the record of a response from the cache.
    func beginCached(_ request: Request) -> TransactionRecord
    /// Records a transaction that has ended.
    func add(_ record: TransactionRecord, _ error: LoadError?)
    /// Begins the record of a request that a file or a handler may answer.
    func beginLocal(_ request: Request)
    func answeredLocally(_ exchange: any Exchange)
    func failedLocally(_ error: LoadError)
    /// Emits the last events of the load.
    func complete(_ error: LoadError?)
}

extension EventSink {
    func add(_ record: TransactionRecord) { add(record, nil) }
}

/// The cache's treatment of the responses of a load, in ascending order.
enum CacheOutcome: UInt8 { case nothing, refused, stored }
