// The one point that every event of a load passes: from here the session's observers, the sequences of
// a handle, and the classic delegates hear of it, in the same order. A load that nobody listens to has
// none, and its events are never made. Used by the load's owner; two requests that a handler has under way at once may
// tell of their bodies, interim responses, challenges and retries at once.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class Emission: @unchecked Sendable {
    let identity: LoadIdentity
    private let observers: [any LoadObserver]
    private var received: (total: Int64, expected: Int64?) = (0, nil)
    private let origin = LoadMetrics.Moment.Origin(nanoseconds: Poller.now(), date: Date())
    private var redirectCount = 0
    /// Of the transactions that are over. A handler may have several going on at once.
    private let transactions = Lock<[LoadMetrics.Transaction]>([])
    /// Of the one that is answered here, by a file or a handler; see `Emission+Metrics`.
    var local: TransactionRecord?
    var countBefore = 0
    #if DEBUG
    private let order = Lock(LoadEventOrder())
    #endif

    private init(_ identity: LoadIdentity, _ observers: [any LoadObserver]) {
        self.identity = identity
        self.observers = observers
    }

    /// - Parameter isNeeded: there may be listeners besides the observers.
    static func make(_ request: Request, _ observers: [any LoadObserver], isNeeded: Bool) -> Emission? {
        #if DEBUG
        let isNeeded = true  // The order of events is checked even if nobody listens.
        #endif
        guard isNeeded || !observers.isEmpty else { return nil }
        return Emission(LoadIdentity(request), observers)
    }

    /// Lets the observers add to a request that is about to begin: one per redirect.
    func prepare(_ request: inout Request) {
        for observer in observers { observer.willSend(&request, of: identity) }
    }

    func received(_ count: Int, _ load: Load) {
        received.total += Int64(count)
        local?.decoded += Int64(count)
        emit(.received(ByteCount(count: count, total: received.total, expected: received.expected)), load)
    }

    func emit(_ event: LoadEvent, _ load: Load) {
        switch event {
        case .responded(let response): received = (0, response.expectedLength)
        case .resumed(let offset, let expected): received = (offset, expected)
        case .redirected:
            redirectCount += 1
            endLocal(nil)
        default: break
        }
        #if DEBUG
        let (isLegal, words) = order.withLock { (order) -> (Bool, String?) in
            let isLegal = order.accept(event)
            return (isLegal, isLegal ? nil : order.description)
        }
        // Of requests at once each has its own order.
        assert(isLegal || load.insiders?.haveOverlapped == true, "events out of order: \(words ?? "")")
        #endif
        for observer in observers { observer.observe(event, of: identity) }
        load.hear(event)
    }

    // MARK: Metrics

    @inline(never)  // Small frames; see `TaskLoad`.
    func begin(_ request: PreparedRequest) -> TransactionRecord { TransactionRecord(request) }

    /// A transaction is over.
    @inline(never)
    func add(_ record: TransactionRecord, _ error: LoadError? = nil) {
        if let error { record.error = error }
        record.mark(.end)
        transactions.withLock { $0.append(LoadMetrics.Transaction(record: record, origin: origin)) }
    }

    var transactionCount: Int { transactions.withLock { $0.count } }

    /// The last two events of a load.
    @inline(never)
    func complete(_ error: LoadError?, _ load: Load) {
        endLocal(error)
        let end = Poller.now()
        var transactions = transactions.withLock { $0 }
        if transactions.count > 1 { transactions.sort { $0.fetchStart < $1.fetchStart } }
        if let last = transactions.last?.record, last.error == nil { last.error = error }
        emit(.metrics(LoadMetrics(origin, end: end, redirectCount: redirectCount, transactions)), load)
        emit(.completed(error), load)
    }
}
