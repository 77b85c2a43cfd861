// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingWire

@testable import URLLoading

/// A cache as callers see it: checklist 90, 100, 101, 103.
@Suite struct ResponseCacheTests {
    private func request(_ path: String, _ headers: Headers = [:], method: URLLoading.Method = .get) throws -> Request {
        Request(url: try #require(URL(string: "http://ada:secret@A.test/" + path)), method: method, headers: headers)
    }

    private func entry(_ request: Request, _ text: String, _ headers: Headers = [:]) -> CachedResponse {
        CachedResponse(
            response: Response(url: request.url, http: HTTPHead(status: .ok, headers: headers)), data: Data(text.utf8))
    }

    @Test func `a stored response is found and removed by its request, with its userInfo`() throws {
        try withStoreFolder { folder in
            for cache in [ResponseCache(), ResponseCache(directory: folder)] {
                let page = try request("page#part")
                var stored = entry(page, "text", ["ETag": "\"1\"", "Connection": "X-Hop", "X-Hop": "1"])
                stored.userInfo = Data([1, 2])
                #expect(cache.cachedResponse(for: page) == nil && cache.store(stored, for: page))
                let bare = try request("page")
                let found = try #require(cache.cachedResponse(for: bare))
                #expect(found.data == stored.data && found.userInfo == Data([1, 2]) && found.storagePolicy == .allowed)
                #expect(found.response.url.absoluteString == "http://A.test/page" && found.response.expectedLength == 4)
                #expect(found.response.http?.headers["ETag"] == "\"1\"" && found.response.http?.headers["X-Hop"] == nil)
                cache.flush()
                #expect(cache.cachedResponse(for: page)?.userInfo == Data([1, 2]))
                cache.remove(for: page)
                #expect(cache.cachedResponse(for: page) == nil)
            }
        }
    }

    @Test func `variants are stored separately`() throws {
        let cache = ResponseCache()
        let german = try request("v", ["Accept-Language": "de"])
        let english = try request("v", ["Accept-Language": "en"])
        cache.store(entry(german, "eins", ["Vary": "Accept-Language"]), for: german)
        cache.store(entry(english, "one", ["Vary": "accept-language"]), for: english)
        #expect(cache.cachedResponse(for: german)?.data == Data("eins".utf8))
        #expect(cache.cachedResponse(for: english)?.data == Data("one".utf8))
        let french = try request("v", ["Accept-Language": "fr"])
        let any = try request("v")
        #expect(cache.cachedResponse(for: french) == nil)
        #expect(cache.cachedResponse(for: any) != nil)
        #expect(!cache.store(entry(german, "any", ["Vary": "*"]), for: any))
    }

    @Test func `responses that no cache may store are refused`() throws {
        let cache = ResponseCache()
        let file = Request(url: URL(filePath: "/etc/hostname"))
        let post = try request("p", method: .post)
        #expect(!cache.store(entry(file, ""), for: file) && !cache.store(entry(post, ""), for: post))
        let page = try request("n")
        var never = entry(page, "x")
        never.storagePolicy = .notAllowed
        #expect(!cache.store(never, for: page))
        #expect(cache.memoryUsage == 0)
    }

    @Test func `memory only stays off the disk (checklist 100)`() throws {
        try withStoreFolder { folder in
            let cache = ResponseCache(directory: folder)
            let page = try request("m")
            var secret = entry(page, "only in memory")
            secret.storagePolicy = .allowedInMemoryOnly
            #expect(cache.store(secret, for: page))
            cache.flush()
            #expect(cache.cachedResponse(for: page)?.storagePolicy == .allowedInMemoryOnly)
            #expect(!FileManager.default.fileExists(atPath: folder.plainPath))
            // In place of one that is on disk.
            cache.store(entry(page, "everywhere"), for: page)
            cache.flush()
            cache.store(secret, for: page)
            cache.flush()
            #expect(cache.cachedResponse(for: page)?.data == secret.data)
            cache.memoryCapacity = 0
            #expect(cache.cachedResponse(for: page) == nil)
            for name in filesUnder(folder).keys {
                let content = try Data(contentsOf: folder.appending(path: name))
                #expect(content.firstRange(of: Data("only in memory".utf8)) == nil, "\(name)")
            }
        }
    }

    @Test func `capacities change at once`() throws {
        try withStoreFolder { folder in
            let cache = ResponseCache(memoryCapacity: 1 << 20, diskCapacity: 8 << 20, directory: folder)
            for number in 0..<100 {
                let page = try request("c\(number)")
                #expect(
                    cache.store(
                        CachedResponse(response: entry(page, "").response, data: Data(count: 15_000)), for: page))
            }
            cache.flush()
            #expect(cache.memoryUsage > 900_000 && cache.memoryUsage <= 1 << 20 && cache.diskUsage > 1_500_000)
            cache.memoryCapacity = 100_000
            #expect(cache.memoryUsage <= 100_000 && cache.memoryCapacity == 100_000)
            cache.diskCapacity = 500_000
            cache.flush()
            #expect(cache.diskUsage <= 500_000 && cache.diskUsage > 0)
            let first = try request("c0")
            let last = try request("c99")
            #expect(cache.cachedResponse(for: last) != nil && cache.cachedResponse(for: first) == nil)
            #expect("\(cache)".hasSuffix("/500000 on disk"))
            cache.maximumEntrySize = 1_000
            let page = try request("large")
            #expect(
                !cache.store(CachedResponse(response: entry(page, "").response, data: Data(count: 1_001)), for: page))
            cache.removeAll()
            #expect(cache.memoryUsage == 0 && cache.cachedResponse(for: last) == nil)
        }
    }

    @Test func `caches of one directory see each other at once`() throws {
        try withStoreFolder { folder in
            let one = ResponseCache(directory: folder)
            let two = ResponseCache(directory: folder)
            #expect(one.disk === two.disk)
            let page = try request("shared")
            one.store(entry(page, "first"), for: page)
            #expect(two.cachedResponse(for: page)?.data == Data("first".utf8))
            two.store(entry(page, "second"), for: page)
            #expect(one.cachedResponse(for: page)?.data == Data("second".utf8))
            one.remove(for: page)
            #expect(two.cachedResponse(for: page) == nil)
        }
    }

    @Test func `an unusable directory leads to a cache in memory only, and is reported once`() throws {
        try withStoreFolder { folder in
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let open = folder.appending(path: "open")
            let file = folder.appending(path: "file")
            let link = folder.appending(path: "link")
            try FileManager.default.createDirectory(at: open, withIntermediateDirectories: true)
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: open.plainPath)
            try Data().write(to: file)
            try FileManager.default.createSymbolicLink(
                at: link, withDestinationURL: folder.appending(path: "elsewhere"))
            for directory in [open, file, link] {
                let cache = ResponseCache(directory: directory)
                let page = try request("x")
                cache.store(entry(page, "x"), for: page)
                cache.flush()
                #expect(cache.problem?.reason == .unsafeDirectory, "\(directory)")
                cache.store(entry(page, "y"), for: page)
                #expect(cache.cachedResponse(for: page)?.data == Data("y".utf8) && cache.diskUsage == 0)
                cache.removeAll()
                #expect(cache.cachedResponse(for: page) == nil)
            }
            let unmade = ResponseCache(directory: URL(filePath: "/proc/no-such-place/cache"))
            let page = try request("x")
            unmade.store(entry(page, "x"), for: page)
            unmade.flush()
            #expect(unmade.problem?.reason == .unwritable && unmade.cachedResponse(for: page) != nil)
            #expect(filesUnder(open).isEmpty)
        }
    }
}
