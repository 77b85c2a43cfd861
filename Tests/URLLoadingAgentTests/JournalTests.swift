// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO

@testable import URLLoadingAgent

@Suite(.timeLimit(.minutes(2))) struct JournalTests {
    static func with(_ use: (String) async throws -> Void) async throws {
        var template = Array("/tmp/urljournal-XXXXXX".utf8CString)
        let folder = mkdtemp(&template).map { String(cString: $0) } ?? "/nowhere"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await use(folder + "/state")
    }

    static func transfer(_ name: String, of identifier: String = "a") -> JournaledTransfer {
        JournaledTransfer(
            id: name, identifier: identifier, order: [1, 2], state: [3], progress: Array(name.utf8), secrets: [7])
    }

    /// Accepts a transfer, and returns its claim.
    @discardableResult
    static func accept(_ name: String, of identifier: String = "a", _ journal: some Journal) async throws
        -> TransferClaim
    {
        let receipt = try await journal.write([.accept(transfer(name, of: identifier))], mayFail: true)
        guard case .claimed(let claim)? = receipt.acceptance else { throw JournalFailure.failed("\(receipt)") }
        return claim
    }

    /// What a journal has for the agent that has opened it.
    struct Content: Equatable {
        let identifiers: [JournaledIdentifier]
        let transfers: [JournaledTransfer]

        init(_ journal: some Journal) async throws {
            identifiers = try await journal.identifiers().sorted { $0.name < $1.name }
            transfers = try await journal.claim(atMost: .max)
        }
    }

    @Test func `The next agent claims what is not over, and numbers are never reused`() async throws {
        try await Self.with { folder in
            do {
                let journal = try SQLiteJournal(folder: folder)
                let empty = try await Content(journal)
                #expect(empty.identifiers.isEmpty && empty.transfers.isEmpty)
                try await journal.write([.identifier("a", settings: [9], secrets: [8])], mayFail: true)
                let first = try await Self.accept("t1", journal)
                let second = try await Self.accept("t2", journal)
                #expect((first.number, second.number) == (1, 2))
                try await journal.write([.event(first)], mayFail: false)
                try await journal.write([.update(second, state: [5], progress: [])], mayFail: false)
                let receipt = try await journal.write([.acknowledge(sequence: 3, identifier: "a")], mayFail: false)
                #expect(receipt.removed?.id == "t1")
                journal.finish()
            }
            let journal = try await Self.opened(folder)
            let content = try await Content(journal)
            var second = Self.transfer("t2")
            (second.claim, second.state, second.progress) = (.init(number: 2, epoch: 1), [5], [])
            #expect(content.transfers == [second])
            #expect(content.identifiers == [.init(name: "a", settings: [9], secrets: [8])])
            #expect(try await Self.accept("t4", journal).number == 4)
        }
    }

    @Test func `A transfer that is over waits in the journal for its program, and is claimed by no agent`() async throws
    {
        try await Self.with { folder in
            do {
                let journal = try SQLiteJournal(folder: folder)
                for name in ["a", "b"] {
                    try await journal.write([.identifier(name, settings: [], secrets: [])], mayFail: true)
                }
                for number in 1...3 {
                    let claim = try await Self.accept("t\(number)", journal)
                    try await journal.write([.event(claim)], mayFail: false)
                }
                journal.finish()
            }
            let journal = try await Self.opened(folder)
            let content = try await Content(journal)
            #expect(content.transfers.isEmpty && content.identifiers.map(\.undelivered) == [3, 0])
            #expect(try await journal.transfers(of: "a", after: 1, atMost: 1).map(\.id) == ["t2"])
            #expect(try await journal.transfer("t3")?.identifier == "a")
            let sequences = try await journal.sequences(of: "a")
            let later = try await journal.events(of: "a", after: sequences[0], atMost: 5)
            #expect(later.map(\.sequence) == Array(sequences[1...]) && later.map(\.transfer.id) == ["t2", "t3"])
            #expect(try await journal.events(of: "b", after: 0, atMost: 5).isEmpty)
            // An event of another identifier, and one that was acknowledged before.
            for identifier in ["b", "a", "a"] {
                let change = JournalChange.acknowledge(sequence: sequences[0], identifier: identifier)
                let receipt = try await journal.write([change], mayFail: false)
                #expect((receipt.removed != nil) == (identifier == "a" && receipt.removed?.id == "t1"))
            }
            #expect(try await journal.sequences(of: "a").count == 2)
        }
    }

    @Test func `A transfer is accepted once, and an id belongs to one identifier`() async throws {
        try await Self.with { folder in
            let journal = try SQLiteJournal(folder: folder)
            try await Self.accept("t1", journal)
            for identifier in ["a", "b"] {
                let receipt = try await journal.write([.accept(Self.transfer("t1", of: identifier))], mayFail: true)
                #expect(receipt.acceptance == .known(identifier: "a"))
            }
            #expect(try await journal.transfers(of: "a", after: 0, atMost: 5).count == 1)
        }
    }

    @Test func `A group with a stale claim changes nothing, and the agent is told so`() async throws {
        try await Self.with { folder in
            let journal = try SQLiteJournal(folder: folder)
            var claim = try await Self.accept("t1", journal)
            claim.epoch -= 1
            await #expect(throws: JournalFailure.stale) {
                try await journal.write([.accept(Self.transfer("t2")), .event(claim)], mayFail: false)
            }
            #expect(try await journal.transfer("t2") == nil)
            #expect(try await journal.sequences(of: "a").isEmpty)
        }
    }

    @Test func `An identifier without transfers is forgotten when its program leaves`() async throws {
        try await Self.with { folder in
            do {
                let journal = try SQLiteJournal(folder: folder)
                for name in ["a", "b"] {
                    try await journal.write([.identifier(name, settings: [], secrets: [])], mayFail: true)
                }
                try await Self.accept("t1", journal)
                for name in ["a", "b"] { try await journal.write([.leave(identifier: name)], mayFail: false) }
                journal.finish()
            }
            #expect(try await Self.reopened(folder).identifiers.map(\.name) == ["a"])
        }
    }

    @Test func `Erased secrets are in no file of the journal`() async throws {
        try await Self.with { folder in
            let journal = try SQLiteJournal(folder: folder)
            let secret = Array("correct horse battery staple".utf8)
            try await journal.write([.identifier("x", settings: [], secrets: secret)], mayFail: true)
            var transfer = Self.transfer("t1")
            transfer.secrets = secret
            let receipt = try await journal.write([.accept(transfer)], mayFail: true)
            guard case .claimed(let claim)? = receipt.acceptance else { return _ = Issue.record("\(receipt)") }
            try await journal.write([.event(claim)], mayFail: false)
            let sequence = try #require(try await journal.sequences(of: "a").first)
            try await journal.write([.acknowledge(sequence: sequence, identifier: "a")], mayFail: true)
            try await journal.write([.leave(identifier: "x")], mayFail: true)
            journal.finish()
            for name in PrivateFolder.names(folder) {
                let data = try Data(contentsOf: URL(filePath: folder + "/" + name))
                #expect(data.firstRange(of: Data(secret)) == nil, "\(name)")
                var info = stat()
                #expect(stat(folder + "/" + name, &info) == 0 && info.st_mode & 0o077 == 0, "\(name)")
            }
        }
    }

    @Test func `A journal belongs to one agent at a time`() async throws {
        try await Self.with { folder in
            let journal = try SQLiteJournal(folder: folder)
            #expect(throws: JournalFailure.inUse) { try SQLiteJournal(folder: folder) }
            withExtendedLifetime(journal) {}
        }
    }

    @Test func `A journal of a later version is not changed`() async throws {
        try await Self.with { folder in
            try PrivateFolder.make(folder)
            do {
                let database = try Database(path: folder + "/" + SQLiteJournal.fileName)
                try database.execute("PRAGMA user_version = 7")
            }
            let before = try Data(contentsOf: URL(filePath: folder + "/" + SQLiteJournal.fileName))
            #expect(throws: JournalFailure.newer(version: 7)) { try SQLiteJournal(folder: folder) }
            #expect(try Data(contentsOf: URL(filePath: folder + "/" + SQLiteJournal.fileName)) == before)
        }
    }

    @Test func `Groups are written in order, many in one transaction`() async throws {
        try await Self.with { folder in
            do {
                let journal = try SQLiteJournal(folder: folder)
                let claim = try await Self.accept("t1", journal)
                for number in 2..<2_000 as Range<Int64> {
                    journal.write([.update(claim, state: Array("\(number)".utf8), progress: [])], mayFail: false) { _ in
                    }
                }
                // What is read contains the groups that were queued before.
                #expect(try await journal.transfer("t1")?.state == Array("1999".utf8))
                journal.finish()
            }
            let content = try await Self.reopened(folder)
            #expect(content.transfers.first?.state == Array("1999".utf8))
        }
    }

    static func reopened(_ folder: String) async throws -> Content { try await Content(opened(folder)) }

    /// The lock is released with the first journal.
    static func opened(_ folder: String) async throws -> SQLiteJournal {
        var last: (any Error)?
        for _ in 0..<100 {
            do { return try SQLiteJournal(folder: folder) } catch { last = error }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw last ?? JournalFailure.inUse
    }
}
