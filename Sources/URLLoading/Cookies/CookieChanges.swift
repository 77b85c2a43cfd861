import Synchronization
import URLLoadingIO

/// What changes in a ``CookieStore``: see ``CookieStore/changes``.
public struct CookieChanges: AsyncSequence, Sendable {
    public typealias Element = Change
    public typealias Failure = Never

    /// What has changed since the last one was taken; many changes are one.
    public enum Change: Sendable, Hashable {
        /// Cookies were set, replaced, removed, or read anew from a file that others had written.
        case cookies
        /// ``CookieStore/acceptPolicy``.
        case acceptPolicy
    }

    let memory: CookieMemory

    public func makeAsyncIterator() -> Iterator { Iterator(listening: Listening(memory)) }

    /// Listens from when it is made.
    public struct Iterator: AsyncIteratorProtocol {
        let listening: Listening

        /// The next change; `nil` when the calling task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Change? {
            await listening.listener.next()
        }
        /// The next change; `nil` when the calling task is cancelled.
        public mutating func next() async -> Change? { await listening.listener.next() }
    }

    final class Listening: Sendable {
        let listener: ChangeListener
        private let memory: CookieMemory

        init(_ memory: CookieMemory, _ tell: (@Sendable (Change) -> Void)? = nil) {
            self.memory = memory
            listener = ChangeListener(tell)
            memory.add(listener)
        }
        deinit { memory.remove(listener) }
    }
}

/// One who listens; one task at a time. What it has not heard yet is no more than two words.
final class ChangeListener: Sendable {
    private let news = Lock((cookies: false, policy: false))
    private let token = StopToken()
    /// Is told in the place of whoever would iterate.
    private let tell: (@Sendable (CookieChanges.Change) -> Void)?

    init(_ tell: (@Sendable (CookieChanges.Change) -> Void)?) { self.tell = tell }

    func hear(_ change: CookieChanges.Change) {
        if let tell { return tell(change) }
        news.withLock { if change == .cookies { $0.cookies = true } else { $0.policy = true } }
        token.wake()
    }

    private func take() -> CookieChanges.Change? {
        news.withLock { news in
            if news.cookies {
                news.cookies = false
                return .cookies
            }
            defer { news.policy = false }
            return news.policy ? .acceptPolicy : nil
        }
    }

    func next() async -> CookieChanges.Change? {
        let slot = Poller.shared.borrowSlot()
        token.attach(slot)
        defer {
            token.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        return await withTaskCancellationHandler {
            while token.stopReason == nil {
                if let change = take() { return change }
                await Poller.shared.park(slot, until: token)
            }
            return nil
        } onCancel: {
            token.stop(.cancelled)
        }
    }
}
