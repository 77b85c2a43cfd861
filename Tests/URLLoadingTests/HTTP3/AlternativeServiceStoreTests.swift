// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingWire

@testable import URLLoading

/// Where servers offer HTTP/3, on disk. These rows need no build with HTTP/3.
@Suite(.timeLimit(.minutes(4)))
struct AlternativeServiceStoreTests {
    private let origin: Origin
    private let other: Origin

    init() throws {
        origin = try Origin(scheme: "https", host: Origin.Host("example.org"))
        other = try Origin(scheme: "https", host: Origin.Host("[::1]"), port: 8443)
    }

    private func learn(_ store: AlternativeServiceStore, _ field: String, _ origin: Origin? = nil) throws {
        store.learn(try #require(AlternativeServices(field)), from: origin ?? self.origin)
    }

    private func target(_ store: AlternativeServiceStore, _ origin: Origin? = nil) -> AlternativeServiceTable.Target? {
        store.target(for: origin ?? self.origin, isPreferred: false)
    }

    @Test("An offer is there after a restart, and for others; and gone when it is revoked or forgotten")
    func restart() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let (one, two) = (HSTSStore(directory: folder.url("s")), HSTSStore(directory: folder.url("s")))
        try learn(one.alternatives, "h3=\"alt.example:8443\"; ma=1000; persist=1")
        try learn(one.alternatives, "h3=\":444\"; ma=1000", other)
        await one.flush()
        await two.reload()
        let found = try #require(target(two.alternatives)?.service)
        #expect(found.host?.description == "alt.example" && found.port == 8443 && found.persists)
        let own = try #require(target(two.alternatives, other)?.service)
        #expect(own.host == nil && own.port == 444 && !own.persists)
        try learn(two.alternatives, "clear")
        await two.flush()
        await one.reload()
        #expect(target(one.alternatives) == nil && target(one.alternatives, other) != nil && one.problem == nil)
        one.removeAll()
        await one.flush()
        let three = HSTSStore(directory: folder.url("s"))
        await three.reload()
        #expect(target(three.alternatives, other) == nil && three.problem == nil)
    }

    @Test(
        "An offer that another process has stored, and this one has not read, can be revoked and forgotten",
        arguments: [false, true])
    func removesUnread(_ isServer: Bool) async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let one = AlternativeServiceStore(folder: folder.path)
        await one.reload()
        let two = AlternativeServiceStore(folder: folder.path)
        try learn(two, "h3=\":443\"; ma=1000")
        await two.flush()
        if isServer { try learn(one, "clear") } else { one.removeAll(since: .distantPast) }
        await one.flush()
        let three = AlternativeServiceStore(folder: folder.path)
        await three.reload()
        #expect(target(three) == nil && three.problem == nil)
    }

    @Test("What was learned since a moment is forgotten, and what was learned before stays") func since() async throws {
        let store = AlternativeServiceStore()
        try learn(store, "h3=\":443\"")
        try await Task.sleep(for: .milliseconds(5))
        let moment = Date.now
        try learn(store, "h3=\":443\"", other)
        store.removeAll(since: moment)
        #expect(target(store) != nil && target(store, other) == nil)
    }

    @Test("A place whose attempts fail is left alone after a restart too") func broken() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let store = AlternativeServiceStore(folder: folder.path)
        try learn(store, "h3=\":443\"")
        store.failed(origin)
        store.isSlow(other)
        await store.flush()
        let later = AlternativeServiceStore(folder: folder.path)
        await later.reload()
        #expect(later.knows(origin) && target(later) == nil)
        later.succeeded(origin)
        await later.flush()
        await store.reload()
        #expect(target(store) == AlternativeServiceTable.Target(service: target(later)?.service, reason: .response))
    }

    @Test("An offer leaves the failures alone that the file has and this process has not read; a new place is tried")
    func offersUnread() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        func store() -> AlternativeServiceStore { AlternativeServiceStore(folder: folder.path) }
        let first = store()
        try learn(first, "h3=\":443\"; ma=1000")
        first.failed(origin)
        await first.flush()
        for (field, isTried) in [("h3=\":443\"; ma=90000", false), ("h3=\":444\"; ma=1000", true)] {
            let (writer, reader) = (store(), store())
            try learn(writer, field)
            await writer.flush()
            await reader.reload()
            #expect(reader.knows(origin) && (target(reader) != nil) == isTried, "\(field)")
        }
    }

    @Test("A store that learns nothing makes no file, and an offer that is repeated is not written again")
    func writes() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let store = HSTSStore(directory: folder.url("s"))
        let path = folder.path + "/s/alternatives.sqlite"
        store.alternatives.removeAll(since: .distantPast)
        store.alternatives.succeeded(origin)
        await store.alternatives.flush()
        #expect(!FileManager.default.fileExists(atPath: path))
        try learn(store.alternatives, "h3=\":443\"")
        await store.flush()
        let state = TableMemory(AlternativeServiceTable(), hasFile: true) {}
        for round in 0..<2 {
            let field = try #require(AlternativeServices("h3=\":443\"; ma=86400"))
            let (_, isPending) = state.change { table in
                table.change(origin, now: .now) { $0.learn(field, now: .now) }
            }
            #expect(isPending == (round == 0))
            _ = state.takePending()
        }
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test("An offer that every response extends a little is written again for each hundredth of its life")
    func renewals() throws {
        let memory = TableMemory(AlternativeServiceTable(), hasFile: true) {}
        let field = try #require(AlternativeServices("h3=\":443\"; ma=1000"))
        let start = Date.now
        var (written, largest, writes) = (start, 0.0, 0)
        for second in 0..<1_000 {
            let now = start + Double(second)
            _ = memory.change { table in table.change(origin, now: now) { $0.learn(field, now: now) } }
            if let row = memory.takePending().rows[origin] ?? nil { (written, writes) = (row.end, writes + 1) }
            largest = max(largest, (now + 1_000).timeIntervalSince(written))
        }
        #expect(largest <= 10 && (100...200).contains(writes), "\(largest) \(writes)")
    }

    @Test("Rows that this library has not written are left out, and ages are limited") func strange() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let store = AlternativeServiceStore(folder: folder.path)
        try learn(store, "h3=\":443\"; ma=99999999999999999999")
        await store.flush()
        do {
            let database = try Database(path: folder.path + "/alternatives.sqlite")
            let write = try database.statement("INSERT INTO origin VALUES (?, ?, ?, '', ?, 0, 9e9, ?, 0, 0, 0)")
            try write.run(.text("http"), .text("plain.org"), .integer(80), .integer(443), .integer(0))
            try write.run(.text("https"), .text("no host"), .integer(443), .integer(443), .integer(0))
            try write.run(.text("https"), .text("a.org"), .integer(70_000), .integer(443), .integer(0))
            try write.run(.text("https"), .text("b.org"), .integer(443), .integer(-1), .integer(0))
            try write.run(.text("https"), .text("c.org"), .integer(443), .integer(443), .integer(1 << 40))
        }
        let later = AlternativeServiceStore(folder: folder.path)
        await later.reload()
        #expect(target(later) != nil && later.problem == nil)
        for name in ["plain.org", "a.org", "b.org"] {
            for scheme in ["http", "https"] {
                #expect(!later.knows(try Origin(scheme: scheme, host: Origin.Host(name))), "\(scheme) \(name)")
            }
        }
        let strange = try Origin(scheme: "https", host: Origin.Host("c.org"))
        later.failed(strange)
        #expect(later.knows(strange) && target(later, strange) == nil)
    }
}
