// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// A rate of requests to a server, and a circuit breaker: their values, and the handlers.
@Suite(.timeLimit(.minutes(4)))
struct PacingRows {
    private static let second: Int64 = 1_000_000_000

    // MARK: The pace

    @Test("requests at once have turns one after the other, a burst of them at once") func turns() {
        var pace = RequestPace(perSecond: 2, burst: 3)
        let moments = (0..<6).map { _ in pace.reserve(now: 0) }
        #expect(moments == [0, 0, 0, 500_000_000, 1_000_000_000, 1_500_000_000])
        let later = pace.reserve(now: 60 * Self.second)
        #expect(later == 60 * Self.second)
    }

    @Test("a turn that is given back is free for a later request") func givenBack() {
        var pace = RequestPace(perSecond: 1, burst: 1)
        let first = (pace.reserve(now: 0), pace.reserve(now: 0))
        #expect(first == (0, Self.second))
        pace.giveBack()
        let next = pace.reserve(now: 0)
        #expect(next == Self.second)
    }

    @Test("after a pause requests are sent at the even pace, not as a burst") func pause() {
        var pace = RequestPace(perSecond: 1, burst: 5)
        pace.pause(until: 30 * Self.second)
        let moments = (0..<3).map { _ in pace.reserve(now: 0) }
        #expect(moments == [30 * Self.second, 31 * Self.second, 32 * Self.second])
        // A shorter pause does not end a longer one.
        pace.pause(until: 10 * Self.second)
        #expect(pace.pausedUntil == 30 * Self.second)
    }

    @Test("any numbers are a pace", arguments: [0, -1, .nan, .infinity, 1e-300, 1e300] as [Double])
    func numbers(_ perSecond: Double) {
        var pace = RequestPace(perSecond: perSecond, burst: .max)
        let first = pace.reserve(now: 0)
        #expect(first == 0)
        _ = pace.reserve(now: .max / 2)
    }

    // MARK: The pause that a server asks for

