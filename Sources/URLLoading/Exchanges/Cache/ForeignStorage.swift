// SPDX-License-Identifier: Apache-2.0

// A foreign cache as the storage of one load.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

extension SessionCache {
    /// Returns a session cache that contains the foreign cache's answer to this request.
    @inline(never)
    func asked(for hop: Hop, _ load: LoadContext, _ foreign: any ForeignCache) async throws(LoadError) -> SessionCache {
        var request = hop.request
        request.body = nil
        let policy = request.cachePolicy ?? load.core.requestDefaults.cachePolicy
        guard [.get, .head].contains(request.method), ![.reload, .reloadIgnoringCaches].contains(policy) else {
            return SessionCache(of: self, ForeignStorage(foreign, request, nil, storage.removals))
        }
        request.method = .get
        let limit = load.handle.idleLimit == .max ? nil : Duration.nanoseconds(load.handle.idleLimit)
        let ending = await CallbackOutcome.run(load.handle, timeout: limit, onLoop: true) { [request] in
            await foreign.cachedResponse(for: request)
        }
        switch ending {
        case .answered(let entry):
            return SessionCache(of: self, ForeignStorage(foreign, request, entry, storage.removals))
        case .late: return SessionCache(of: self, ForeignStorage(foreign, request, nil, storage.removals))
        case .stopped: throw LoadError(load.stopReason ?? .cancelled, phase: .preparing).at(request.url)
        }
    }
}

/// The answer of a foreign cache to one request. Bodies are not streamed into it: the cache decision stores them.
final class ForeignStorage: CacheStorage {
    private let foreign: any ForeignCache
    private let request: Request
    private let entry: CachedResponse?
    private let stored: StoredResponse?
    /// The removals of all loads of the session.
    let removals: CacheRemovals

    init(_ foreign: any ForeignCache, _ request: Request, _ entry: CachedResponse?, _ removals: CacheRemovals) {
        (self.foreign, self.request, self.entry, self.removals) = (foreign, request, entry, removals)
        stored = entry.flatMap { Self.stored($0, request) }
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

    func variantsNow(_ key: CacheKey) -> [StoredResponse]? { variants(key) }
    func variants(_ key: CacheKey) -> [StoredResponse] { stored.map { $0.key == key ? [$0] : [] } ?? [] }
    func body(_ response: StoredResponse) -> (any StoredBody)? { entry.map { MemoryBody(Array($0.data)) } }
    func bodyNow(_ response: StoredResponse) -> (any StoredBody)? { body(response) }
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

    func remove(_ response: StoredResponse) { remove(response.key) }

    func remove(_ key: CacheKey) {
        removals.note(key)
        if let url = URL(string: key.text) { foreign.remove(for: Request(url: url)) }
    }

    func removeAll(since moment: Double?) {}
    func flush() {}
}
