// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// A load cancelled at any point of its way through the cache stores nothing wrong, retains nothing, and blocks no
/// other load.
@Suite(.timeLimit(.minutes(4)))
struct CacheCancellationRows {
    /// Cancels loads after increasing times, until one completes.
    private func cancelEverywhere(
        _ session: Session, _ request: Request, _ before: () async throws -> Void = {}, _ after: () async throws -> Void
    ) async throws {
        var delay = 0
        var through = 0
        while through < 3, delay < 400 {
            try await before()
            let load = Task { try await session.data(for: request).0.count }
            try await Task.sleep(for: .microseconds(delay * 25))
            load.cancel()
            switch await load.result {
            case .success(let count):
                through += 1
                #expect(count == 200_000)
            case .failure(let error): #expect((error as? LoadError)?.reason == .cancelled, "\(error)")
            }
            try await after()
            delay += 1 + delay / 8
        }
    }

    private func withRig(_ sharing: Bool = false, _ use: (CacheRig, ResponseCache) async throws -> Void) async throws {
        let folder = temporaryURL("cancel")
        defer { try? FileManager.default.removeItem(at: folder) }
        let cache = ResponseCache(memoryCapacity: 64 << 10, directory: folder)
        try await withCacheRig({
            $0.caching.store = cache
            $0.caching.coalescesIdenticalRequests = sharing
        }) { rig in
            rig.origin.route("/") { request in
                if request.headers.contains(.ifNoneMatch) { return .status(.notModified, headers: [.etag: "\"1\""]) }
                return .ok(
                    .bytes([UInt8](repeating: 7, count: 200_000)),
                    headers: [.etag: "\"1\"", .cacheControl: "max-age=60"])
            }
            try await use(rig, cache)
            await expectEmpty(rig.session)
        }
        cache.flush()
    }

    /// Expects either no entry or the whole body as it was sent; never a truncated body that is marked complete.
    private func check(_ rig: CacheRig, _ cache: ResponseCache) {
        guard let entry = cache.cachedResponse(for: Request(url: rig.origin.url("/"))) else { return }
        #expect(entry.data == Data(repeating: 7, count: 200_000))
    }

    @Test("lookup and storing")
    func storing() async throws {
        try await withRig { rig, cache in
            let request = Request(url: rig.origin.url("/"))
            try await cancelEverywhere(rig.session, request, { cache.removeAll() }) { check(rig, cache) }
        }
    }

    @Test("lookup and reading from disk")
    func reading() async throws {
        try await withRig { rig, cache in
            let request = Request(url: rig.origin.url("/"))
            _ = try await rig.session.data(for: request)
            try await cancelEverywhere(rig.session, request) { check(rig, cache) }
            #expect(rig.requests == 1)
        }
    }

    @Test("validating a stored response")
    func validating() async throws {
        try await withRig { rig, cache in
            var request = Request(url: rig.origin.url("/"))
            _ = try await rig.session.data(for: request)
            request.cachePolicy = .revalidate
            try await cancelEverywhere(rig.session, request) { check(rig, cache) }
            #expect(cache.cachedResponse(for: request) != nil)
        }
    }

    @Test("leading and following a shared fetch")
    func sharing() async throws {
        try await withRig(true) { rig, cache in
            let request = Request(url: rig.origin.url("/"))
            // A load that continues, whichever other load is cancelled.
            try await cancelEverywhere(rig.session, request, { cache.removeAll() }) {
                let whole = try await rig.session.data(for: request).0
                #expect(whole.count == 200_000)
                check(rig, cache)
            }
            try await cancelEverywhere(
                rig.session, request,
                {
                    cache.removeAll()
                }
            ) {
                async let other = rig.session.data(for: request).0.count
                let cancelled = Task { try? await rig.session.data(for: request) }
                cancelled.cancel()
                _ = await cancelled.value
                let count = try await other
                #expect(count == 200_000)
            }
        }
    }
}
