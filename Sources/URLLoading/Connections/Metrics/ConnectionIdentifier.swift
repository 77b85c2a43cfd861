// SPDX-License-Identifier: Apache-2.0

// The numbers of the connections of this process, of every kind, in the order in which they were made.

import Synchronization

enum ConnectionIdentifier {
    private static let following = Atomic<Int>(1)
    /// The lowest identifier of the connections made from now on.
    static var next: Int { following.load(ordering: .relaxed) }
    static func make() -> Int { following.add(1, ordering: .relaxed).oldValue }
}
