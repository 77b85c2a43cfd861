// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO

@testable import URLLoadingAgent

/// What every journal does: rows that run on SQLite and, where it is installed, on PostgreSQL.
@Suite(.postgres, .timeLimit(.minutes(2))) struct JournalRows {
    enum Kind: Sendable, CaseIterable {
        case sqlite, postgres

        static let here: [Kind] = PostgresServer.isHere ? allCases : [.sqlite]
    }

    /// The place of one journal, which agents open one after the other.
    struct Place: Sendable {
        let kind: Kind
        let text: String

        func open() async throws -> any Journal {
            switch kind {
            case .sqlite: try await JournalTests.opened(text)
            case .postgres: try await PostgresJournal.open(text) { _ in }
            }
        }

        /// Opens the journal for one agent, which ends with the call: another one can then open it.
        func use<R>(_ work: (any Journal) async throws -> R) async throws -> R {
            let journal = try await open()
            let result = try await work(journal)
            try await Self.close(journal)
            return result
        }

        /// Ends the work of an agent with its journal.
        static func close(_ journal: any Journal) async throws {
            _ = await BlockingThreads.files.call(.never) { journal.finish() }
        }
    }

    static func with(_ kind: Kind, _ use: (Place) async throws -> Void) async throws {
        switch kind {
        case .sqlite: try await JournalTests.with { try await use(Place(kind: .sqlite, text: $0)) }
        case .postgres:
            let server = try #require(PostgresServer.current)
            try await use(Place(kind: .postgres, text: server.database()))
        }
    }

    static func transfer(_ name: String, of identifier: String = "a") -> JournaledTransfer {
        JournaledTransfer(
            id: name, identifier: identifier, order: [1, 2], state: [3], progress: Array(name.utf8), secrets: [7])
    }

    static func identify(_ names: [String], _ journal: any Journal) async throws {
        for name in names { try await journal.write([.identifier(name, settings: [9], secrets: [8])], mayFail: true) }
    }

    /// Accepts a transfer, and claims it.
    @discardableResult
    static func accept(_ name: String, of identifier: String = "a", _ journal: any Journal) async throws
        -> TransferClaim
    {
        switch try await journal.write([.accept(transfer(name, of: identifier))], mayFail: true).acceptance {
        case .claimed(let claim)?: return claim
        case .queued?: return try #require(try await journal.claim(.one(id: name)).transfers.first).claim
        case let other: throw JournalFailure.failed("\(other as Any)")
        }
    }

    static func finish(_ claim: TransferClaim, _ journal: any Journal) async throws {
        try await journal.write(
            [.update(claim, state: [5], progress: [], standing: .working), .event(claim)], mayFail: false)
    }

    @Test(
        "The next agent claims what is not over; numbers come from the journal and are never reused",
        arguments: Kind.here)
    func nextAgent(_ kind: Kind) async throws {
        try await Self.with(kind) { place in
            let (second, sequence) = try await place.use { journal in
                #expect(try await journal.claim(.ready(atMost: 10)).transfers.isEmpty)
                try await Self.identify(["a"], journal)
                let first = try await Self.accept("t1", journal)
                let second = try await Self.accept("t2", journal)
                #expect(first.number < second.number)
                try await Self.finish(first, journal)
                let update = JournalChange.update(second, state: [5], progress: [], standing: .working)
                try await journal.write([update], mayFail: false)
                let sequence = try #require(try await journal.sequences(of: "a").first)
                let change = JournalChange.acknowledge(sequence: sequence, identifier: "a")
                let receipt = try await journal.write([change], mayFail: false)
                #expect(receipt.removed?.id == "t1" && receipt.removed?.state == [5])
                try await journal.release([second])
                return (second, sequence)
            }

            let next = try await place.open()
            #expect(
                try await next.identifiers()
                    == [JournaledIdentifier(name: "a", settings: [9], secrets: [8], undelivered: 0)])
            let claimed = try await next.claim(.ready(atMost: 10)).transfers
            var expected = Self.transfer("t2")
            (expected.state, expected.progress) = ([5], [])
            expected.claim = try #require(claimed.first).claim
            #expect(claimed == [expected] && expected.claim.number == second.number)
            let third = try await Self.accept("t3", next)
            #expect(third.number > second.number)
            try await Self.finish(third, next)
            #expect(try await #require(next.sequences(of: "a").first) > sequence)
            try await Place.close(next)
        }
    }

    @Test("A transfer that is over waits for its program, and is claimed by no agent", arguments: Kind.here)
    func over(_ kind: Kind) async throws {
        try await Self.with(kind) { place in
            try await place.use { journal in
                try await Self.identify(["a", "b"], journal)
                for number in 1...3 { try await Self.finish(Self.accept("t\(number)", journal), journal) }
            }

            let next = try await place.open()
            #expect(try await next.claim(.ready(atMost: 10)).transfers.isEmpty)
            let all = try await next.transfers(of: "a", after: 0, atMost: 10)
            #expect(all.map(\.id) == ["t1", "t2", "t3"] && all.allSatisfy { $0.secrets == nil })
            #expect(try await next.transfers(of: "a", after: all[0].claim.number, atMost: 1).map(\.id) == ["t2"])
            #expect(try await next.transfer("t3")?.identifier == "a")
            let sequences = try await next.sequences(of: "a")
            let later = try await next.events(of: "a", after: sequences[0], atMost: 5)
            #expect(later.map(\.sequence) == Array(sequences[1...]) && later.map(\.transfer.id) == ["t2", "t3"])
            #expect(try await next.events(of: "b", after: 0, atMost: 5).isEmpty)
            // An event of another identifier, and one that was acknowledged before.
            var removed: [String?] = []
            for identifier in ["b", "a", "a"] {
                let change = JournalChange.acknowledge(sequence: sequences[0], identifier: identifier)
                removed.append(try await next.write([change], mayFail: false).removed?.id)
            }
            #expect(removed == [nil, "t1", nil])
            #expect(try await next.sequences(of: "a").count == 2)
            #expect(try await next.transfer("t1") == nil)
            try await Place.close(next)
        }
    }

    @Test("A transfer is accepted once, and an id belongs to one identifier", arguments: Kind.here)
    func acceptedOnce(_ kind: Kind) async throws {
        try await Self.with(kind) { place in
            let journal = try await place.open()
            try await Self.identify(["a", "b"], journal)
            try await Self.accept("t1", journal)
            for identifier in ["a", "b"] {
                let receipt = try await journal.write([.accept(Self.transfer("t1", of: identifier))], mayFail: true)
                #expect(receipt.acceptance == .known(identifier: "a"))
            }
            #expect(try await journal.transfers(of: "a", after: 0, atMost: 5).count == 1)
            try await Place.close(journal)
        }
    }

    @Test("A group with a stale claim changes nothing, and the agent is told so", arguments: Kind.here)
    func stale(_ kind: Kind) async throws {
        try await Self.with(kind) { place in
            let journal = try await place.open()
            try await Self.identify(["a"], journal)
            let claim = try await Self.accept("t1", journal)
            let stale = TransferClaim(number: claim.number, epoch: claim.epoch - 1)
            let groups: [[JournalChange]] = [
                [.update(stale, state: [6], progress: [], standing: .working), .event(stale)],
                [.accept(Self.transfer("t2")), .event(stale)], [.order(stale, [6], priority: 1)],
            ]
            for group in groups {
                await #expect(throws: JournalFailure.stale) { try await journal.write(group, mayFail: false) }
            }
            let row = try #require(try await journal.transfer("t1"))
            #expect(row.state == [3] && row.order == [1, 2])
            #expect(try await journal.transfer("t2") == nil)
            #expect(try await journal.sequences(of: "a").isEmpty)
            // The claim itself is as good as before.
            try await Self.finish(claim, journal)
            #expect(try await journal.sequences(of: "a").count == 1)
            try await Place.close(journal)
        }
    }

    @Test("An identifier without transfers is forgotten when its program leaves", arguments: Kind.here)
    func forgotten(_ kind: Kind) async throws {
        try await Self.with(kind) { place in
            try await place.use { journal in
                try await Self.identify(["a", "b"], journal)
                try await Self.accept("t1", journal)
                for name in ["a", "b"] { try await journal.write([.leave(identifier: name)], mayFail: false) }
            }
            let next = try await place.open()
            #expect(try await next.identifiers().map(\.name) == ["a"])
            try await Place.close(next)
        }
    }

    @Test("Groups are written in order, and what is read contains those that were queued before", arguments: Kind.here)
    func order(_ kind: Kind) async throws {
        try await Self.with(kind) { place in
            let journal = try await place.open()
            try await Self.identify(["a"], journal)
            let claim = try await Self.accept("t1", journal)
            for number in 2..<500 {
                let state = Array("\(number)".utf8)
                journal.write([.update(claim, state: state, progress: [], standing: .working)], mayFail: false) { _ in }
            }
            #expect(try await journal.transfer("t1")?.state == Array("499".utf8))
            try await Place.close(journal)
        }
    }
}
