// SPDX-License-Identifier: Apache-2.0

// Storing responses: the delegate's `willCacheResponse`, and caches that subclass ``URLCache``.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension TaskBridge {
    /// The decision shared by all tasks.
    static let cacheDecision = Decision<CachedResponse, CacheDecision>.onLoop { entry in
        try await TaskBridge.current?.decide(entry) ?? .store
    }

    /// Whether the delegate may have to be asked. The body must be collected for that, so delegates known not to
    /// implement the method are not asked.
    var decidesStoring: Bool {
        let session = state.withLock { $0.session }
        return session?.ownCache != nil || asksBeforeStoring
    }

    private var asksBeforeStoring: Bool {
        guard !hasHandler else { return false }
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let delegate = session?.delegates.data, !DelegatesWithoutCaching.contain(delegate) { return true }
        guard let own = task?.ownDelegate as? any URLSessionDataDelegate else { return false }
        return !DelegatesWithoutCaching.contain(own)
    }

    private func decide(_ entry: CachedResponse) async throws -> CacheDecision {
        let proposed = CachedURLResponse(entry)
        guard let kept = try await kept(proposed), kept.policy != .notAllowed else { return .skip }
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let cache = session?.ownCache, let task = task as? URLSessionDataTask {
            _ = await BlockingThreads.programs.call(.never) { cache.storeCachedResponse(kept, for: task) }
            return .skip
        }
        return kept === proposed ? .store : .instead(kept.core(for: entry.response.url))
    }

    /// Asks the delegate how to store a response that a ``URLProtocol`` or a server has given.
    func kept(_ proposed: CachedURLResponse) async throws -> CachedURLResponse? {
        guard asksBeforeStoring else { return proposed }
        let outcome: Inquiry<CachedURLResponse?>.Outcome = await inquire("willCacheResponse", comesLast: true) {
            [self] session, task, answer in
            guard let delegate = dataDelegate, let task = task as? URLSessionDataTask else {
                return answer.give(proposed)
            }
            delegate.urlSession(session, dataTask: task, willCacheResponse: proposed) { answer.give($0) }
        }
        switch outcome {
        case .reply(let kept): return kept
        case .dropped: throw DroppedAnswer()
        case .withdrawn: return nil
        }
    }
}

/// Delegate types without a `willCacheResponse` of their own, recorded when the default implementation was called.
enum DelegatesWithoutCaching {
    private static let kinds = Lock(Set<ObjectIdentifier>())

    static func note(_ delegate: any URLSessionDataDelegate) {
        kinds.withLock { _ = $0.insert(ObjectIdentifier(type(of: delegate))) }
    }

    static func contain(_ delegate: any URLSessionDataDelegate) -> Bool {
        kinds.withLock { $0.contains(ObjectIdentifier(type(of: delegate))) }
    }
}

/// Presents a subclass of ``URLCache`` to the core. Its methods are code of the program and may block.
final class SubclassCache: ForeignCache {
    private let cache: URLCache
    /// Stores and removes in order, and begins each look-up after the changes before it.
    private let changes = BlockingThreads(limit: 1)

    init(_ cache: URLCache) { self.cache = cache }

    var largestEntry: Int { cache.largestEntry }

    func cachedResponse(for request: Request) async -> CachedResponse? {
        let (asked, task) = classic(request)
        let entry: CachedURLResponse? = await withUnsafeContinuation { continuation in
            let answer = Answer<CachedURLResponse?> { outcome in
                switch outcome {
                case .given(let entry): continuation.resume(returning: entry)
                case .dropped: continuation.resume(returning: nil)
                case .givenAgain: break
                }
            }
            let lookUp = { @Sendable [cache] in
                guard let task else { return answer.give(cache.cachedResponse(for: asked)) }
                cache.getCachedResponse(for: task) { answer.give($0) }
            }
            changes.run { BlockingThreads.programs.run(lookUp) }
        }
        return entry?.core(for: request.url)
    }

    func store(_ entry: CachedResponse, for request: Request) {
        let (asked, task) = classic(request)
        let entry = CachedURLResponse(entry)
        changes.run { [cache] in
            if let task {
                cache.storeCachedResponse(entry, for: task)
            } else {
                cache.storeCachedResponse(entry, for: asked)
            }
        }
    }

    func remove(for request: Request) {
        let asked = classic(request).0
        changes.run { [cache] in cache.removeCachedResponse(for: asked) }
    }

    /// Returns the program's request, and its task if that is a data task.
    private func classic(_ request: Request) -> (URLRequest, URLSessionDataTask?) {
        guard let bridge = request.properties[ClassicTask.self]?.bridge else {
            return (URLRequest(url: request.url), nil)
        }
        let (current, task) = bridge.state.withLock { ($0.current, $0.task) }
        return (URLRequest(request, like: current), task as? URLSessionDataTask)
    }
}

/// Attaches its task to a request of the core, for code that has to call the program about that request.
enum ClassicTask: PropertyKey {
    struct Value: Sendable {
        weak var bridge: TaskBridge?
    }
}
