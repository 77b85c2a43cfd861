// SPDX-License-Identifier: Apache-2.0

/// A large value behind one reference: passing it on counts that reference, instead of one for each member. It is copied
/// when it is changed while it is shared.
struct CopyOnWrite<Value: Sendable>: Sendable {
    private final class Box: @unchecked Sendable {
        // Unchecked: changed only while uniquely referenced.
        var value: Value
        init(_ value: Value) { self.value = value }
    }
    private var box: Box

    init(_ value: Value) { box = Box(value) }

    var value: Value {
        _read { yield box.value }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }
}
