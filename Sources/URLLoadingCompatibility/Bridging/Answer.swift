// The completion handlers that delegates get. Each is to be called once; one that is dropped without a
// call, or called again, is reported (checklist 55), and a load that waits for it never hangs.

import Synchronization
import URLLoading

/// What a completion handler given to a delegate holds on to: when the last copy of the handler goes, so
/// does this.
final class Answer<Value: Sendable>: Sendable {
    enum Fate: Sendable {
        case given(Value)
        case givenAgain
        case dropped
    }
    private let isGiven = Atomic<Bool>(false)
    private let deliver: @Sendable (Fate) -> Void

    init(_ deliver: @escaping @Sendable (Fate) -> Void) { self.deliver = deliver }

    deinit {
        if !isGiven.load(ordering: .acquiring) { deliver(.dropped) }
    }

    func give(_ value: Value) {
        deliver(isGiven.exchange(true, ordering: .acquiringAndReleasing) ? .givenAgain : .given(value))
    }
}
