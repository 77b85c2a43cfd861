// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// An object that few owners ever get: set at most once, and cheap to find missing. `AtomicLazyReference.load` looks up
/// its generic metadata at each call, so it is called only when there is an object.
struct LateReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
    private let isSet = Atomic(false)
    private let reference = AtomicLazyReference<Object>()

    /// The object; `nil` before the first `storeIfNil`.
    var value: Object? { isSet.load(ordering: .acquiring) ? reference.load() : nil }

    /// Sets the object unless there is one; returns the one that is set.
    func storeIfNil(_ object: Object) -> Object {
        defer { isSet.store(true, ordering: .releasing) }
        return reference.storeIfNil(object)
    }
}
