// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Checklist 2, 3, 90, 100: what is persistent, and what must not be.
@Suite(.timeLimit(.minutes(4)))
struct CacheDiskRows {
    @Test("a new cache on the same folder answers, large and small; memory-only is gone (checklist 2, 90, 100)")
    func restart() async throws {
        let folder = temporaryURL("cache-disk-rows")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer { origin in
            let clock = WallClock()
            let large = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            origin.route("/large") { _ in .ok(.bytes(large), headers: [.cacheControl: "max-age=60", .etag: "\"1\""]) }
            origin.route("/small") { _ in .ok("small", headers: [.cacheControl: "max-age=60"]) }
            origin.route("/nothing") { _ in .ok("nothing") }
            func session() -> Session {
                var configuration = Configuration.default
                configuration.caching.store = ResponseCache(directory: folder)
                configuration.wallClock = { clock.now }
                return Session(configuration)
            }
            let first = session()
            for path in ["/large", "/small", "/nothing"] { _ = try await first.data(from: origin.url(path)) }
            first.configuration.caching.store?.flush()
            await expectEmpty(first)

            let second = session()
            clock.advance(10)
            let (data, response) = try await second.data(from: origin.url("/large"))
            #expect(
                [UInt8](data) == large && response.http?.headers[.age] == "10" && response.expectedLength == 300_000)
            let (small, _) = try await second.data(from: origin.url("/small"))
            #expect(small == Data("small".utf8) && origin.counts.requests == 3)
            let (part, _) = try await second.data(
                for: Request(url: origin.url("/large"), headers: [.range: "bytes=200000-200004"]))
            #expect([UInt8](part) == Array(large[200_000..<200_005]))
            var request = Request(url: origin.url("/nothing"))
            request.cachePolicy = .onlyIfCached
            await expectFailure(.notInCache) { try await second.data(for: request) }
            #expect(origin.counts.requests == 3)
            await expectEmpty(second)
        }
    }

    @Test(
        "a small body on disk is served while every thread that may block is busy, and partly too",
        .enabled(if: ReadingAtOnce.isSupported, ReadingAtOnce.isMissing))
    func withoutThreads() async throws {
        let folder = temporaryURL("cache-thread-rows")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer { origin in
            let body = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            origin.route("/") { _ in .ok(.bytes(body), headers: [.cacheControl: "max-age=60", .etag: "\"1\""]) }
            var configuration = Configuration.ephemeral
            let cache = ResponseCache(memoryCapacity: 0, directory: folder)
            configuration.caching.store = cache
            try await withSession(configuration) { session in
                _ = try await session.data(from: origin.url())
                cache.flush()
                // Opens the file.
                _ = try await session.data(from: origin.url())
                let gate = ThreadSignal()
                let started = Counter()
                defer { for _ in 0..<4 { gate.raise() } }
                for _ in 0..<4 {
                    BlockingThreads.files.run {
                        _ = started.next()
                        while !gate.wait(nanoseconds: 1_000_000_000) {}
                    }
                }
                try await eventually(started.value) { $0 == 4 }
                let (data, response) = try await session.data(from: origin.url())
                var request = Request(url: origin.url())
                request.headers[.range] = "bytes=5000-5004"
                let (part, _) = try await session.data(for: request)
                #expect([UInt8](data) == body && response.http?.headers.contains(.age) == true)
                #expect([UInt8](part) == Array(body[5_000..<5_005]) && origin.counts.requests == 1)
            }
        }
    }

    @Test(
        "a response requested before another cache of the folder was emptied is not stored after it (RFC 9111 4.4)",
        arguments: [true, false])
    func otherCache(_ removesAll: Bool) async throws {
        let folder = temporaryURL("cache-other-rows")
        defer { try? FileManager.default.removeItem(at: folder) }
        let other = ResponseCache(directory: folder)
        try await withCacheRig {
            $0.caching.store = ResponseCache(directory: folder)
        } _: { rig in
            let (latch, came, counter) = (Latch(), Latch(), Counter())
            rig.origin.route("/") { _ in
                let text = counter.next("a")
                if text == "a1" {
                    came.open()
                    await latch.wait()
                }
                return .ok(text, headers: [.cacheControl: "max-age=600"])
            }
            async let first = rig.get()
            await came.wait()
            if removesAll { other.removeAll() } else { other.remove(for: Request(url: rig.origin.url("/"))) }
            latch.open()
            _ = try await first
            let second = try await rig.get()
            let third = try await rig.get()
            #expect(second == "200 a2 -" && third == "200 a2 0")
        }
    }

    // MARK: Damage

    /// A session whose cache has no memory, with a body of 3 MB in a file in which one bit is then changed.
    private func withDamage(at offset: Int, _ use: (Session, HTTPTestServer, [UInt8]) async throws -> Void) async throws
    {
        let folder = temporaryURL("cache-damage-rows")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer { origin in
            let large = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            origin.route("/") { _ in .ok(.bytes(large), headers: [.cacheControl: "max-age=60", .etag: "\"1\""]) }
            var configuration = Configuration.ephemeral
            let cache = ResponseCache(memoryCapacity: 0, directory: folder)
            configuration.caching.store = cache
            try await withSession(configuration) { session in
                _ = try await session.data(from: origin.url())
                cache.flush()
                let body = try #require(filesUnder(folder).first { $0.value == large.count }?.key)
                let file = try #require(fopen(folder.appending(path: body).plainPath, "r+"))
                fseek(file, offset, SEEK_SET)
                fputc(Int32(large[offset] ^ 1), file)
                fclose(file)
                try await use(session, origin, large)
            }
        }
    }

    @Test(
        "a damaged body is loaded anew, for a caller that has not received any of it (RFC 9111 4)",
        arguments: [0, 1_500_000, 2_999_999])
    func damaged(_ offset: Int) async throws {
        try await withDamage(at: offset) { session, origin, large in
            for _ in 0..<2 {
                let (data, _) = try await session.data(from: origin.url())
                let isRight = [UInt8](data) == large
                #expect(isRight && origin.counts.requests == 2)
            }
        }
    }

    @Test(
        "damage behind the first delivered piece ends the load, once",
        arguments: [0, 2_999_999])
    func damagedPieces(_ offset: Int) async throws {
        try await withDamage(at: offset) { session, origin, large in
            func read() async throws -> Bool {
                try await session.load(Request(url: origin.url())) { _, body in
                    var count = 0
                    var isRight = true
                    for try await chunk in body {
                        let bytes = [UInt8](chunk)
                        isRight = isRight && bytes == Array(large[count..<count + bytes.count])
                        count += bytes.count
                    }
                    return isRight && count == large.count
                }
            }
            if offset > 0 {
                await expectFailure(.cannotReadFile, .system, .receiving) { try await read() }
                #expect(origin.counts.requests == 1)
            }
            for _ in 0..<2 {
                let isRight = try await read()
                #expect(isRight && origin.counts.requests == 2)
            }
        }
    }

    // MARK: A disk that is slow

    @Test("storing slows down a reader while the disk is behind; the reader continues or ends when it catches up")
    func behind() async throws {
        let folder = temporaryURL("cache-behind-rows")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 20_000_000), headers: [.cacheControl: "max-age=60"]) }
            var configuration = Configuration.ephemeral
            let cache = ResponseCache(memoryCapacity: 0, diskCapacity: 1 << 30, directory: folder)
            configuration.caching.store = cache
            try await withSession(configuration) { session in
                let disk = try #require(cache.disk)
                let gate = ThreadSignal()
                cache.flush()
                // The single writer thread.
                disk.thread.run { while !gate.wait(nanoseconds: 1_000_000_000) {} }
                let left = session.downloadTask(Request(url: origin.url()))
                let whole = session.downloadTask(Request(url: origin.url()))
                for task in [left, whole] { task.resume() }
                // A waiting writer is woken when the disk has caught up, not when it falls behind.
                try await eventually(disk.isBehind) { $0 }
                try await Task.sleep(for: .milliseconds(20))
                #expect(left.snapshot.received < 10_000_000 && whole.snapshot.received < 10_000_000)
                left.cancel()
                await expectFailure(.cancelled) { try await left.value }
                gate.raise()
                let file = try await whole.value
                #expect(file.size == 20_000_000)
                cache.flush()
                #expect(!disk.isBehind && origin.counts.requests == 2)
            }
        }
    }
}
