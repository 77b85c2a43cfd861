// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// For every fault of a server a load ends with a matching error, and no socket is left.
@Suite(.timeLimit(.minutes(4)))
struct FTPFaultRows {
    struct Case: Sendable, CustomTestStringConvertible {
        let faults: [FTPFault]
        let reason: LoadError.Reason
        var path = "/a"
        var testDescription: String { "\(faults)" }

        init(_ faults: FTPFault..., ends reason: LoadError.Reason, path: String = "/a") {
            (self.faults, self.reason, self.path) = (faults, reason, path)
        }
    }

    static let verbs = ["", "USER", "PASS", "FEAT", "OPTS", "TYPE", "SIZE", "MDTM", "EPSV", "RETR"]

    static let cases: [Case] =
        verbs.map { Case(.close(at: $0), ends: .connectionLost) }
        + verbs.map { Case(.reply(to: $0, "421 closing\r\n"), ends: .ftpServiceUnavailable) }
        + verbs.map { Case(.reply(to: $0, "hello\r\n"), ends: .malformedFTPReply) }
        + verbs.map { Case(.endlessReply(to: $0), ends: .ftpReplyTooLarge) }
        + [
            Case(.reply(to: "", "530 full\r\n"), ends: .ftpServiceUnavailable),
            Case(.reply(to: "", String(repeating: "120 soon\r\n", count: 100)), ends: .unexpectedFTPReply),
            Case(.reply(to: "RETR", String(repeating: "150 go\r\n", count: 100)), ends: .unexpectedFTPReply),
            Case(.reply(to: "PASS", "530 no\r\n"), ends: .userAuthenticationRequired),
            Case(.reply(to: "TYPE", "504 no\r\n"), ends: .ftpCommandRefused),
            Case(.reply(to: "EPSV", "229 (|||0|)\r\n"), ends: .unexpectedFTPReply),
            Case(.reply(to: "EPSV", "229 here\r\n"), ends: .unexpectedFTPReply),
            Case(
                .reply(to: "EPSV", "522 no\r\n"), .reply(to: "PASV", "227 (1,2,3,4,5,999)\r\n"),
                ends: .unexpectedFTPReply),
            Case(.reply(to: "EPSV", "522 no\r\n"), .reply(to: "PASV", "502 no\r\n"), ends: .ftpCommandRefused),
            Case(.reply(to: "RETR", "425 no data connection\r\n"), ends: .cannotConnect),
            Case(.reply(to: "RETR", "450 busy\r\n"), ends: .ftpCommandRefused),
            Case(.reply(to: "RETR", "226 done\r\n"), ends: .ftpCommandRefused),
            Case(.shortData(3), ends: .truncated), Case(.abortsData(after: 3), ends: .truncated),
            Case(.wrongSize(20), ends: .truncated), Case(.wrongSize(3), ends: .fileChanged),
            Case(.wrongSize(.max), ends: .truncated), Case(.wrongSize(.max - 1), ends: .truncated),
            Case(.abortsData(after: 3), ends: .truncated, path: "/"),
        ]

    @Test("a part whose end is the largest number is one like another, at a server that tells no sizes")
    func largestRange() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            var outcomes: [String] = []
            for end in ["99", "\(Int64.max)"] {
                server.inject(.reply(to: "SIZE", "550 no\r\n"))
                let session = Session(.ephemeral)
                var request = Request(url: server.url("/a"))
                request.headers[.range] = "bytes=0-\(end)"
                do throws(LoadError) {
                    let (data, _) = try await session.data(for: request)
                    outcomes.append(String(decoding: data, as: UTF8.self))
                } catch { outcomes.append("\(error.reason)") }
                session.invalidateAndCancel()
            }
            #expect(outcomes[0] == outcomes[1])
        }
    }

    @Test("an invalid reply ends the load with its reason", arguments: cases)
    func wrong(_ row: Case) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            for fault in row.faults { server.inject(fault) }
            let session = Session(.ephemeral)
            await expectFailure(row.reason) { try await session.data(from: server.url(row.path)) }
            await expectEmpty(session)
            try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
        }
    }

    @Test(
        "silence ends the load with the idle timeout",
        arguments: verbs.map { FTPFault.stall(at: $0) } + [.ignoresData, .stallsData(after: 3), .neverCompletes])
    func silence(_ fault: FTPFault) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            server.inject(fault)
            let clock = ManualClock()
            let session = Session(.ephemeral.with { $0.use(clock) })
            let load = RunningLoad(session, Request(url: server.url("/a")))
            try await server.wait { $0.stalled == 1 }
            try await clock.untilWaiting()
            clock.advance(by: .seconds(60))
            #expect(await load.reason == .idleTimeout)
            await expectEmpty(session)
            try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
        }
    }

    @Test(
        "a load can be cancelled at every step",
        arguments: verbs.map { FTPFault.stall(at: $0) } + [.ignoresData, .stallsData(after: 3), .neverCompletes],
        [Ending.task, .invalidation])
    func cancelled(_ fault: FTPFault, _ ending: Ending) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("0123456789".utf8))
            server.inject(fault)
            let session = Session(.patient)
            let load = RunningLoad(session, Request(url: server.url("/a")))
            try await server.wait { $0.stalled == 1 }
            ending.apply(load, session)
            #expect(await load.reason == .cancelled)
            await expectEmpty(session)
            try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
        }
    }

    @Test(
        "an early 226, a foreign data address (security 60) and a multi-line greeting are accepted")
    func harmless() async throws {
        let faults: [FTPFault] = [
            .completesBeforeData, .foreignPassiveAddress,
            .reply(to: "", "220-one\r\n 220 two\r\n220-three\r\n220 four\r\n"),
        ]
        for fault in faults {
            try await withFTPTestServer { server in
                server.put("a", Data("0123456789".utf8))
                server.inject(fault)
                let session = Session(.ephemeral)
                try await session.expect(server.url("/a"), "0123456789")
                try await session.expect(server.url("/a"), "0123456789")
                #expect(server.counts.accepted == 1, "\(fault)")
                await expectEmpty(session)
                try await server.wait { $0.open == 0 && $0.openTransfers == 0 }
            }
        }
    }

    @Test(
        "an idle connection that was closed, or replies 421, is replaced without further effect",
        arguments: [FTPFault.refusesReuse, .closeOnce(at: "SIZE")])
    func stale(_ fault: FTPFault) async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            let session = Session(.ephemeral)
            try await session.expect(server.url("/a"), "hello")
            server.inject(fault)
            try await session.expect(server.url("/a"), "hello")
            #expect(server.counts.accepted == 2)
            // The server was gone before.
            server.removeFaults()
            server.closeConnections()
            try await server.wait { $0.open == 0 }
            try await session.expect(server.url("/a"), "hello")
            #expect(server.counts.accepted == 3)
            await expectEmpty(session)
        }
    }
}
