// The one point that every event of a load passes: from here the session's observers, the sequences of
// a handle, and the classic delegates hear of it, in the same order. A load that nobody listens to has
// none, and its events are never made. Used by the load's owner alone.

import URLLoadingWire

final class Emission: @unchecked Sendable {
    let identity: LoadIdentity
    private let observers: [any LoadObserver]
    private var sent: (total: Int64, expected: Int64?) = (0, nil)
    private var received: (total: Int64, expected: Int64?) = (0, nil)
    #if DEBUG
    private var order = LoadEventOrder()
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

    /// A request is sent, perhaps again: its body counts from zero.
    func begin(bodyLength: Int64?) { sent = (0, bodyLength) }

    func sent(_ count: Int, _ load: Load) {
        guard count > 0 else { return }
        sent.total += Int64(count)
        emit(.bodySent(ByteCount(count: count, total: sent.total, expected: sent.expected)), load)
    }

    func received(_ count: Int, _ load: Load) {
        received.total += Int64(count)
        emit(.received(ByteCount(count: count, total: received.total, expected: received.expected)), load)
    }

    func emit(_ event: LoadEvent, _ load: Load) {
        switch event {
        case .responded(let response): received = (0, response.expectedLength)
        case .resumed(let offset, let expected): received = (offset, expected)
        default: break
        }
        #if DEBUG
        let isLegal = order.accept(event)
        assert(isLegal, "events out of order: \(order)")
        #endif
        for observer in observers { observer.observe(event, of: identity) }
        load.hear(event)
    }
}
