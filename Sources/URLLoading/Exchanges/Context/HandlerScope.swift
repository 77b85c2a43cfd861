// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// Tracks library code that runs inside the tasks of custom handlers, and the exchanges it has opened there. A load
/// that ends waits for that code, though not for the handlers, which are cancelled; then the exchanges are released,
/// even if a handler still refers to them.
final class HandlerScope: Sendable {
    fileprivate struct Opened: Sendable { weak var exchange: (any Exchange)? }
    fileprivate struct State: Sendable {
        var count = 0
        /// True if two calls were inside at the same time.
        var haveOverlapped = false
        var isClosed = false
        var opened: [Opened] = []
        var waiting: PollSlot?
    }
    private let state = Lock(State())

    /// Registers a call inside. Returns false if the load has ended.
    func enter() -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.count += 1
            if state.count > 1 { state.haveOverlapped = true }
            return true
        }
    }

    var haveOverlapped: Bool { state.withLock { $0.haveOverlapped } }

    func leave(with exchange: (any Exchange)? = nil) {
        let (left, waiting) = state.withLock { state in
            state.count -= 1
            if let exchange {
                state.opened.removeAll { $0.exchange == nil }
                state.opened.append(Opened(exchange: exchange))
            }
            return (state.takeIfOver(), state.count == 0 ? state.waiting : nil)
        }
        for opened in left { opened.exchange?.release() }
        waiting?.wake()
    }

    /// Closes the scope: no call may enter any more, and the last one to leave releases the exchanges.
    func end() {
        let left = state.withLock { state in
            state.isClosed = true
            return state.takeIfOver()
        }
        for opened in left { opened.exchange?.release() }
    }

    /// Closes the scope, and waits until the calls inside have left.
    func close() async {
        end()
        await Poller.shared.wait { slot in
            state.withLock { state in
                state.waiting = state.count == 0 ? nil : slot
                return state.count == 0
            }
        }
    }
}

extension HandlerScope.State {
    fileprivate mutating func takeIfOver() -> [HandlerScope.Opened] {
        guard isClosed, count == 0 else { return [] }
        defer { opened = [] }
        return opened
    }
}
