// SPDX-License-Identifier: Apache-2.0

// A foreign cache as the storage of one load.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Bodies are not streamed into a foreign cache: the cache decision stores them.
final class ForeignStorage: AskedStorage {
    private let foreign: any ForeignCache
    private let request: Request
    private let policy: Request.CachePolicy
    private let handle: LoadHandle
    /// The removals of all loads of the session.
    let removals: CacheRemovals

    private struct Answer: Sendable {
        var entry: CachedResponse?
        var stored: StoredResponse?
    }
    /// The answer of the foreign cache; `nil` before it was asked.
    private let answer = Lock<Answer?>(nil)

    init(_ foreign: any ForeignCache, _ query: CacheQuery, _ handle: LoadHandle, _ removals: CacheRemovals) {
        (self.foreign, self.handle, self.removals, policy) = (foreign, handle, removals, query.policy)
        var request = query.request
        request.body = nil
        self.request = request
    }

    // MARK: Looking up

    func find(_ key: CacheKey, again: Bool) async throws(LoadError) -> [StoredResponse] {
        if answer.withLock({ $0 == nil }) {
            let answer = try await ask()
            self.answer.withLock { $0 = answer }
        }
        return variants(key)
    }

    private func ask() async throws(LoadError) -> Answer {
        guard [.get, .head].contains(request.method), ![.reload, .reloadIgnoringCaches].contains(policy) else {
            return Answer()
        }
        var asked = request
        asked.method = .get
        let limit = handle.idleLimit == .max ? nil : Duration.nanoseconds(handle.idleLimit)
        let ending = await CallbackOutcome.run(handle, timeout: limit, onLoop: true) { [foreign, asked] in
            await foreign.cachedResponse(for: asked)
        }
        switch ending {
        case .answered(let entry): return Answer(entry: entry, stored: entry.flatMap { Self.stored($0, asked) })
        case .late: return Answer()
        case .stopped: throw LoadError(handle.stopReason ?? .cancelled, phase: .preparing).at(request.url)
        }
    }

    private static func stored(_ entry: CachedResponse, _ request: Request) -> StoredResponse? {
        var entry = entry
        entry.storagePolicy = .allowed
        let date = entry.response.http?.headers.date(.date)
        let times = entry.response.properties[StoredTimes.self]
        // Without known times, the Date of the response counts as its arrival; without a Date, the response counts as
        // old.
        let moment = times?.response ?? date.map { Double($0) } ?? 0
        guard var stored = entry.stored(for: request, now: moment) else { return nil }
        stored.requestTime = times?.request ?? moment
        return stored
    }

    private var entry: CachedResponse? { answer.withLock { $0?.entry } }

    func variantsNow(_ key: CacheKey) -> [StoredResponse]? {
        answer.withLock { answer in
            answer.map { answer in answer.stored.map { $0.key == key ? [$0] : [] } ?? [] }
        }
    }
    func variants(_ key: CacheKey) -> [StoredResponse] { variantsNow(key) ?? [] }
    func body(_ response: StoredResponse) -> (any StoredBody)? { entry.map { MemoryBody(Array($0.data)) } }
    func bodyNow(_ response: StoredResponse) -> (any StoredBody)? { body(response) }

    // MARK: Storing

    func admitted(_ response: StoredResponse, _ head: HTTPHead, since removals: Int) -> StoredResponse? { response }
    func write(_ response: StoredResponse, length: Int64?) -> (any CacheWriting)? { nil }
    func append(to response: StoredResponse) -> (any CacheWriting)? { nil }

    func store(_ response: StoredResponse, body: [UInt8]) -> Bool {
        guard let entry = CachedResponse(response, data: Data(body)) else { return false }
        foreign.store(entry, for: request)
        return true
    }

    func update(_ response: StoredResponse) {
        guard let entry, var updated = CachedResponse(response, data: entry.data) else { return }
        updated.storagePolicy = entry.storagePolicy
        foreign.store(updated, for: request)
    }

    // MARK: Removing

    func remove(_ response: StoredResponse) { remove(response.key) }

    func remove(_ key: CacheKey) {
        removals.note(key)
        if let url = URL(string: key.text) { foreign.remove(for: Request(url: url)) }
    }

    func removeAll(since moment: Double?) {}
    func flush() {}
}
