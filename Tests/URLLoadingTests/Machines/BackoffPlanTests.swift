// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

@testable import URLLoading

/// The attempts that a policy allows, and their times: a pure function without load, clock or randomness.
@Suite struct BackoffPlanTests {
    private func error(_ reason: LoadError.Reason) -> LoadError { LoadError(reason, phase: .waiting, party: .remote) }

    private func head(_ status: Status, _ fields: Headers = Headers()) -> HTTPHead {
        HTTPHead(status: status, headers: fields)
    }

    private func plan(_ method: Method = .get, _ change: (inout RetryPolicy) -> Void = { _ in }) throws -> BackoffPlan {
        var policy = RetryPolicy()
        change(&policy)
        return BackoffPlan(Request(url: try url("http://a.example/"), method: method), policy, now: 1000)
    }

    @Test("a transient failure is retried; a permanent one, or one of another party, is not")
    func reasons() throws {
        let transient: [LoadError.Reason] = [
            .connectionLost, .truncated, .streamReset, .connectionRefused, .unreachable, .lookupFailed, .idleTimeout,
            .connectTimeout, .ftpServiceUnavailable,
        ]
        #expect(RetryPolicy.transientReasons == Set(transient))
        for reason in transient {
            var plan = try plan()
            let retry = plan.retry(after: error(reason), now: 1000, roll: 0.5)
            #expect(retry?.attempt == 2 && retry?.delay == .milliseconds(500))
            if case .failed(let cause)? = retry?.cause {
                #expect(cause.reason == reason)
            } else {
                Issue.record("\(reason)")
            }
        }
        for reason in [
            LoadError.Reason.hostNotFound, .notHTTP, .certificateUntrusted, .badRequest, .decisionFailed,
            .cannotConnect,
        ] {
            var plan = try plan()
            let retry1 = plan.retry(after: error(reason), now: 1000, roll: 0)
            #expect(retry1 == nil)
        }
        // A caller's own ends, even if a policy names them.
        for reason in [LoadError.Reason.cancelled, .sessionInvalidated, .resourceTimeout] {
            var plan = try plan { $0.reasons = [reason] }
            let retry2 = plan.retry(after: error(reason), now: 1000, roll: 0)
            #expect(retry2 == nil)
        }
    }

    @Test("a policy for every failure retries those that this program has not caused itself")
    func everyFailure() throws {
        for reason in [LoadError.Reason.notHTTP, .streamReset, .certificateNotYetValid, .proxyAuthenticationRequired] {
            var plan = try plan { $0.retriesEveryFailure = true }
            let retry = plan.retry(after: error(reason), now: 1000, roll: 0)
            #expect(retry?.attempt == 2, "\(reason)")
        }
        for reason in [LoadError.Reason.cancelled, .sessionInvalidated, .resourceTimeout, .badRequest] {
            var plan = try plan { $0.retriesEveryFailure = true }
            let own = LoadError(reason, phase: .waiting, party: .local)
            let retry = plan.retry(after: own, now: 1000, roll: 0)
            #expect(retry == nil, "\(reason)")
        }
    }

    @Test("a status is retried only if the policy names it")
    func statuses() throws {
        #expect(RetryPolicy.transientStatuses.map(\.code).sorted() == [408, 429, 500, 502, 503, 504])
        var silent = try plan()
        let retry3 = silent.retry(after: head(.serviceUnavailable), now: 1000, date: date, roll: 0)
        #expect(retry3 == nil)
        var named = try plan { $0.statuses = [.badGateway] }
        let retry4 = named.retry(after: head(.serviceUnavailable), now: 1000, date: date, roll: 0)
        #expect(retry4 == nil)
        let retry = named.retry(after: head(.badGateway), now: 1000, date: date, roll: 0)
        if case .status(.badGateway)? = retry?.cause {} else { Issue.record("\(String(describing: retry))") }
    }

