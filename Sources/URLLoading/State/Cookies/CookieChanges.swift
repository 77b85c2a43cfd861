// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// The changes of a ``CookieStore``: see ``CookieStore/changes``.
public struct CookieChanges: AsyncSequence, Sendable {
    public typealias Element = Change
    public typealias Failure = Never

    /// A change since the previous element; several changes of one kind are merged.
    public enum Change: Sendable, Hashable {
        /// Cookies were set, replaced, removed, or read from a file that another process had written.
        case cookies
        /// ``CookieStore/acceptPolicy`` was changed.
        case acceptPolicy
    }

    let listeners: ChangeListeners

    public func makeAsyncIterator() -> Iterator { Iterator(listening: Listening(listeners)) }

    /// Observes the store from its creation on.
    public struct Iterator: AsyncIteratorProtocol {
        let listening: Listening

        /// Returns the next change; `nil` when the calling task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Change? {
            await listening.listener.next()
        }
        /// Returns the next change; `nil` when the calling task is cancelled.
        public mutating func next() async -> Change? { await listening.listener.next() }
    }

    final class Listening: Sendable {
        let listener: ChangeListener
        private let listeners: ChangeListeners

        init(_ listeners: ChangeListeners, _ notify: (@Sendable (Change) -> Void)? = nil) {
            self.listeners = listeners
            listener = ChangeListener(notify)
            listeners.add(listener)
        }
        deinit { listeners.remove(listener) }
    }
}

/// The observers of a store.
final class ChangeListeners: Sendable {
    private let all = Lock<[ObjectIdentifier: ChangeListener]>([:])

    func add(_ listener: ChangeListener) { all.withLock { $0[ObjectIdentifier(listener)] = listener } }
    func remove(_ listener: ChangeListener) { all.withLock { $0[ObjectIdentifier(listener)] = nil } }

    func process(_ change: CookieChanges.Change) {
        for listener in all.withLock({ Array($0.values) }) { listener.process(change) }
    }
}

/// One observer, used by one task at a time. Its undelivered changes are two flags.
final class ChangeListener: Sendable {
    private let pending = Lock((cookies: false, policy: false))
    private let token = StopToken()
    /// Called instead of an iteration.
    private let notify: (@Sendable (CookieChanges.Change) -> Void)?

    init(_ notify: (@Sendable (CookieChanges.Change) -> Void)?) { self.notify = notify }

    func process(_ change: CookieChanges.Change) {
        if let notify { return notify(change) }
        pending.withLock { if change == .cookies { $0.cookies = true } else { $0.policy = true } }
        token.wake()
    }

    private func take() -> CookieChanges.Change? {
        pending.withLock { pending in
            if pending.cookies {
                pending.cookies = false
                return .cookies
            }
            defer { pending.policy = false }
            return pending.policy ? .acceptPolicy : nil
        }
    }

    func next() async -> CookieChanges.Change? {
        await withTaskCancellationHandler {
            await Poller.shared.wait(until: token) { _ in take() }
        } onCancel: {
            token.stop(.cancelled)
        }
    }
}
