// SPDX-License-Identifier: Apache-2.0

import Dispatch
import FoundationEssentials
import Testing
import URLLoading

@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct ConnectionTests {
    /// nginx's number of the connection, and of the request on it.
    private func connection(_ session: Session, _ server: String, _ path: String = "/1k.txt") async throws -> (Int, Int)
    {
        let (_, response) = try await session.data(from: Servers.url(server, path))
        let headers = try #require(response.http?.headers)
        return (
            try #require(headers["X-Connection"].flatMap { Int($0) }),
            try #require(headers["X-Requests"].flatMap { Int($0) })
        )
    }

    @Test("One connection serves consecutive loads", arguments: ["NGINX", "NGINX_TLS"])
    func isKept(_ server: String) async throws {
        try await withSession(Servers.configuration) { session in
            let first = try await connection(session, server)
            for request in 2...20 {
                let next = try await connection(session, server)
                #expect(next == (first.0, request))
            }
        }
    }

    @Test("A server may close after each response") func aServerMayCloseAfterEachAnswer() async throws {
        try await withSession(Servers.configuration) { session in
            var seen: Set<Int> = []
            for _ in 0..<5 { seen.insert(try await connection(session, "NGINX_ONCE").0) }
            #expect(seen.count == 5)
        }
    }

    @Test("A connection closed while idle is replaced") func aConnectionClosedWhileIdleIsReplaced() async throws {
        try await withSession(Servers.configuration) { session in
            let first = try await connection(session, "NGINX_IMPATIENT")
            // nginx closes after one second, and somewhat later with its coarse timers.
            try await Task.sleep(for: .seconds(1.5))
            let second = try await connection(session, "NGINX_IMPATIENT")
            #expect(second.0 != first.0)
        }
    }

    @Test("Many concurrent loads share few connections") func manyAtOnceShareFew() async throws {
        var configuration = Servers.configuration
        configuration.connections.maximumPerHost = 4
        try await withSession(configuration) { session in
            let seen = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<200 { group.addTask { try await connection(session, "NGINX").0 } }
                return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
            }
            #expect((1...4).contains(seen.count))
        }
    }

    @Test("A server that closes without a response is an error") func aServerThatClosesWithoutAResponseIsAnError()
        async throws
    {
        try await withSession(Servers.configuration) { session in
            let request = Request(url: try Servers.url("NGINX", "/drop"))
            let fresh = try await failure(session, request)
            #expect(fresh.reason == .connectionLost && fresh.phase == .waiting)
            // On a reused connection the load is retried once.
            _ = try await connection(session, "NGINX")
            let kept = try await failure(session, request)
            #expect(kept.reason == .connectionLost)
        }
    }

    @Test(
        "Invalid responses of real servers have their reasons",
        arguments: [
            ("/garbage", LoadError.Reason.notHTTP), ("/short", .truncated), ("/badgzip", .contentDecodingFailed),
            ("/reset", .connectionLost),
        ])
    func faults(_ path: String, _ reason: LoadError.Reason) async throws {
        try await withSession(Servers.configuration) { session in
            let error = try await failure(session, Request(url: Servers.url("ORIGIN", path)))
            #expect(error.reason == reason)
            #expect(error.party == .remote)
        }
    }

    @Test(
        "A silent server ends in an idle timeout",
        arguments: [("/silent", LoadError.Phase.waiting), ("/stall", .receiving)])
    func idleTimeout(_ path: String, _ phase: LoadError.Phase) async throws {
        try await withSession(Servers.configuration) { session in
            var request = Request(url: try Servers.url("ORIGIN", path))
            request.idleTimeout = .seconds(2)
            let error = try await failure(session, request)
            #expect(error.reason == .idleTimeout && error.phase == phase, "\(error)")
        }
    }

    @Test("A busy program is not a silent server") func aBusyProgramIsNotASilentServer() async throws {
        try await withSession(Servers.configuration) { session in
            var request = Request(url: try Servers.url("ORIGIN", "/late"))
            request.idleTimeout = .seconds(1)
            // The response comes after 0.4 s and is noticed; the load's task gets no thread until the idle timeout is
            // over, because another task computes on the only thread.
            let thread = OneThread()
            try await withThrowingTaskGroup(of: Void.self) { [request] group in
                group.addTask(executorPreference: thread) { _ = try await session.data(for: request) }
                try await Task.sleep(for: .milliseconds(200))
                group.addTask(executorPreference: thread) {
                    let end = ContinuousClock.now + .seconds(2)
                    while ContinuousClock.now < end {}
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("A slow server is not a silent one") func aSlowServerIsNotASilentOne() async throws {
        try await withSession(Servers.configuration) { session in
            // A piece each second for most of a minute: never silent for the length of the idle timeout.
            var request = Request(url: try Servers.url("NGINX", "/slow/1m.bin"))
            request.idleTimeout = .seconds(4)
            request.resourceTimeout = .seconds(5)
            let error = try await failure(session, request)
            #expect(error.reason == .resourceTimeout, "\(error)")
        }
    }
}

/// An executor with a single thread.
private final class OneThread: TaskExecutor {
    private let queue = DispatchQueue(label: "one thread")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