    @Test(
        "only a repeatable request is retried, unless the policy says otherwise",
        arguments: [
            (Method.get, true), (.head, true), (.put, true), (.delete, true), (.options, true), (.trace, true),
            (.post, false), (.patch, false), (.connect, false), ("LOCK", false),
        ])
    func methods(_ method: Method, _ isIdempotent: Bool) throws {
        for includesAll in [false, true] {
            var plan = try plan(method) {
                $0.retriesNonIdempotent = includesAll
                $0.statuses = [.serviceUnavailable]
            }
            let retry5 = plan.retry(after: error(.connectionLost), now: 1000, roll: 0)
            #expect((retry5 != nil) == (isIdempotent || includesAll))
            let retry6 = plan.retry(after: head(.serviceUnavailable), now: 1000, date: date, roll: 0)
            #expect((retry6 != nil) == (isIdempotent || includesAll))
        }
    }

    @Test("the number of attempts is limited", arguments: [-1, 0, 1, 2, 5])
    func attempts(_ maximum: Int) throws {
        var plan = try plan { $0.maximumAttempts = maximum }
        var numbers = [1]
        while let retry = plan.retry(after: error(.connectionLost), now: 1000, roll: 0) {
            numbers.append(retry.attempt)
        }
        #expect(numbers == Array(1...max(1, maximum)))
        #expect(plan.attempts == max(1, maximum))
    }

    @Test("the bound doubles up to its maximum, and jitter chooses below it")
    func exponential() throws {
        for (roll, share) in [(0.0, 0.0), (0.5, 0.5), (0.999, 0.999)] {
            var plan = try plan {
                $0.maximumAttempts = 200
                $0.backoff = .exponential(base: .milliseconds(100), cap: .seconds(3))
            }
            for number in 0..<199 {
                let bound = number < 5 ? 0.1 * Double(1 << number) : 3
                let retry = plan.retry(after: error(.connectionLost), now: 1000, roll: roll)
                let delay = try #require(retry).delay / .seconds(1)
                if abs(delay - bound * share) > 1e-6 { Issue.record("\(number): \(delay), not \(bound * share)") }
            }
        }
    }

    @Test(
        "invalid durations are bounded without a trap",
        arguments: [
            (Duration.zero, Duration.zero, 0.0), (.seconds(-5), .seconds(1), 0), (.seconds(1), .seconds(-5), 0),
            (.seconds(Int64.max), .seconds(2), 1.98), (.seconds(3), .seconds(Int64.max), 2.97),
        ])
    func extremes(_ base: Duration, _ cap: Duration, _ seconds: Double) throws {
        var plan = try plan {
            $0.maximumAttempts = .max
            $0.backoff = .exponential(base: base, cap: cap)
        }
        let retry = plan.retry(after: error(.connectionLost), now: 1000, roll: 0.99)
        let first = try #require(retry).delay / .seconds(1)
        #expect(abs(first - seconds) < 1e-6)
        for _ in 0..<100 { _ = plan.retry(after: error(.connectionLost), now: .max / 2, roll: 0.999) }
        #expect(plan.attempts == 102)
    }

