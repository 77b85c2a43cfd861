// SPDX-License-Identifier: Apache-2.0

// The completion handlers that delegates receive. Each must be called exactly once. A handler that is dropped without a
// call, or called twice, is reported, and the load that waits for it is never left hanging.

import Synchronization

/// Captured by the completion handler given to a delegate: it is deinitialized with the last copy of the handler, which
/// reveals that the handler was dropped.
final class Answer<Value: Sendable>: Sendable {
    enum Outcome: Sendable {
        case given(Value)
        case givenAgain
        case dropped
    }
    private let isGiven = Atomic<Bool>(false)
    private let deliver: @Sendable (Outcome) -> Void

    init(_ deliver: @escaping @Sendable (Outcome) -> Void) { self.deliver = deliver }

    deinit {
        if !isGiven.load(ordering: .acquiring) { deliver(.dropped) }
    }

    func give(_ value: Value) {
        deliver(isGiven.exchange(true, ordering: .acquiringAndReleasing) ? .givenAgain : .given(value))
    }
}
