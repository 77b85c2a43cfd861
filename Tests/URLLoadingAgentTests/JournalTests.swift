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

    static func transfer(_ number: Int64) -> JournaledTransfer {
        JournaledTransfer(
            id: "t\(number)", number: number, identifier: "a", order: [1, 2], state: [3], progress: [UInt8(number)])
    }

    @Test func `The next agent finds the journal's content, and numbers are never reused`() async throws {
        try await Self.with { folder in
            do {
                let journal = try SQLiteJournal(folder: folder)
                #expect(
                    journal.takeContent()
                        == {
                            var empty = JournalContent(); empty.nextNumber = 1; return empty
                        }())
                try await journal.write(
                    [
                        .identifier("a", settings: [9]), .transfer(Self.transfer(1)), .transfer(Self.transfer(2)),
                        .secrets(owner: "transfer t1", [7]),
                        .event(.init(sequence: 3, identifier: "a", transfer: "t1")),
                    ], mayFail: true)
                try await journal.write([.update(number: 2, state: [5], progress: [])], mayFail: false)
                try await journal.write(
                    [.removeEvent(sequence: 3), .removeTransfer(id: "t1"), .removeSecrets(owner: "transfer t1")],
                    mayFail: false)
                journal.finish()
            }
            let content = try Self.reopened(folder)
            var second = Self.transfer(2)
            (second.state, second.progress) = ([5], [])
            #expect(content.transfers == [second])
            #expect(content.identifiers == ["a": [9]] && content.secrets.isEmpty && content.events.isEmpty)
            #expect(content.nextNumber == 4)
        }
    }

    @Test func `Erased secrets are in no file of the journal`() async throws {
        try await Self.with { folder in
            let journal = try SQLiteJournal(folder: folder)
            let secret = Array("correct horse battery staple".utf8)
            try await journal.write([.secrets(owner: "x", secret)], mayFail: true)
            try await journal.write([.removeSecrets(owner: "x")], mayFail: true)
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
                try await journal.write([.transfer(Self.transfer(1))], mayFail: true)
                for number in 2..<2_000 as Range<Int64> {
                    journal.write([.update(number: 1, state: Array("\(number)".utf8), progress: [])], mayFail: false) {
                        _ in
                    }
                }
                try await journal.write([], mayFail: false)
                journal.finish()
            }
            let content = try Self.reopened(folder)
            #expect(content.transfers.first?.state == Array("1999".utf8))
        }
    }

    /// The lock is released with the first journal.
    static func reopened(_ folder: String) throws -> JournalContent {
        var last: (any Error)?
        for _ in 0..<100 {
            do { return try #require(try SQLiteJournal(folder: folder).takeContent()) } catch { last = error }
            usleep(10_000)
        }
        throw last ?? JournalFailure.inUse
    }
}
