// SPDX-License-Identifier: Apache-2.0

// In this folder: the events of a load, their order, and who is told

// The single point that every event of a load passes: from here the session's observers, the sequences of a handle, and
// the classic delegates are notified, in the same order. A load without observers and without a handle has no emitter,
// and its events are never created. If a handler runs two requests at once, or a download loads several parts, their
// events about interim responses, challenges and retries may be emitted concurrently; those about sent bodies only with
// a handler, and those about received ones never.

import FoundationEssentials
import Synchronization
import URLLoadingIO

/// The driver of a task, which is notified of each event after the observers.
protocol LoadListener: AnyObject, Sendable {
    func process(_ event: LoadEvent)
    /// Sets the load's stream on a shared connection; nil when it has none any more.
    func hasStream(_ stream: PrioritizedStream?)
    /// Notes that other loads wait for this load's fetch.
    func leads(_ fetch: SharedFetch)
}

extension LoadListener {
    func hasStream(_ stream: PrioritizedStream?) {}
    func leads(_ fetch: SharedFetch) {}
}

final class EventEmitter: EventSink, @unchecked Sendable {
    // Unchecked: the variables belong to the owner of the load's exchange, which alone emits events.
    let identity: LoadIdentity
    private let observers: [any LoadObserver]
    /// The driver, kept alive until the load has ended.
    private let listener = Lock<(any LoadListener)?>(nil)
    private var received: (total: Int64, expected: Int64?) = (0, nil)
    private let origin = LoadMetrics.Moment.Origin(nanoseconds: Poller.now(), date: Date())
    private var redirectCount = 0
    /// The transactions that have ended. A handler may run several at once.
    private let transactions = Lock<[LoadMetrics.Transaction]>([])
    private let outcome = Atomic(CacheOutcome.nothing.rawValue)
    /// The transaction answered locally, by a file or a handler; see `EventEmitter+Metrics`.
    var local: TransactionRecord?
    var countBefore = 0
    #if DEBUG
    private let order = Lock(LoadEventOrder())
    private let mayOverlap = Atomic<Bool>(false)
    #endif

    private init(_ identity: LoadIdentity, _ observers: [any LoadObserver]) {
        self.identity = identity
        self.observers = observers
    }

    /// - Parameter isObserved: true if a driver will be notified of the events, in addition to the observers.
    static func make(_ request: Request, _ observers: [any LoadObserver], isObserved: Bool) -> EventEmitter? {
        #if DEBUG
        let isObserved = true  // Debug builds check the order of events for every load.
        #endif
        guard isObserved || !observers.isEmpty else { return nil }
        return EventEmitter(LoadIdentity(request), observers)
    }

    /// Sets the driver that is notified of each event after the observers.
    func setListener(_ listener: any LoadListener) { self.listener.withLock { $0 = listener } }

    /// Lets the observers add fields to a request that is about to begin: the first, and one for each redirect.
    func prepare(_ request: inout Request) {
        for observer in observers { observer.willSend(&request, of: identity) }
    }

    func received(_ count: Int) {
        received.total += Int64(count)
        local?.decoded += Int64(count)
        emit(.received(TransferProgress(count: count, total: received.total, expected: received.expected)))
    }

    // A `LoadEvent` is large: the functions that make one are not inlined into the frames of async functions.

    @inline(never)
    func canonicalized(_ request: Request) { emit(.canonicalized(request)) }
    @inline(never)
    func challenged(_ challenge: Challenge) { emit(.challenged(challenge)) }
    @inline(never)
    func sent(_ bytes: TransferProgress) { emit(.bodySent(bytes)) }
    @inline(never)
    func receivedInterim(_ head: HTTPHead) {
        showHead(head)
        emit(.informational(head))
    }
    func responded(_ response: Response, _ record: TransactionRecord?) {
        record?.response = response
        if let head = response.http { showHead(head) }
    }
    private func showHead(_ head: HTTPHead) {
        for case let observer as any HeadObserver in observers { observer.received(head) }
    }
    @inline(never)
    func retrying(_ retry: Retry) { emit(.retrying(retry)) }
    @inline(never)
    func refused(_ retry: Retry) { emit(.retryRefused(retry)) }
    @inline(never)
    func waitingForConnectivity() { emit(.waitingForConnectivity) }

    func allowOverlap() {
        #if DEBUG
        mayOverlap.store(true, ordering: .relaxed)
        #endif
    }

    func emit(_ event: LoadEvent) {
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
        assert(isLegal || mayOverlap.load(ordering: .relaxed), "events out of order: \(words ?? "")")
        #endif
        for observer in observers { observer.observe(event, of: identity) }
        listener.withLock { $0 }?.process(event)
    }

    func hasStream(_ stream: PrioritizedStream?) { listener.withLock { $0 }?.hasStream(stream) }

    func leads(_ fetch: SharedFetch) { listener.withLock { $0 }?.leads(fetch) }

    // MARK: The cache

    func note(_ outcome: CacheOutcome) { _ = self.outcome.max(outcome.rawValue, ordering: .relaxed) }

    private var storingEvent: LoadEvent? {
        switch CacheOutcome(rawValue: outcome.load(ordering: .relaxed)) {
        case .stored?: .stored
        case .refused?: .notStored(.memoryOnly)
        case .nothing?, nil: nil
        }
    }

    // MARK: Metrics

    @inline(never)  // Small frames; see `TaskDriver`.
    func begin(_ request: PreparedRequest) -> TransactionRecord {
        let record = TransactionRecord(request)
        for case let observer as any HeadObserver in observers { observer.sends(record.request, record.sentHeaders) }
        return record
    }

    /// Records a transaction that has ended.
    @inline(never)
    func add(_ record: TransactionRecord, _ error: LoadError?) {
        if let error { record.error = error }
        record.mark(.end)
        transactions.withLock { $0.append(LoadMetrics.Transaction(record: record, origin: origin)) }
    }

    var transactionCount: Int { transactions.withLock { $0.count } }

    /// Emits the last events of the load.
    @inline(never)
    func complete(_ error: LoadError?) {
        if error == nil, let event = storingEvent { emit(event) }
        endLocal(error)
        let end = Poller.now()
        var transactions = transactions.withLock { $0 }
        if transactions.count > 1 { transactions.sort { $0.fetchStart < $1.fetchStart } }
        if let last = transactions.last?.record, last.error == nil { last.error = error }
        emit(.metrics(LoadMetrics(origin, end: end, redirectCount: redirectCount, transactions)))
        emit(.completed(error))
        let last = listener.withLock { $0.take() }
        withExtendedLifetime(last) {}
    }
}
