// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// RFC 6797 §8, without a network.
@Suite(.timeLimit(.minutes(4)))
struct HSTSStoreTests {
    private func note(_ store: HSTSStore, _ field: String, from text: String) throws {
        store.set(["Strict-Transport-Security": field], from: try url(text))
    }

    private func requires(_ store: HSTSStore, _ text: String) throws -> Bool { store.requiresTLS(try url(text)) }

    @Test("a policy is noted from https alone, never for addresses, and from the first field (RFC 6797 8.1)")
    func noting() throws {
        let store = HSTSStore()
        for text in ["http://plain.org", "https://127.0.0.1", "https://[::1]/"] {
            try note(store, "max-age=100", from: text)
        }
        #expect(store.all.isEmpty)
        var two = Headers()
        two.append(.strictTransportSecurity, "max-age=100")
        two.append(.strictTransportSecurity, "max-age=0; includeSubDomains")
        store.set(two, from: try url("https://a.org:8443/x"))
        #expect(store.all.map(\.name) == ["a.org"] && store.all.first?.includesSubdomains == false)
        try note(store, "nonsense", from: "https://a.org")
        #expect(store.all.count == 1)
        try note(store, "max-age=0", from: "https://a.org")
        #expect(store.all.isEmpty)
    }

    @Test(
        "a policy holds for the host in any spelling, and for subdomains on request (RFC 6797 8.2) (security 29)"
    )
    func matching() throws {
        let store = HSTSStore()
        try note(store, "max-age=100; includeSubDomains", from: "https://a.org")
        try note(store, "max-age=100", from: "https://b.org.")
        for text in [
            "http://a.org", "http://A.ORG", "http://a.org.", "http://x.y.a.org:8080", "http://a。org", "http://%61.org",
            "http://b.org", "http://b.org./",
        ] {
            #expect(try requires(store, text), "\(text)")
        }
        for text in [
            "http://xa.org", "http://org", "http://x.b.org", "http://a.org.evil.com", "http://127.0.0.1", "nonsense",
        ] {
            #expect(try !requires(store, text), "\(text)")
        }
    }