    @Test(
        "the fields of a response that ask for a pause",
        arguments: [
            (429, ["Retry-After": "7"], 7), (503, ["Retry-After": "7"], 7), (200, ["Retry-After": "7"], nil),
            (429, [:], nil), (429, ["Retry-After": "soon"], nil),
            (200, ["RateLimit": "\"default\";r=0;t=30"], 30), (200, ["RateLimit": "\"default\";r=1;t=30"], nil),
            (200, ["RateLimit": "\"a\";r=0;t=3, \"b\";r=0;t=5, \"c\";r=2;t=60"], 5),
            (200, ["RateLimit": "\"default\";r=0"], nil), (200, ["RateLimit": "\"default\";r=0;t=-5"], nil),
            (200, ["RateLimit": "r=0;t=30"], nil), (429, ["RateLimit": "\"d\";r=0;t=9", "Retry-After": "4"], 9),
            (200, ["RateLimit-Remaining": "0", "RateLimit-Reset": "12"], 12),
            (200, ["RateLimit-Remaining": "3", "RateLimit-Reset": "12"], nil),
            (200, ["RateLimit-Remaining": "0", "RateLimit-Reset": "-1"], nil),
            (200, ["RateLimit-Remaining": "0", "RateLimit-Reset": "-9999999999"], nil),
        ] as [(Int, [String: String], Int64?)])
    func asked(_ status: Int, _ fields: [String: String], _ seconds: Int64?) throws {
        var headers = Headers()
        for (name, value) in fields { headers.append(FieldName(name), value) }
        let head = HTTPHead(status: try #require(Status(status)), headers: headers)
        #expect(ServerPause.seconds(head) == seconds)
    }

    // MARK: The circuit

    @Test("failures in a row open a circuit; after the pause one request decides") func circuit() {
        var circuit = Circuit()
        func end(_ outcome: Circuit.Outcome, _ now: Int64) {
            circuit.conclude(outcome, limit: 3, pause: 10, now: now)
        }
        end(.failure, 0)
        end(.failure, 0)
        end(.success, 0)
        #expect(circuit == Circuit())
        for _ in 0..<3 { end(.failure, 1) }
        #expect(circuit.state == .open(until: 11))
        // Requests that were made before the pause began.
        end(.success, 2)
        let early = circuit.admits(now: 10)
        #expect(!early)
        let admitted = (circuit.admits(now: 11), circuit.admits(now: 11))
        #expect(admitted == (true, false))
        end(.none, 12)
        let next = (circuit.admits(now: 12), circuit.admits(now: 12))
        #expect(next == (true, false))
        end(.failure, 13)
        #expect(circuit.state == .open(until: 23))
        let last = circuit.admits(now: 23)
        #expect(last)
        end(.success, 24)
        #expect(circuit == Circuit())
    }

    // MARK: Loads

    /// A session whose clock the test advances.
    private func rig(_ handler: any ProtocolHandler) -> (Session, ManualClock) {
        let clock = ManualClock()
        var configuration = Configuration.ephemeral
        configuration.use(clock)
        configuration.handlers = [handler]
        return (Session(configuration), clock)
    }

    @Test("a rate holds requests back, is seen in the statistics, and gives the turn of a cancelled load back")
    func rate() async throws {
        try await withHTTPTestServer(answering: "x") { origin in
            let (session, clock) = rig(RequestRate(perSecond: 1))
            try await session.expect(origin.url(), "x")
            let second = session.dataTask(from: origin.url())
            second.resume()
            try await clock.untilSleeping()
            #expect(origin.requests.count == 1)
            #expect(session.openMetrics().contains("urlloading_rate_limited_requests{host="))
            second.cancel()
            await expectFailure(.cancelled) { try await second.value }
            async let third = session.text(origin.url())
            try await clock.untilSleeping()
            clock.advance(by: .seconds(1))
            #expect(try await third == "x")
            #expect(origin.requests.count == 2)
            session.invalidateAndCancel()
        }
    }

    @Test("a server's pause holds the requests to it, and one that would wait too long fails at once")
    func serverPause() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(.tooManyRequests, headers: [.retryAfter: "20"]) }
            origin.route("/later") { _ in .ok("x") }
            let handler = RequestRate(perSecond: 1_000, maximumWait: .seconds(30))
            let (session, clock) = rig(handler)
            _ = try await session.data(from: origin.url())
            async let later = session.text(origin.url("/later"))
            try await clock.untilSleeping()
            clock.advance(by: .seconds(20))
            #expect(try await later == "x")
            clock.advance(by: .seconds(1))
            origin.route("/") { _ in .status(.tooManyRequests, headers: [.retryAfter: "40"]) }
            _ = try await session.data(from: origin.url())
            await expectFailure(.rateLimited, .local, .preparing) { try await session.data(from: origin.url("/later")) }
            #expect(origin.requests.count == 3)
            session.invalidateAndCancel()
        }
    }

    @Test("no number that a server sends as a pause ends the process", arguments: ["-", ""], ["RateLimit-Reset", "t"])
    func extremePauses(_ sign: String, _ name: String) async throws {
        let number = sign + "999999999999999"
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                name == "t"
                    ? .ok("x", headers: ["RateLimit": "a;r=0;t=\(number)"])
                    : .ok("x", headers: ["RateLimit-Remaining": "0", FieldName(name): number])
            }
            let (session, _) = rig(RequestRate(perSecond: 1_000, maximumWait: .seconds(30)))
            try await session.expect(origin.url(), "x")
            if sign.isEmpty {
                await expectFailure(.rateLimited, .local, .preparing) { try await session.data(from: origin.url()) }
            }
            session.invalidateAndCancel()
        }
    }

    @Test("each attempt of a policy has its turn") func attempts() async throws {
        try await withHTTPTestServer { origin in
            RetryRows.serve(origin, [.serviceUnavailable, .ok])
            let clock = ManualClock()
            var configuration = Configuration.ephemeral
            configuration.use(clock)
            configuration.handlers = [RequestRate(perSecond: 1)]
            var policy = RetryPolicy()
            (policy.backoff, policy.statuses) = (.constant(.zero), RetryPolicy.transientStatuses)
            configuration.retries.policy = policy
            let session = Session(configuration)
            async let text = session.text(origin.url())
            try await clock.untilSleeping()
            #expect(origin.requests.count == 1)
            clock.advance(by: .seconds(1))
            #expect(try await text == "2")
            session.invalidateAndCancel()
        }
    }

    @Test("a response that a policy retries pauses the other loads too") func retriedPause() async throws {
        try await withHTTPTestServer { origin in
            let attempts = Watched(0)
            origin.route("/") { _ in
                attempts.add()
                return attempts.value == 1
                    ? .status(.serviceUnavailable, headers: [.retryAfter: "20"]) : .ok("again")
            }
            origin.route("/other") { _ in .ok("other") }
            let (session, clock) = rig(RequestRate(perSecond: 1_000, maximumWait: .seconds(30)))
            var request = Request(url: origin.url())
            request.retryPolicy = RetryPolicy()
            request.retryPolicy?.backoff = .constant(.zero)
            request.retryPolicy?.statuses = [.serviceUnavailable]
            let retried = session.dataTask(request)
            retried.resume()
            try await clock.untilSleeping()
            async let other = session.text(origin.url("/other"))
            try await clock.untilSleeping(2)
            #expect(origin.requests.map(\.path) == ["/"])
            clock.advance(by: .seconds(20))
            #expect(try await other == "other")
            while origin.requests.count < 3 {
                clock.advance(by: .seconds(1))
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(String(decoding: try await retried.value, as: UTF8.self) == "again")
            session.invalidateAndCancel()
        }
    }

    @Test("a circuit breaker makes no requests to a server that failed, and one after the pause")
    func breaker() async throws {
        try await withHTTPTestServer { origin in
            RetryRows.serve(origin, [.internalServerError, .badGateway, .ok])
            let handler = CircuitBreaker(failures: 2, pause: .seconds(10))
            let (session, clock) = rig(handler)
            for _ in 0..<2 { _ = try await session.data(from: origin.url()) }
            await expectFailure(.circuitOpen, .local, .preparing) { try await session.data(from: origin.url()) }
            #expect(origin.requests.count == 2)
            #expect(session.openMetrics().contains("urlloading_circuit_open{host="))
            #expect("\(handler)".hasPrefix("open: http://"))
            clock.advance(by: .seconds(10))
            try await session.expect(origin.url(), "3")
            try await session.expect(origin.url(), "4")
            #expect("\(handler)" == "all closed")
            session.invalidateAndCancel()
        }
    }
}
