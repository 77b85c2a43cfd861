// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The cookie store: its file, concurrent users, and observers.
@Suite(.timeLimit(.minutes(4)))
struct CookieStoreTests {
    private func cookie(_ name: String, _ value: String = "1", domain: String = "example.org", days: Double? = 1) throws
        -> Cookie
    {
        try #require(Cookie(name: name, value: value, domain: domain, expires: days.map { Date.now + $0 * 86400 }))
    }

    private func mode(_ path: String) -> Int? {
        (try? FileManager.default.attributesOfItem(atPath: path))?[.posixPermissions] as? Int
    }

    @Test("cookies are added and removed individually, or since a date (checklist 107)")
    func changing() throws {
        let store = CookieStore()
        #expect(try store.set(cookie("a")) && store.set(cookie("b", days: nil)) && !store.set(cookie("c", days: -1)))
        #expect(store.all.map(\.name) == ["a", "b"] && "\(store)" == "2 cookies")
        #expect(try store.remove(cookie("a")) && !store.remove(cookie("a")))
        let moment = Date.now
        store.set(try cookie("d"))
        store.removeAll(since: moment)
        #expect(store.all.map(\.name) == ["b"])
        store.removeAll()
        #expect(store.all.isEmpty)
    }

    @Test("a new store on the same folder has the persistent cookies and no session cookies; security 81")
    func restart() async throws {
        let folder = try TemporaryFolder()
        let path = folder.url("state/deep").path(percentEncoded: false)
        defer { withExtendedLifetime(folder) {} }
        let first = CookieStore(directory: folder.url("state/deep"))
        #expect(first.all.isEmpty && !FileManager.default.fileExists(atPath: path))
        first.set(try cookie("stays", "old"))
        first.set(try cookie("stays", "süß"))
        first.set(try cookie("goes", "secret-of-session", days: nil))
        first.set(try cookie("moved"))
        first.set(try cookie("moved", days: nil))
        await first.flush()
        #expect(first.problem == nil && mode(path) == 0o700 && mode(path + "/cookies.sqlite") == 0o600)
        let second = CookieStore(directory: folder.url("state/deep"))
        #expect(second.all.map(\.name) == ["stays"] && second.all.first?.value == "süß")
        #expect(second.all.first?.creationDate == first.all.first { $0.name == "stays" }?.creationDate)
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            let bytes = try Data(contentsOf: URL(filePath: path + "/" + name))
            #expect(!String(decoding: bytes, as: UTF8.self).contains("secret-of-session"), "\(name)")
            #expect(mode(path + "/" + name) == 0o600, "\(name)")
        }
        second.removeAll()
        await second.flush()
        #expect(CookieStore(directory: folder.url("state/deep")).all.isEmpty)
    }

    @Test("cookies of one response keep their order in the file")
    func orderInTheFile() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let store = CookieStore(directory: folder.url("s"))
        let site = try url("http://example.org/")
        var headers = Headers()
        for name in ["z", "a", "m"] { headers.append(.setCookie, "\(name)=1; Max-Age=1000") }
        store.set(headers, from: site)
        store.set([.setCookie: "z=2; Max-Age=1000"], from: site)
        await store.flush()
        #expect(store.cookies(for: site).map(\.pair) == ["z=2", "a=1", "m=1"])
        #expect(CookieStore(directory: folder.url("s")).cookies(for: site).map(\.pair) == ["z=2", "a=1", "m=1"])
    }

    @Test(
        "the URLs of WebSockets have the cookies of http and https",
        arguments: [("ws", ["plain"]), ("wss", ["safe", "plain"]), ("WSS", ["safe", "plain"])])
    func webSocketURLs(_ scheme: String, _ names: [String]) throws {
        let store = CookieStore()
        store.set([.setCookie: "safe=1; Secure"], from: try url("https://example.org/"))
        store.set([.setCookie: "plain=1"], from: try url("http://example.org/"))
        store.set([.setCookie: "deep=1; Path=/deep"], from: try url("http://example.org/deep"))
        let socket = try url("\(scheme)://example.org/chat")
        #expect(store.cookies(for: socket).map(\.name) == names)
        #expect(store.cookies(for: socket, mainDocument: try url("ws://other.org/")).isEmpty)
        #expect(store.set([.setCookie: "set=1; Path=/set"], from: socket).map(\.name) == ["set"])
        #expect(store.cookies(for: try url("ftp://example.org/")).isEmpty)
    }

    @Test(
        "a removal reaches the file also where the store has not read the cookie yet",
        arguments: ["expired", "removed", "expired over http"])
    func removalOfUnread(_ way: String) async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let (one, two) = (CookieStore(directory: folder.url("s")), CookieStore(directory: folder.url("s")))
        #expect(one.all.isEmpty)
        let site = try url("https://example.org/")
        let set = two.set([.setCookie: "sid=1; Max-Age=1000; Secure"], from: site)
        await two.flush()
        switch way {
        case "expired": one.set([.setCookie: "sid=; Max-Age=0; Secure"], from: site)
        case "removed": one.remove(try #require(set.first))
        // Must not remove a secure cookie (RFC 6265bis §5.7, step 15).
        default: one.set([.setCookie: "sid=; Max-Age=0"], from: try url("http://example.org/"))
        }
        await one.flush()
        let third = CookieStore(directory: folder.url("s"))
        #expect(third.all.count == (way == "expired over http" ? 1 : 0))
    }

    @Test("two stores on one folder see each other's cookies")
    func sharing() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let (one, two) = (CookieStore(directory: folder.url("s")), CookieStore(directory: folder.url("s")))
        one.set(try cookie("a"))
        two.set(try cookie("b"))
        await one.flush()
        await two.flush()
        await one.reload()
        await two.reload()
        #expect(one.all.map(\.name).sorted() == ["a", "b"] && two.all.map(\.name).sorted() == ["a", "b"])
        two.remove(try cookie("a"))
        one.set(try cookie("c", days: nil))
        await two.flush()
        await one.reload()
        #expect(one.all.map(\.name).sorted() == ["b", "c"])
        two.removeAll()
        await two.flush()
        await one.reload()
        #expect(one.all.map(\.name) == ["c"])
    }

    @Test("64 concurrent tasks on two stores with one file lose no cookie")
    func crowd() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let stores = [CookieStore(directory: folder.url("s")), CookieStore(directory: folder.url("s"))]
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<64 {
                group.addTask {
                    for index in 0..<20 {
                        guard
                            let cookie = Cookie(
                                name: "n\(index)", value: "\(task)", domain: "h\(task).example",
                                expires: Date.now + 1000),
                            let url = URL(string: "http://h\(task).example/")
                        else { return }
                        stores[task % 2].set(cookie)
                        #expect(stores[task % 2].cookies(for: url).count == index + 1)
                        if index % 10 == 9 { await stores[task % 2].flush() }
                    }
                }
            }
        }
        for store in stores { await store.flush() }
        for store in stores { await store.reload() }
        #expect(stores[0].all.count == 1280 && stores[1].all.count == 1280)
        #expect(stores[0].problem == nil && stores[1].problem == nil)
        #expect(CookieStore(directory: folder.url("s")).all.count == 1280)
    }

    @Test(
        "a damaged file is moved aside and reported once; the cookies in memory go to a new file",
        arguments: [false, true])
    func damage(_ isOpen: Bool) async throws {
        let folder = try TemporaryFolder()
        let place = folder.url("s")
        let file = place.path(percentEncoded: false) + "/cookies.sqlite"
        defer { withExtendedLifetime(folder) {} }
        let store = CookieStore(directory: place)
        if isOpen {
            store.set(try cookie("old"))
            await store.flush()
        } else {
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        }
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file + suffix) }
        try Data(repeating: 0x55, count: 8192).write(to: URL(filePath: file))
        let next = CookieStore(directory: place)
        next.set(try cookie("new"))
        await next.flush()
        await next.flush()
        #expect(
            next.problem?.contains("cookies.sqlite") == true
                && FileManager.default.fileExists(atPath: file + ".damaged"))
        #expect(next.all.map(\.name) == ["new"])
        let third = CookieStore(directory: place)
        #expect(third.all.map(\.name) == ["new"] && third.problem == nil)
    }

    @Test("a damaged file is replaced when its lock is free, for which no store waits without an end")
    func damageUnderLock() async throws {
        let folder = try TemporaryFolder()
        let place = folder.url("s")
        let file = place.path(percentEncoded: false) + "/cookies.sqlite"
        defer { withExtendedLifetime(folder) {} }
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        try Data(repeating: 0x55, count: 8192).write(to: URL(filePath: file))
        // A process that was stopped while it held the lock.
        var lock: FileLock? = try FileLock(file + ".lock", timeout: 1_000)
        let store = CookieStore(directory: place)
        store.set(try cookie("new"))
        await store.flush()
        #expect(lock != nil && store.all.map(\.name) == ["new"])
        #expect(!FileManager.default.fileExists(atPath: file + ".damaged"))
        lock = nil
        await store.flush()
        await store.flush()
        #expect(FileManager.default.fileExists(atPath: file + ".damaged"))
        #expect(CookieStore(directory: place).all.map(\.name) == ["new"])
    }

    @Test("a folder that cannot be created leaves cookies in memory, and is reported")
    func unwritable() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        try Data("a file".utf8).write(to: folder.url("file"))
        let store = CookieStore(directory: folder.url("file/below"))
        store.set(try cookie("a"))
        await store.flush()
        store.set(try cookie("b"))
        await store.flush()
        #expect(store.all.count == 2 && store.problem?.contains("cannot be created") == true)
    }

    @Test("changes of cookies and of the policy arrive as a sequence, merged (checklist 109)")
    func changes() async throws {
        let store = CookieStore()
        var changes = store.changes.makeAsyncIterator()
        for index in 0..<100 { store.set(try cookie("n\(index)")) }
        #expect(await changes.next() == .cookies)
        store.acceptPolicy = .never
        store.acceptPolicy = .never
        #expect(await changes.next() == .acceptPolicy)
        let waiting = Task { () -> CookieChanges.Change? in
            var changes = store.changes.makeAsyncIterator()
            return await changes.next()
        }
        waiting.cancel()
        #expect(await waiting.value == nil)
        store.remove(try cookie("n1"))
        store.remove(try cookie("n1"))
        #expect(await changes.next() == .cookies)
    }

    @Test(arguments: [Double.infinity, -Double.infinity, Double.nan, 1e300, -1e300])
    func `an expiry date outside of the calendar does no harm`(seconds: Double) throws {
        let store = CookieStore()
        let date = Date(timeIntervalSince1970: seconds)
        let cookie = try #require(Cookie(name: "odd", value: "1", domain: "example.org", expires: date))
        store.set(cookie)
        #expect(store.all.count == (seconds > 0 ? 1 : 0))
        #expect(store.netscapeText.contains("253402300799") == (seconds > 0))
    }

    @Test("the Netscape format is exported and imported; security 28")
    func netscape() throws {
        let store = CookieStore()
        store.set(try cookie("plain", "x y", days: 10))
        store.set(
            try #require(
                Cookie(
                    name: "wide", value: "1", domain: "example.org", isHostOnly: false, path: "/a", isSecure: true,
                    isHTTPOnly: true)))
        store.set(try #require(Cookie(name: "lines", value: "a\u{2028}b\u{85}c", domain: "example.org")))
        store.set(["Set-Cookie": "tab=a\tb"], from: try url("http://example.org/"))
        let text = store.netscapeText
        let other = CookieStore()
        #expect(other.set(netscapeText: text) == 3 && !text.contains("tab"))
        #expect(
            other.all.first { $0.name == "wide" }?.isHTTPOnly == true
                && other.all.first { $0.name == "wide" }?.expires == nil)
        #expect(other.all.first { $0.name == "plain" }?.value == "x y" && other.netscapeText == text)
        #expect(
            other.set(
                netscapeText:
                    ".com\tTRUE\t/\tFALSE\t0\ta\tb\n.co.uk.\tTRUE\t/\tFALSE\t0\ta\tb\n"
                    + "x.org\tTRUE\t/\tFALSE\t1\told\tb\r\n"
            ) == 0)
    }

    @Test("after 1,000 random changes, flushes and restarts the file equals the memory")
    func model() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        var store = CookieStore(directory: folder.url("s"))
        var random = SeededGenerator(seed: 1)
        for step in 0..<1_000 {
            let name = "n\(Int.random(in: 0..<30, using: &random))"
            switch Int.random(in: 0..<12, using: &random) {
            case 0: store.remove(try cookie(name))
            case 1: await store.reload()
            case 2 where step % 10 == 0: store.removeAll(since: Date.now - 0.001)
            case 3 where step % 5 == 0:
                let known = store.all.filter { $0.expires != nil }.map { "\($0.name)=\($0.value)" }.sorted()
                await store.flush()
                store = CookieStore(directory: folder.url("s"))
                let found = store.all.map { "\($0.name)=\($0.value)" }.sorted()
                #expect(found == known, "\(step)")
            default:
                let isPersistent = Bool.random(using: &random)
                store.set(try cookie(name, "\(step)", days: isPersistent ? 1 : nil))
            }
        }
    }
}
