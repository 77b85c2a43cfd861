// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Checklist 107: a process that only uses cookies does not undo changes of another process with the same file.
@Suite(.timeLimit(.minutes(4)))
struct SharedJarRows {
    /// Last used so long ago that the next use is written to the file.
    private func cookie(_ value: String, _ domain: String = "a.test") -> Cookie {
        let old = Date.now.addingTimeInterval(-200_000)
        return Cookie(
            name: "sid", value: value, domain: domain, isHostOnly: true, path: "/",
            expires: .now.addingTimeInterval(1e6), isSecure: false,
            isHTTPOnly: false, sameSite: nil, creation: old, lastAccess: old)
    }

    @Test("using a cookie that another process removed or renewed does not restore it", arguments: [nil, "2"])
    func used(_ renewed: String?) async throws {
        try await withTemporaryURL("jar", isDirectory: true) { folder in
            let url = try #require(URL(string: "https://a.test/"))
            let a = CookieStore(directory: folder)
            a.set(cookie("1"))
            await a.flush()
            let b = CookieStore(directory: folder)
            if let renewed { b.set(cookie(renewed)) } else { b.remove(cookie("1")) }
            await b.flush()
            _ = a.cookies(for: url)
            await a.flush()
            let kept = CookieStore(directory: folder).all.map(\.value)
            #expect(kept == (renewed.map { [$0] } ?? []))
        }
    }

    @Test("the use of a cookie is recorded")
    func noted() async throws {
        try await withTemporaryURL("jar", isDirectory: true) { folder in
            let url = try #require(URL(string: "https://a.test/"))
            let a = CookieStore(directory: folder)
            a.set(cookie("1"))
            await a.flush()
            _ = a.cookies(for: url)
            await a.flush()
            let used = try #require(CookieStore(directory: folder).all.first?.lastAccessDate)
            #expect(used.timeIntervalSinceNow > -1000)
        }
    }

    @Test("the use of a cookie that is used every hour is recorded every day")
    func notedDaily() throws {
        let context = try #require(CookieContext(try url("https://a.test/")))
        let memory = TableMemory(CookieTable(), hasFile: true) {}
        let start = Date.now
        _ = memory.change { $0.set(cookie("1"), isSecure: true, now: start) }
        var notes = 0
        for hour in 0..<96 {
            _ = memory.takePending()
            _ = memory.change { $0.forEach(for: context, now: start + Double(3_600 * hour)) { _ in true } }
            notes += memory.takePending().notes.count
        }
        // The first use, and the first one after each midnight.
        #expect((4...5).contains(notes))
    }

    @Test("an idle process reads the file before it sends cookies")
    func idle() async throws {
        try await withTemporaryURL("jar", isDirectory: true) { folder in
            try await withHTTPTestServer { origin in
                origin.route("/") { .ok($0.headers[.cookie] ?? "-") }
                let host = try #require(origin.url().host())
                let a = CookieStore(directory: folder)
                a.set(cookie("1", host))
                await a.flush()
                try await withSession(.ephemeral.with { $0.cookies.storage = .store(a) }) { session in
                    try await session.expect(origin.url(), "sid=1")
                    let b = CookieStore(directory: folder)
                    b.remove(cookie("1", host))
                    await b.flush()
                    try await Task.sleep(for: .milliseconds(1200))
                    try await session.expect(origin.url(), "-")
                }
            }
        }
    }

    @Test("a write delayed by another process is done afterwards, and the other's changes are seen")
    func held() async throws {
        try await withTemporaryURL("jar", isDirectory: true) { folder in
            let a = CookieStore(directory: folder)
            a.set(cookie("1"))
            await a.flush()
            let holder = try Database(path: folder.plainPath + "cookies.sqlite")
            try holder.execute("UPDATE cookie SET value = '2'")
            try holder.execute("BEGIN IMMEDIATE")
            a.set(cookie("3", "b.test"))
            await a.reload()
            try holder.execute("COMMIT")
            await a.flush()
            await a.reload()
            #expect(a.all.map(\.value).sorted() == ["2", "3"])
        }
    }

    @Test("two processes together do not exceed the limits")
    func limits() async throws {
        try await withTemporaryURL("jar", isDirectory: true) { folder in
            let limits = CookieStore.Limits(perDomain: 10, total: 100)
            let a = CookieStore(directory: folder, limits: limits)
            let b = CookieStore(directory: folder, limits: limits)
            _ = (a.all, b.all)
            for number in 0..<8 {
                for (store, name) in [(a, "a"), (b, "b")] {
                    store.set(
                        try #require(
                            Cookie(
                                name: "\(name)\(number)", value: "1", domain: "x.test",
                                expires: .now.addingTimeInterval(1e6))))
                }
            }
            await a.flush()
            await b.flush()
            await a.reload()
            #expect(a.all.count == 10)
            await a.flush()
            await b.reload()
            #expect(b.all.count == 10 && CookieStore(directory: folder).all.count == 10)
        }
    }

    @Test("a cookie that cannot be sent back byte for byte is refused (RFC 6265bis 5.8.3)")
    func bytes() throws {
        let url = try #require(URL(string: "https://a.test/"))
        var headers = Headers()
        func add(_ value: [UInt8]) {
            value.withUnsafeBytes { value in
                Array("sEt-cookie".utf8).withUnsafeBytes { headers.appendRaw(name: $0, value: value) }
            }
        }
        add(Array("a=1".utf8))
        add(Array("b=".utf8) + [0xE9])
        add(Array("c=\u{E9}; Comment=".utf8) + [0xE9])
        #expect(Cookie.cookies(in: headers, from: url).map { "\($0.name)=\($0.value)" } == ["a=1", "c=\u{E9}"])
    }

    @Test("a host of version 6 is one with and without its brackets")
    func addresses() throws {
        #expect(Cookie(name: "a", value: "1", domain: "::1")?.domain == "[::1]")
        #expect(Cookie(name: "a", value: "1", domain: "[::1]")?.domain == "[::1]")
        #expect(Cookie(name: "a", value: "1", domain: "a:b") == nil)
    }
}
