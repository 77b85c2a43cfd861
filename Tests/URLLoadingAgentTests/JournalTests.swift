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

    /// What a journal has for the agent that has opened it.
    struct Content: Equatable {
        let identifiers: [JournaledIdentifier]
        let transfers: [JournaledTransfer]

        init(_ journal: some Journal) async throws {
            identifiers = try await journal.identifiers().sorted { $0.name < $1.name }
            transfers = try await journal.claim(.ready(atMost: .max)).transfers
        }
    }

    @Test func `Erased secrets are in no file of the journal`() async throws {
        try await Self.with { folder in
            let journal = try SQLiteJournal(folder: folder)
            let secret = Array("correct horse battery staple".utf8)
            try await journal.write([.identifier("x", settings: [], secrets: secret)], mayFail: true)
            var transfer = JournalRows.transfer("t1")
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

    @Test func `The last of many groups that were written together is found by the next agent`() async throws {
        try await Self.with { folder in
            do {
                let journal = try SQLiteJournal(folder: folder)
                let claim = try await JournalRows.accept("t1", journal)
                for number in 2..<2_000 {
                    let state = Array("\(number)".utf8)
                    journal.write([.update(claim, state: state, progress: [], standing: .working)], mayFail: false) {
                        _ in
                    }
                }
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
