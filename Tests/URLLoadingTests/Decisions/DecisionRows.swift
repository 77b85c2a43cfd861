// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Decisions that allow, refuse, throw, take long, or never return; in functions, scopes and tasks.
@Suite(.timeLimit(.minutes(4)))
struct DecisionRows {
    enum Shape: CaseIterable, Sendable {
        case verb, scope, task

        /// Runs a load in this form and returns the length of the body.
        func load(_ session: Session, _ request: Request, _ decisions: Decisions? = nil) async throws -> Int {
            switch self {
            case .verb: return try await session.data(for: request, decisions: decisions).0.count
            case .scope:
                return try await session.load(request, decisions: decisions) { _, body in
                    try await body.collect(upTo: 1 << 20).count
                }
            case .task:
                let task = session.dataTask(request, decisions: decisions).resumed()
                return try await task.value.count
            }
        }
    }

    struct Oops: Error {}

    private func withOrigin(_ use: (HTTPTestServer, Session) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 100_000)) }
            origin.route("/moved") { _ in .redirect("/") }
            let session = Session()
            try await use(origin, session)
            // No socket is left after any outcome.
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test(
        "no byte of the body precedes the answer; allow continues and cancel ends the load (checklist 48, 50)",
        arguments: Shape.allCases
    )
    func disposition(_ shape: Shape) async throws {
        try await withOrigin { origin, session in
            let recorder = EventRecorder()
            var configuration = Configuration.default
            configuration.observers = [recorder]
            let watched = Session(configuration)
            for answer in [ResponseDisposition.allow, .cancel] {
                var decisions = Decisions()
                decisions.response = Decision { response in
                    #expect(response.http?.status == .ok && response.expectedLength == 100_000)
                    return answer
                }
                if case .allow = answer {
                    try await expect({ try await shape.load(watched, Request(url: origin.url()), decisions) }, 100_000)
                } else {
                    await expectFailure(.cancelled, .local, .deciding) {
                        try await shape.load(watched, Request(url: origin.url()), decisions)
                    }
                }
            }
            await expectEmpty(watched)
        }
    }

    @Test("a decision that throws ends the load with its error", arguments: Shape.allCases)
    func throwing(_ shape: Shape) async throws {
        try await withOrigin { origin, session in
            var decisions = Decisions()
            decisions.response = Decision { _ in throw Oops() }
            let first = await failure(.decisionFailed, .local, .deciding) {
                try await shape.load(session, Request(url: origin.url()), decisions)
            }
            #expect(first?.underlying is Oops)
            decisions = Decisions()
            decisions.redirect = Decision { _ in throw Oops() }
            await expectFailure(.decisionFailed) {
                try await shape.load(session, Request(url: origin.url("/moved")), decisions)
            }
        }
    }

    @Test("a deadline applies with a fallback and without one, and not if it is met", arguments: Shape.allCases)
    func deadlines(_ shape: Shape) async throws {
        try await withOrigin { origin, session in
            let moved = Request(url: origin.url("/moved"))
            func dawdling(_ limit: Duration, _ fallback: RedirectDecision?) -> Decisions {
                var decisions = Decisions()
                decisions.redirect = Decision(timeout: limit, fallback: fallback) { _ in
                    try await Task.sleep(for: limit < .seconds(1) ? .seconds(3600) : .milliseconds(1))
                    return .follow
                }
                return decisions
            }
            try await expect({ try await shape.load(session, moved, dawdling(.milliseconds(10), .doNotFollow)) }, 0)
            let late = await failure(.decisionTimeout, .local, .deciding) {
                try await shape.load(session, moved, dawdling(.milliseconds(10), nil))
            }
            #expect(late?.detail == "no answer within \(Duration.milliseconds(10))")
            try await expect({ try await shape.load(session, moved, dawdling(.seconds(60), .doNotFollow)) }, 100_000)
            try await eventuallyNoLeaks(session.leakedClosures)
        }
    }

    @Test(
        "the time of a decision does not count as the server's silence, but counts towards the resource timeout",
        arguments: Shape.allCases)
    func time(_ shape: Shape) async throws {
        try await withOrigin { origin, _ in
            let clock = ManualClock()
            let session = Session(.default.with { $0.use(clock) })
            for isWhole in [false, true] {
                let (asked, ask) = AsyncStream.makeStream(of: Void.self)
                let (answered, answer) = AsyncStream.makeStream(of: Void.self)
                var decisions = Decisions()
                decisions.response = Decision { _ in
                    ask.yield()
                    for await _ in answered {}
                    return .allow
                }
                var request = Request(url: origin.url())
                request.resourceTimeout = isWhole ? .seconds(600) : .seconds(10_000)
                let loading = Task { [request, decisions] in try await shape.load(session, request, decisions) }
                for await _ in asked { break }
                // Ten times the idle timeout.
                clock.advance(by: .seconds(600))
                if isWhole { await expectFailure(.resourceTimeout) { try await loading.value } }
                answer.finish()
                if !isWhole { try await expect({ try await loading.value }, 100_000) }
            }
            await expectEmpty(session)
        }
    }

    enum End: CaseIterable, Sendable { case cancel, invalidate, resource }

    @Test("a decision that never returns does not block its load's end", arguments: Shape.allCases, End.allCases)
    func never(_ shape: Shape, _ end: End) async throws {
        try await withOrigin { origin, _ in
            let clock = ManualClock()
            let session = Session(.default.with { $0.use(clock) })
            let (asked, ask) = AsyncStream.makeStream(of: Void.self)
            let (stuck, release) = AsyncStream.makeStream(of: Void.self)
            var decisions = Decisions()
            decisions.response = Decision { _ in
                ask.yield()
                // Ignores its cancellation.
                await Task { for await _ in stuck {} }.value
                return .allow
            }
            var request = Request(url: origin.url())
            request.resourceTimeout = .seconds(60)
            let loading = Task { [request, decisions] in try await shape.load(session, request, decisions) }
            for await _ in asked { break }
            switch end {
            // Waiting for a task does not own it; the session ends the task.
            case .cancel: shape == .task ? session.invalidateAndCancel() : loading.cancel()
            case .invalidate: session.invalidateAndCancel()
            case .resource: clock.advance(by: .seconds(60))
            }
            await expectFailure(end == .resource ? .resourceTimeout : .cancelled) { try await loading.value }
            await expectEmpty(session)
            #expect(session.leakedClosures == 1)
            release.finish()
            try await eventuallyNoLeaks(session.leakedClosures)
        }
    }

    @Test("a load's decision takes precedence over its session's, for each question")
    func precedence() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            origin.route("/moved") { _ in .redirect("/") }
            var ofSession = Decisions()
            ofSession.redirect = Decision { _ in .doNotFollow }
            ofSession.response = Decision { _ in .cancel }
            let session = Session(.default, decisions: ofSession)
            var own = Decisions()
            own.response = Decision { _ in .allow }
            let response = try await session.data(for: Request(url: origin.url("/moved")), decisions: own).1
            #expect(response.http?.status == .found)
            await expectFailure(.cancelled) { try await session.data(from: origin.url()) }
        }
    }

    @Test("decisions, handlers and body sequences run with the caller's task-local values and priority")
    func context() async throws {
        enum Local { @TaskLocal static var name = "nobody" }
        struct Echo: ProtocolHandler {
            func canHandle(_ request: Request) -> Bool { request.url.scheme == "echo" }
            func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
                .response(
                    Response(url: request.url), data: Data("\(Local.name) \(Task.currentPriority == .utility)".utf8))
            }
        }
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok(.bytes($0.body)) }
            let session = Session(.default.with { $0.handlers = [Echo()] })
            let seen = ObserverTests.Box<String>()
            var decisions = Decisions()
            decisions.response = Decision { _ in
                seen.add(Local.name)
                return .allow
            }
            try await Local.$name.withValue("caller") {
                _ = try await session.data(for: Request(url: origin.url()), decisions: decisions)
                var request = Request(url: origin.url(), method: .put)
                request.body = .stream {
                    AsyncStream(unfolding: { seen.all.count == 2 ? nil : Self.note(Local.name, seen) })
                }
                _ = try await session.data(for: request)
            }
            #expect(seen.all == ["caller", "caller"])
            let task = session.dataTask(from: URL(string: "echo:x")!)
            let events = task.events
            Task(priority: .utility) { Local.$name.withValue("resumer") { task.resume() } }
            for await _ in events {}
            try await expect({ try await task.value }, Data("resumer true".utf8))
        }
    }

    private static func note(_ name: String, _ seen: ObserverTests.Box<String>) -> [UInt8] {
        seen.add(name)
        return Array("x".utf8)
    }
}