    @Test("the policy of a subdomain does not affect its parent (security 30)")
    func subdomains() throws {
        let store = HSTSStore()
        try note(store, "max-age=1000; includeSubDomains", from: "https://a.org")
        try note(store, "max-age=1", from: "https://x.a.org")
        try note(store, "max-age=0", from: "https://x.a.org")
        try note(store, "max-age=0", from: "https://y.a.org")
        #expect(try requires(store, "http://a.org") && requires(store, "http://x.a.org") && store.all.count == 1)
        #expect((store.all.first?.expires ?? .distantPast) > Date.now + 900)
        try note(store, "max-age=99999999999999999999", from: "https://a.org")
        #expect(
            store.all.first?.includesSubdomains == false
                && (store.all.first?.expires ?? .distantPast) > Date.now + 1_000_000_000)
    }

    @Test("an expired host is ignored")
    func ending() throws {
        var table = HSTSTable()
        let now = Date.now
        let host = try #require(HSTSHost("a.org", includesSubdomains: true, expires: now + 10))
        _ = table.set(host)
        #expect(
            table.requiresTLS("x.a.org", now: now + 9) && !table.requiresTLS("x.a.org", now: now + 10)
                && !table.requiresTLS("a.org", now: now + 11))
        #expect(
            HSTSHost("127.0.0.1", expires: now) == nil && HSTSHost("a b", expires: now) == nil
                && HSTSHost(".A.org", expires: now)?.name == "a.org")
    }

    @Test("a server with many names does not fill the memory")
    func flood() throws {
        var table = HSTSTable()
        for index in 0..<HSTSTable.most + 100 {
            _ = table.set(
                HSTSHost(
                    checked: "h\(index).a.org", includesSubdomains: false,
                    expires: Date(timeIntervalSince1970: Double(index)), creation: .now))
            if index >= HSTSTable.most + 5 { break }
        }
        #expect(table.hosts.count == HSTSTable.most && table.hosts["h0.a.org"] == nil)
    }

    @Test("a policy that each response extends a little is written again for each hundredth of its life")
    func renewals() {
        let memory = TableMemory(HSTSTable(), hasFile: true) {}
        let start = Date.now
        var (written, largest, writes) = (start, 0.0, 0)
        for second in 0..<1_000 {
            let now = start + Double(second)
            let host = HSTSHost(checked: "a.org", includesSubdomains: false, expires: now + 1_000, creation: now)
            _ = memory.change { $0.set(host, now: now) }
            if let row = memory.takePending().rows["a.org"] ?? nil { (written, writes) = (row.expires, writes + 1) }
            largest = max(largest, host.expires.timeIntervalSince(written))
        }
        #expect(largest <= 10 && (100...200).contains(writes), "\(largest) \(writes)")
    }

    @Test(
        "a host that another process has stored, and this one has not read, can be removed", arguments: [false, true])
    func removesUnread(_ isServer: Bool) async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let (one, two) = (HSTSStore(directory: folder.url("s")), HSTSStore(directory: folder.url("s")))
        #expect(one.all.isEmpty)
        try note(two, "max-age=1000", from: "https://a.org")
        try note(two, "max-age=1000", from: "https://b.org")
        await two.flush()
        if isServer { try note(one, "max-age=0", from: "https://a.org") } else { one.remove("a.org") }
        await one.flush()
        #expect(HSTSStore(directory: folder.url("s")).all.map(\.name) == ["b.org"])
    }

    @Test("what responses say is noted without reading the file, and merged with it later")
    func unread() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let (one, two) = (HSTSStore(directory: folder.url("s")), HSTSStore(directory: folder.url("s")))
        for host in ["a.org", "b.org"] { try note(one, "max-age=1000", from: "https://\(host)") }
        await one.flush()
        try note(two, "max-age=1000", from: "https://c.org")
        try note(two, "max-age=0", from: "https://a.org")
        #expect(!one.isKnown && !two.isKnown)
        // As it is in memory, without what the file has.
        #expect(two.requiresTLS(try Origin.Host("c.org")))
        #expect(two.all.map(\.name) == ["b.org", "c.org"])
        await two.flush()
        #expect(HSTSStore(directory: folder.url("s")).all.map(\.name) == ["b.org", "c.org"])
    }

    @Test("removals make no file")
    func removesWithoutFile() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let store = HSTSStore(directory: folder.url("s"))
        store.remove("a.org")
        store.removeAll()
        await store.flush()
        try note(store, "max-age=0", from: "https://a.org")
        await store.flush()
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/s") && store.problem == nil)
        try note(store, "max-age=1000", from: "https://a.org")
        await store.flush()
        #expect(HSTSStore(directory: folder.url("s")).all.map(\.name) == ["a.org"])
    }

    @Test("it is there after a restart, and for others; and gone when it is forgotten (security 30)")
    func restart() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let (one, two) = (HSTSStore(directory: folder.url("s")), HSTSStore(directory: folder.url("s")))
        try note(one, "max-age=1000; includeSubDomains", from: "https://a.org")
        await one.flush()
        await two.reload()
        #expect(two.all.map(\.description) == one.all.map(\.description) && two.all.count == 1)
        try note(two, "max-age=0", from: "https://a.org")
        await two.flush()
        await one.reload()
        #expect(one.all.isEmpty && one.problem == nil)
        try note(one, "max-age=10", from: "https://b.org")
        one.removeAll()
        await one.flush()
        #expect(HSTSStore(directory: folder.url("s")).all.isEmpty)
        one.set(try #require(HSTSHost("c.org", expires: .now + 100)))
        one.remove("C.org.")
        #expect(one.all.isEmpty)
    }
}
