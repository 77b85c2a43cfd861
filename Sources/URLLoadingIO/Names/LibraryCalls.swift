// SPDX-License-Identifier: Apache-2.0

// Calls of a library that was found at run time. When the process exits, such a library destroys its locks and tables,
// and a thread that is inside it then would end the process with a signal. So an exit lets the calls under way return,
// for a limited time, and no call begins after that.

import Synchronization
import URLLoadingCSystem

enum LibraryCalls {
    private struct State {
        var running = 0
        var isExiting = false
    }
    private static let state = Lock(State())
    /// Registers the exit handler, once, after the library was loaded: handlers run in reverse order of registration,
    /// before the libraries' own.
    private static let isRegistered: Void = csys_at_exit { LibraryCalls.end() }

    /// Nanoseconds that an exit waits for calls under way: a server of the library, such as a KDC, may never answer.
    private static let patience: Int64 = 1_000_000_000
    private static let interval: Int64 = 1_000_000

    /// Calls the library; returns nil if the process is exiting.
    @discardableResult
    static func perform<R>(_ call: () -> R) -> R? {
        _ = isRegistered
        let begins = state.withLock { state in
            if !state.isExiting { state.running += 1 }
            return !state.isExiting
        }
        guard begins else { return nil }
        defer { state.withLock { $0.running -= 1 } }
        return call()
    }

    private static func end() {
        state.withLock { $0.isExiting = true }
        let deadline = csys_now() + patience
        while state.withLock({ $0.running }) > 0, csys_now() < deadline { csys_nap(interval) }
    }
}
