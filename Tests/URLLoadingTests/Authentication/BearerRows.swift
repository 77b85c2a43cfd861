// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Bearer tokens, renewed once for all waiting loads; netrc in a session. Security 4, 10.
@Suite(.timeLimit(.minutes(4))) struct BearerRows {
    private struct Oops: Error {}

    private func session(
        _ origin: HTTPTestServer, _ token: String?, _ refresh: (@Sendable (Response?) async throws -> String)?
    ) throws -> Session {
        var configuration = Configuration.ephemeral
        configuration.authentication.bearer = try BearerTokens(
            for: [origin.url().absoluteString], token: token, refresh: refresh)
        return Session(configuration)
    }

    @Test func `one refresh serves all waiting loads`() async throws {
        let gate = Gate([.bearer])
        try await withGate(gate) { origin in
            let refusals = Refusals()
            let session = try self.session(origin, "t0") { response in
                refusals.add(response?.http?.status)
                // All requests are refused before there is a new token.
                try await origin.wait { $0.requests >= 6 }
                return "t1"
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 { group.addTask { try await session.expect(origin.url(), "in") } }
                try await group.waitForAll()
            }
            try await session.expect(origin.url(), "in")
            #expect(refusals.all == [.unauthorized] && gate.seen.count == 13)
            await expectEmpty(session)
        }
    }

    /// Without the exception for the closure's own loads, both of them would wait for the token that they get.
    @Test(arguments: ["t0", nil])
    func `a refresh may load with its own session, whose loads then have no token`(token: String?) async throws {
        let gate = Gate([.bearer])
        try await withGate(gate) { origin in
            origin.route("/token") { $0.headers[.authorization] == nil ? .ok("t1") : .status(.unauthorized) }
            let own = Lock<Session?>(nil)
            let session = try self.session(origin, token) { _ in
                let (data, response) = try await own.withLock { $0 }!.data(from: origin.url("/token"))
                try response.requireSuccess()
                return String(decoding: data, as: UTF8.self)
            }
            own.withLock { $0 = session }
            try await session.expect(origin.url(), "in")
            #expect(gate.seen.last == "Bearer t1")
            own.withLock { $0 = nil }
            await expectEmpty(session)
        }
    }

    private final class Refusals: Sendable {
        private let state = Lock<[Status?]>([])
        func add(_ status: Status?) { state.withLock { $0.append(status) } }
        var all: [Status?] { state.withLock { $0 } }
    }

    @Test func `a session handles a missing token, a refused token and a failed refresh`() async throws {
        let gate = Gate([.bearer])
        try await withGate(gate) { origin in
            let first = try session(origin, nil) { $0 == nil ? "t1" : "?" }
            try await first.expect(origin.url(), "in")
            #expect(gate.seen == ["Bearer t1"])
            let bad = try session(origin, "x") { _ in "y" }
            try await bad.expect(origin.url(), "refused")
            #expect(gate.seen.suffix(2) == ["Bearer x", "Bearer y"])
            let none = try session(origin, "x", nil)
            try await none.expect(origin.url(), "refused")
            let failing = try session(origin, "x") { _ in throw Oops() }
            let error = await failure(.decisionFailed, .local, .deciding) { try await failing.data(from: origin.url()) }
            #expect(error?.underlying is Oops)
            for session in [first, bad, none, failing] { await expectEmpty(session) }
        }
        #expect((try? BearerTokens(for: ["ftp://a.test"])) == nil)
    }

    @Test func `a cancelled load does not cancel the refresh; the last one does`() async throws {
        let gate = Gate([.bearer])
        try await withGate(gate) { origin in
            let isCancelled = Flag()
            let session = try session(origin, "t0") { _ in
                do { try await Task.sleep(for: .seconds(3600)) } catch { isCancelled.raise() }
                throw Oops()
            }
            let loads = (0..<2).map { _ in RunningLoad(session, Request(url: origin.url())) }
            // The client may not have received the refusal yet.
            try await session.core.authenticator.bearer?.eventuallyWaiting(2)
            loads[0].task.cancel()
            #expect(await loads[0].reason == .cancelled)
            #expect(!isCancelled.value)
            loads[1].task.cancel()
            #expect(await loads[1].reason == .cancelled)
            try await isCancelled.wait()
            try await eventuallyNoLeaks(session.leakedClosures)
            await expectEmpty(session)
        }
    }

    /// A token read from a file with its line ending cannot be sent, and the request is not sent without it.
    @Test func `an invalid token fails the load instead of sending a request without it`() async throws {
        for bad in ["t1\n", "t 1", "", "t\u{E9}"] {
            #expect(throws: LoadError.self) { try BearerTokens(for: ["http://a.test"], token: bad) }
        }
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("here") }
            let session = try session(origin, nil) { _ in "t1\n" }
            let error = await failure(.badDecision, .local, .deciding) { try await session.data(from: origin.url()) }
            #expect(error?.detail?.contains("t1") == false && origin.requests.isEmpty)
            await expectEmpty(session)
        }
    }

    @Test func `a token is sent to its origins only (security 4)`() async throws {
        try await withHTTPTestServer(answering: "other") { other in
            try await withHTTPTestServer { origin in
                origin.route("/") { _ in .redirect(other.url().absoluteString) }
                let session = try session(origin, "t1", nil)
                try await session.expect(origin.url(), "other")
                #expect(
                    origin.requests.first?.headers[.authorization] == "Bearer t1"
                        && other.requests.first?.headers[.authorization] == nil)
                await expectEmpty(session)
            }
        }
    }

    @Test func `netrc credentials are used for their machine, if enabled (security 10)`() async throws {
        let file = temporaryURL("netrc")
        try Data("machine 127.0.0.1 login ada password s3cret".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let gate = Gate([.basic])
        try await withGate(gate) { origin in
            let session = Session(.ephemeral.with { $0.authentication.netrc = .file(file) })
            try await session.expect(origin.url(), "in")
            #expect(gate.seen.first == "-")
            try await session.expect(try url("http://ada@127.0.0.1:\(origin.port)/"), "in")
            try await session.expect(try url("http://other:x@127.0.0.1:\(origin.port)/"), "refused")
            await expectEmpty(session)
        }
    }
}
