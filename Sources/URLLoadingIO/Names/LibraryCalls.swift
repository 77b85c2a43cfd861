// SPDX-License-Identifier: Apache-2.0

// Calls of a library that was found at run time. When the process exits, such a library destroys its locks and tables,
// and a thread that is inside it then would end the process with a signal. So an exit lets the calls under way return,
// for a limited time, and no call begins after that.
//
// Exit handlers run in reverse order of registration. A library registers its own when it is loaded, so each one is
// followed by a handler of this type, which runs before them.

import Synchronization
import URLLoadingCSystem

enum LibraryCalls {
    private struct State {
        var running = 0
        /// When the process exits: the moment until which calls under way are waited for.
        var deadline: Int64?
    }
    private static let state = Lock(State())

    /// Nanoseconds that an exit waits for calls under way: a server of the library, such as a KDC, may never answer.
    private static let patience: Int64 = 1_000_000_000
    private static let interval: Int64 = 1_000_000

    /// Must be called when a library has been loaded, before it is called.
    static func loaded() { csys_at_exit { LibraryCalls.end() } }

    /// Calls a library; returns nil if the process is exiting.
    @discardableResult
    static func perform<R>(_ call: () -> R) -> R? {
        let begins = state.withLock { state in
            guard state.deadline == nil else { return false }
            state.running += 1
            return true
        }
        guard begins else { return nil }
        defer { state.withLock { $0.running -= 1 } }
        return call()
    }

    private static func end() {
        // The same for all libraries, or an exit would wait once for each.
        let deadline = state.withLock { state in
            let deadline = state.deadline ?? csys_now() + patience
            state.deadline = deadline
            return deadline
        }
        while state.withLock({ $0.running }) > 0, csys_now() < deadline { csys_nap(interval) }
    }
}