    private let date = HTTPDate(secondsSince1970: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    @Test(
        "Retry-After is added to the wait, unless it is too long",
        arguments: [
            ("5", 5.25), ("0", 0.25), ("60", 60.25), ("61", nil), ("99999999999999999999", nil), ("-1", 0.25),
            ("soon", 0.25), ("1.5", 0.25), ("", 0.25),
            ("Sun, 06 Nov 1994 08:49:47 GMT", 10.25), ("Sun, 06 Nov 1994 08:49:17 GMT", 0.25),
            ("Sun, 06 Nov 1994 09:49:37 GMT", nil),
        ] as [(String, Double?)])
    func retryAfter(_ value: String, _ seconds: Double?) throws {
        var plan = try plan {
            $0.statuses = [.serviceUnavailable]
            $0.backoff = .constant(.milliseconds(250))
        }
        let retry = plan.retry(after: head(.serviceUnavailable, [.retryAfter: value]), now: 1000, date: date, roll: 0.5)
        #expect(retry.map { $0.delay / .seconds(1) } == seconds, "\(value)")
    }

    @Test("a date in Retry-After is relative to the server's clock, if known")
    func serverDate() throws {
        var plan = try plan {
            $0.statuses = [.serviceUnavailable]
            $0.backoff = .constant(.zero)
        }
        let fields: Headers = [.date: "Thu, 01 Jan 2015 00:00:00 GMT", .retryAfter: "Thu, 01 Jan 2015 00:00:07 GMT"]
        let retry7 = plan.retry(after: head(.serviceUnavailable, fields), now: 1000, date: date, roll: 0)
        #expect(retry7?.delay == .seconds(7))
    }

    @Test("no attempt begins after the longest time")
    func duration() throws {
        var plan = try plan {
            $0.maximumAttempts = 100
            $0.maximumDuration = .seconds(10)
            $0.backoff = .constant(.seconds(4))
        }
        let retry8 = plan.retry(after: error(.connectionLost), now: 1000, roll: 0)
        #expect(retry8 != nil)
        let retry9 = plan.retry(after: error(.connectionLost), now: 1000 + 6_000_000_000, roll: 0)
        #expect(retry9 != nil)
        let retry10 = plan.retry(after: error(.connectionLost), now: 1001 + 6_000_000_000, roll: 0)
        #expect(retry10 == nil)
    }

    @Test("a retry describes itself")
    func drawing() throws {
        var plan = try plan { $0.statuses = [.serviceUnavailable] }
        let first = plan.retry(after: head(.serviceUnavailable), now: 1000, date: date, roll: 0.75)
        #expect(first.map { "\($0)" } == "attempt 2 in 0.7 s after 503 Service Unavailable")
        let second = plan.retry(after: error(.connectionLost), now: 1000, roll: 0.5)
        let words = "connectionLost (waiting): the connection was closed before the response"
        #expect(second.map { "\($0)" } == "attempt 3 in 1.0 s after \(words)")
    }
}

/// When a load that could not connect waits for a network.
@Suite struct ConnectivityPlanTests {
    private static let home = NetworkPath(.satisfied, interfaces: [.init(name: "eth0", index: 2, type: .wired)])
    private static let mobile = NetworkPath(.satisfied, interfaces: [.init(name: "wwan0", index: 3, type: .cellular)])
    private static let nothing = NetworkPath(.unsatisfied), unknown = NetworkPath(.unknown)

    private func plan(
        _ reason: LoadError.Reason, _ phase: LoadError.Phase = .connecting, before: NetworkPath? = nil,
        now: NetworkPath,
        waits: Bool = true, cellular: Bool = true
    ) -> ConnectivityPlan {
        let note = RecordedPath()
        if let before { note.note(before) }
        let access = NetworkAccess(allowsCellular: cellular, pathNote: waits ? note : nil)
        return .make(LoadError(reason, phase: phase, party: .system), now: now, access)
    }

    @Test("without a network, a failure that needs one waits for it")
    func reasons() {
        for reason in [LoadError.Reason.unreachable, .lookupFailed, .hostNotFound, .idleTimeout] {
            for phase in [LoadError.Phase.resolving, .connecting] {
                #expect(plan(reason, phase, now: Self.nothing) == .wait)
                #expect(plan(reason, phase, now: Self.home) == .fail)
                #expect(plan(reason, phase, now: Self.unknown) == .fail)
                #expect(plan(reason, phase, now: Self.nothing, waits: false) == .fail)
            }
            for phase in [LoadError.Phase.securing, .sending, .waiting, .receiving] {
                #expect(plan(reason, phase, now: Self.nothing) == .fail)
            }
        }
        for reason in [
            LoadError.Reason.connectionRefused, .connectionLost, .cancelled, .resourceTimeout, .addressRefused, .badURL,
        ] {
            #expect(plan(reason, now: Self.nothing) == .fail)
        }
    }

    @Test("a network that appeared during the failure causes a retry")
    func changed() {
        #expect(plan(.unreachable, before: Self.nothing, now: Self.home) == .tryAgain)
        #expect(plan(.lookupFailed, .resolving, before: Self.mobile, now: Self.home) == .tryAgain)
        #expect(plan(.unreachable, before: Self.home, now: Self.home) == .fail)
        #expect(plan(.unreachable, before: Self.home, now: Self.nothing) == .wait)
    }

    @Test("a network that must not be used counts as none")
    func forbidden() {
        #expect(plan(.notAllowedOnCellularNetwork, now: Self.mobile, cellular: false) == .wait)
        #expect(plan(.unreachable, now: Self.mobile, cellular: false) == .wait)
        #expect(plan(.notAllowedOnCellularNetwork, before: Self.mobile, now: Self.home, cellular: false) == .tryAgain)
        #expect(plan(.notAllowedOnCellularNetwork, now: Self.mobile, waits: false, cellular: false) == .fail)
    }
}
