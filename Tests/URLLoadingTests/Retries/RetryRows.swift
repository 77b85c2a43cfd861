// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Retries by a policy (checklist 162).
@Suite(.timeLimit(.minutes(4)))
struct RetryRows {
    /// A session whose clock the test advances, with a policy that waits seven seconds.
    struct Rig {
        let clock = ManualClock()
        let recorder = EventRecorder()
        let session: Session

        init(
            _ change: (inout RetryPolicy) -> Void = { _ in }, configure: (inout Configuration) -> Void = { _ in }
        ) {
            var policy = RetryPolicy()
            policy.backoff = .constant(.seconds(7))
            policy.statuses = RetryPolicy.transientStatuses
            change(&policy)
            var configuration = Configuration.ephemeral
            configuration.use(clock)
            configuration.observers = [recorder]
            configuration.retries.policy = policy
            // The networks of this machine may change during the test.
            configuration.networkMonitor = SwitchedNetwork(isUp: true).monitor
            configure(&configuration)
            session = Session(configuration)
        }

        /// Waits until the delay before a retry has begun, and then until it is over.
        func passWaits(_ count: Int, from first: Int = 1, of length: Duration = .seconds(7)) async throws {
            for number in first..<first + count {
                try await recorder.wait(for: .retrying, count: number)
                try await clock.untilSleeping()
                clock.advance(by: length)
            }
        }

        var story: [String] { recorder.loads.map { $0.description.split(separator: ": ").last.map(String.init) ?? "" } }
        var retries: [Retry] {
            recorder.loads.flatMap(\.events).compactMap { event in
                guard case .retrying(let retry) = event else { return nil }
                return retry
            }
        }
    }

    /// Answers each request with the next status, and repeats the last one; the body contains the number of the
    /// request.
    static func serve(_ origin: HTTPTestServer, _ statuses: [Status], fields: Headers = Headers()) {
        origin.route("/*") { [weak origin] _ in
            let number = origin?.requests.count ?? 0
            let status = statuses[min(number, statuses.count) - 1]
            return .status(status, headers: status == .ok ? Headers() : fields, body: .bytes(Array("\(number)".utf8)))
        }
    }

    @Test("a transient status is retried until it has passed")
    func statuses() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.serviceUnavailable, .tooManyRequests, .ok])
            let rig = Rig()
            async let text = rig.session.text(origin.url())
            try await rig.recorder.wait(for: .retrying)
            try await rig.clock.untilSleeping()
            rig.clock.advance(by: .milliseconds(6999))
            try await rig.clock.untilSleeping()
            #expect(origin.requests.count == 1)
            rig.clock.advance(by: .milliseconds(1))
            try await rig.passWaits(1, from: 2)
            #expect(try await text == "3")
            #expect(
                rig.retries.map { "\($0)" } == [
                    "attempt 2 in 7.0 s after 503 Service Unavailable",
                    "attempt 3 in 7.0 s after 429 Too Many Requests",
                ])
            #expect(rig.story == ["retrying responded received metrics completed, 200, 1 bytes"])
            // A response that was read completely does not require another connection.
            #expect(origin.counts.accepted == 1)
            await expectEmpty(rig.session)
        }
    }

    @Test("after the last attempt the caller gets the response", arguments: [1, 2, 3])
    func lastResponse(_ attempts: Int) async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.badGateway])
            let rig = Rig({ $0.maximumAttempts = attempts })
            async let loaded = rig.session.data(from: origin.url())
            try await rig.passWaits(attempts - 1)
            let (data, response) = try await loaded
            #expect(response.http?.status == .badGateway && String(decoding: data, as: UTF8.self) == "\(attempts)")
            #expect(origin.requests.count == attempts)
        }
    }

    static let losses: [(HTTPTestServer.Fault, LoadError.Reason)] = [
        (.init(.accept, .reset), .connectionLost), (.init(.requestHead, .close), .truncated),
        (.init(.responseHead(after: 9), .reset), .connectionLost), (.init(.responseHead(after: 9), .close), .truncated),
        (.init(.requestHead, .stall), .idleTimeout),
    ]

    @Test("failures before the response are retried", arguments: losses, [Verb.data, .value])
    func failures(_ failure: (fault: HTTPTestServer.Fault, reason: LoadError.Reason), _ verb: Verb) async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            for connection in 1...2 { origin.inject(failure.fault, onConnection: connection) }
            let rig = Rig()
            async let count = verb.run(rig.session, Request(url: origin.url()))
            for number in 1...2 {
                if failure.reason == .idleTimeout {
                    try await origin.wait { $0.accepted == number && $0.stalled == 1 }
                    try await rig.clock.untilWaiting()
                    rig.clock.advance(by: .seconds(60))
                }
                try await rig.passWaits(1, from: number)
            }
            #expect(try await count == 5)
            #expect(rig.retries.count == 2)
            for retry in rig.retries {
                guard case .failed(let error) = retry.cause else { throw Unexpectedly("\(retry)") }
                // The system's error for a closed connection depends on the order of events.
                if failure.reason == .idleTimeout {
                    #expect(error.reason == .idleTimeout)
                } else {
                    #expect(error.reason == .connectionLost || error.reason == .truncated, "\(error)")
                }
            }
            await expectEmpty(rig.session)
        }
    }

    @Test("refused connections and failed lookups are retried, and the last error is thrown")
    func lastError() async throws {
        let port = try closedPort()
        let refused = Rig()
        async let first = failure(.connectionRefused) {
            try await refused.session.data(from: url("http://127.0.0.1:\(port)/"))
        }
        try await refused.passWaits(2)
        #expect(await first?.url?.port == Int(port))
        let resolver = ScriptedResolver { _ in ScriptedResolver.failure }
        let lookup = Rig(configure: { $0.networks.resolver = resolver })
        async let second = failure(.lookupFailed) { try await lookup.session.data(from: url("http://a.example/")) }
        try await lookup.passWaits(2)
        _ = await second
        #expect(resolver.asked == 3)
    }

    @Test("without a policy, with a policy of one attempt, and for a final failure there is one attempt")
    func never() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.serviceUnavailable])
            try await withSession(.ephemeral) { session in
                let (_, response) = try await session.data(from: origin.url())
                #expect(response.http?.status == .serviceUnavailable && origin.requests.count == 1)
            }
            let rig = Rig()
            var request = Request(url: origin.url())
            request.retryPolicy = .never
            _ = try await rig.session.data(for: request)
            #expect(origin.requests.count == 2)
            request = Request(url: origin.url(), method: .post, body: .data(Data([1])))
            _ = try await rig.session.data(for: request)
            #expect(origin.requests.count == 3)
            // The request's policy takes precedence over the session's.
            var policy = RetryPolicy(maximumAttempts: 2)
            policy.statuses = [.serviceUnavailable]
            policy.retriesNonIdempotent = true
            policy.backoff = .constant(.zero)
            request.retryPolicy = policy
            _ = try await rig.session.data(for: request)
            #expect(origin.requests.count == 5)
        }
    }

    @Test(
        "a load whose idle timeout was revoked still has its resource timeout, and can be cancelled",
        arguments: [false, true])
    func forgiven(_ isCancelled: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.inject(.init(.requestHead, .stall))
            let rig = Rig({ $0.maximumAttempts = 100 })
            var request = Request(url: origin.url())
            request.idleTimeout = .seconds(10)
            request.resourceTimeout = .seconds(60)
            let load = RunningLoad(rig.session, request, verb: .value)
            for number in 1...3 {
                try await origin.wait { $0.accepted == number && $0.stalled == 1 }
                try await rig.clock.untilWaiting()
                rig.clock.advance(by: .seconds(10))
                try await rig.passWaits(1, from: number)
            }
            try await origin.wait { $0.accepted == 4 && $0.stalled == 1 }
            try await rig.clock.untilWaiting()
            rig.clock.advance(by: .seconds(8))
            #expect(rig.retries.count == 3 && rig.recorder.loads.allSatisfy { !$0.isComplete })
            if isCancelled { load.task.cancel() } else { rig.clock.advance(by: .seconds(1)) }
            #expect(await load.reason == (isCancelled ? .cancelled : .resourceTimeout))
            await expectEmpty(rig.session)
        }
    }

    @Test("a failure after the response is delivered to the caller")
    func body() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 3), .close)]) { _ in .ok("hello") }
            let rig = Rig()
            await expectFailure(.truncated) { try await rig.session.data(from: origin.url()) }
            #expect(origin.requests.count == 1 && rig.retries.isEmpty)
        }
    }

    @Test("Retry-After is waited for, unless it exceeds the limit: then the response is delivered")
    func retryAfter() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.serviceUnavailable, .ok], fields: [.retryAfter: "30"])
            let patient = Rig()
            async let text = patient.session.text(origin.url())
            try await patient.recorder.wait(for: .retrying)
            try await patient.clock.untilSleeping()
            patient.clock.advance(by: .seconds(36))
            try await patient.clock.untilSleeping()
            #expect(origin.requests.count == 1)
            patient.clock.advance(by: .seconds(1))
            #expect(try await text == "2")
        }
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.serviceUnavailable, .ok], fields: [.retryAfter: "61"])
            let (_, response) = try await Rig().session.data(from: origin.url())
            #expect(response.http?.status == .serviceUnavailable)
        }
    }

    @Test("the resource timeout covers all attempts, and the idle timeout does not run between them")
    func timeouts() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.serviceUnavailable])
            let rig = Rig({ $0.backoff = .constant(.seconds(600)) })
            var request = Request(url: origin.url())
            request.idleTimeout = .seconds(1)
            request.resourceTimeout = .seconds(900)
            let sent = request
            async let error = failure(.resourceTimeout) { try await rig.session.data(for: sent) }
            try await rig.passWaits(1, of: .seconds(600))
            try await rig.recorder.wait(for: .retrying, count: 2)
            try await rig.clock.untilSleeping()
            rig.clock.advance(by: .seconds(300))
            #expect(await error?.url == request.url)
            #expect(origin.requests.count == 2)
            await expectEmpty(rig.session)
        }
    }

    @Test("a delay between attempts can be cancelled", arguments: [Ending.task, .invalidation], Verb.allCases)
    func endings(_ ending: Ending, _ verb: Verb) async throws {
        try await withHTTPTestServer { origin in
            for endsOnPathChange in [false, true] {
                origin.route("/", faults: [.init(.responseHead(after: 0), .close)]) { _ in .ok("") }
                let network = SwitchedNetwork(isUp: true)
                let rig = Rig(
                    { $0.retriesOnNetworkChange = endsOnPathChange }, configure: { $0.networkMonitor = network.monitor }
                )
                let load = RunningLoad(rig.session, Request(url: origin.url()), verb: verb)
                try await rig.recorder.wait(for: .retrying)
                try await rig.clock.untilSleeping()
                #expect(network.kernel.open == (endsOnPathChange ? 1 : 0))
                ending.apply(load, rig.session)
                #expect(await load.reason == .cancelled)
                await expectEmpty(rig.session)
                #expect(network.kernel.open == 0 && rig.clock.time.sleeping == 0)
            }
        }
    }

    @Test("a suspended load makes no attempt", arguments: [false, true])
    func suspension(_ endsOnPathChange: Bool) async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            origin.inject(.init(.requestHead, .close), onConnection: 1)
            let rig = Rig({ $0.retriesOnNetworkChange = endsOnPathChange })
            let task = rig.session.dataTask(from: origin.url()).resumed()
            try await rig.recorder.wait(for: .retrying)
            try await rig.clock.untilSleeping()
            task.suspend()
            rig.clock.advance(by: .seconds(100))
            try await rig.clock.time.eventuallySleeping { $0 == 0 }
            try await pollerHasRun()
            #expect(origin.counts.accepted == 1)
            task.resume()
            #expect(try await task.value.count == 5)
            #expect(origin.counts.accepted == 2)
        }
    }

    @Test("a network that appears or changes ends the delay after an error; one that disappears does not")
    func pathChange() async throws {
        let resolver = ScriptedResolver { $0 < 3 ? ScriptedResolver.failure : ScriptedResolver.here }
        try await withHTTPTestServer(answering: "hello") { origin in
            let network = SwitchedNetwork(isUp: true)
            let rig = Rig(configure: {
                $0.networkMonitor = network.monitor
                $0.networks.resolver = resolver
            })
            async let text = rig.session.text(url("http://a.example:\(origin.port)/"))
            try await rig.recorder.wait(for: .retrying)
            try await rig.clock.untilSleeping()
            network.addUnroutedLink()
            network.goDown()
            // A path that is gone before the load's task has run is never seen.
            for _ in 1...50 { try await pollerHasRun() }
            #expect(resolver.asked == 1)
            network.goUp()
            try await rig.recorder.wait(for: .retrying, count: 2)
            try await rig.clock.untilSleeping()
            network.exchange(for: "wlan0")
            #expect(try await text == "hello")
            #expect(resolver.asked == 3 && rig.clock.elapsed == .zero)
            await expectEmpty(rig.session)
            #expect(network.kernel.open == 0)
        }
    }

    /// On a busy machine the network may have changed before the load waits.
    @Test("a network that changes as soon as a retry is announced ends the delay")
    func pathChangeUponAnnouncement() async throws {
        struct Changing: LoadObserver {
            let network: SwitchedNetwork
            func observe(_ event: LoadEvent, of load: LoadIdentity) {
                if case .retrying = event { network.exchange(for: "wlan0") }
            }
        }
        let resolver = ScriptedResolver { $0 < 2 ? ScriptedResolver.failure : ScriptedResolver.here }
        try await withHTTPTestServer(answering: "hello") { origin in
            let network = SwitchedNetwork(isUp: true)
            let rig = Rig(configure: {
                $0.networkMonitor = network.monitor
                $0.networks.resolver = resolver
                $0.observers.append(Changing(network: network))
            })
            let text = try await rig.session.text(url("http://a.example:\(origin.port)/"))
            #expect(text == "hello")
            #expect(resolver.asked == 2 && rig.clock.elapsed == .zero)
            await expectEmpty(rig.session)
            #expect(network.kernel.open == 0)
        }
    }

    @Test("a network change does not end the wait after a status, nor any wait without permission to observe")
    func noPathChange() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.serviceUnavailable, .ok])
            let network = SwitchedNetwork(isUp: true)
            let rig = Rig(configure: { $0.networkMonitor = network.monitor })
            async let text = rig.session.text(origin.url())
            try await rig.recorder.wait(for: .retrying)
            try await rig.clock.untilSleeping()
            #expect(network.kernel.open == 0)
            rig.clock.advance(by: .seconds(7))
            #expect(try await text == "2")
        }
        for isRefused in [false, true] {
            let network = SwitchedNetwork(isUp: true)
            let resolver = ScriptedResolver { _ in ScriptedResolver.failure }
            if isRefused { network.kernel.refuse(1) }
            let rig = Rig(
                { $0.retriesOnNetworkChange = isRefused },
                configure: {
                    $0.networkMonitor = network.monitor
                    $0.networks.resolver = resolver
                })
            async let error = failure(.lookupFailed) { try await rig.session.data(from: url("http://a.example/")) }
            try await rig.passWaits(2)
            _ = await error
            #expect(network.kernel.opened == 0)
        }
    }

    @Test("a body is opened anew for each attempt, and the decision gets the reason")
    func bodies() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { [weak origin] request in
                let isLast = origin?.requests.count ?? 0 > 1
                return isLast ? .ok(.bytes(request.body)) : .status(.serviceUnavailable)
            }
            let rig = Rig({ $0.backoff = .constant(.zero) })
            let made = Lock(0)
            let causes = Lock<[BodyProviderContext.Cause]>([])
            var decisions = Decisions()
            decisions.bodyProvider = Decision { demand in
                causes.withLock { $0.append(demand.cause) }
                return .data(Data("demanded".utf8))
            }
            var request = Request(url: origin.url(), method: .put)
            request.body = .stream {
                made.withLock { $0 += 1 }
                return OneByOne(pieces: ["one", "two"])
            }
            try await rig.session.expect(request, "onetwo")
            #expect(made.withLock { $0 } == 2)
            request.url = origin.url("/again")
            request.body = .provided
            let (data, _) = try await rig.session.data(for: request, decisions: decisions)
            #expect(String(decoding: data, as: UTF8.self) == "demanded")
            #expect(causes.withLock { $0 } == [.first])
            try await withHTTPTestServer { other in
                Self.serve(other, [.serviceUnavailable, .ok])
                request.url = other.url()
                _ = try await rig.session.data(for: request, decisions: decisions)
                #expect(causes.withLock { $0 } == [.first, .first, .retry])
                // A body that cannot be opened again ends the load with its own error.
                decisions.bodyProvider = Decision { demand in
                    guard demand.cause == .first else { throw Unexpectedly("once only") }
                    return .data(Data())
                }
                request.url = origin.url("/third")
                origin.route("/third") { _ in .status(.badGateway) }
                await expectFailure(.decisionFailed) { try await rig.session.data(for: request, decisions: decisions) }
            }
        }
    }

    struct OneByOne: AsyncSequence {
        let pieces: [String]
        func makeAsyncIterator() -> Iterator { Iterator(rest: pieces[...]) }
        struct Iterator: AsyncIteratorProtocol {
            var rest: ArraySlice<String>
            mutating func next() async -> [UInt8]? { rest.popFirst().map { Array($0.utf8) } }
        }
    }

    @Test("each request of a redirect chain has its own number of attempts")
    func redirects() async throws {
        try await withHTTPTestServer { origin in
            let counts = Lock<[String: Int]>([:])
            origin.route("/*") { request in
                let number = counts.withLock { counts in
                    counts[request.path, default: 0] += 1
                    return counts[request.path] ?? 0
                }
                if number < 3 { return .status(.serviceUnavailable) }
                return request.path == "/a" ? .redirect("/b") : .ok("b")
            }
            let rig = Rig({ $0.backoff = .constant(.zero) })
            try await rig.session.expect(origin.url("/a"), "b")
            #expect(rig.story == ["retrying redirected retrying responded received metrics completed, 200, 1 bytes"])
        }
    }

    @Test("requests that a handler forwards are retried, except after an idle timeout")
    func handlers() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.serviceUnavailable, .ok])
            let rig = Rig({ $0.backoff = .constant(.zero) }, configure: { $0.handlers = [PriorityRows.Forwarding()] })
            try await rig.session.expect(origin.url(), "2")
            origin.inject(.init(.requestHead, .stall))
            async let error = failure(.idleTimeout) { try await rig.session.data(from: origin.url()) }
            try await origin.wait { $0.stalled == 1 }
            try await rig.clock.untilWaiting()
            rig.clock.advance(by: .seconds(60))
            _ = await error
            #expect(rig.retries.count == 1)
            await expectEmpty(rig.session)
        }
    }

    @Test(
        "with any faults before responses and enough attempts every load succeeds or is cancelled",
        arguments: 0..<3 as Range<UInt64>)
    func anyFault(_ seed: UInt64) async throws {
        let points: [HTTPTestServer.Fault.Point] = [
            .accept, .requestHead, .responseHead(after: 0), .responseHead(after: 9), .idle,
        ]
        let effects: [HTTPTestServer.Fault.Effect] = [.close, .cut, .reset, .delay(.milliseconds(1))]
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                request.path.hasSuffix("7") ? .ok("x", headers: [.connection: "close"]) : .ok("x")
            }
            let faults = points.flatMap { point in effects.map { HTTPTestServer.Fault(point, $0) } }
            origin.setSchedule(.init(seed: seed, probability: 0.3, faults: faults))
            var policy = RetryPolicy(maximumAttempts: 60)
            policy.backoff = .exponential(base: .microseconds(10), cap: .milliseconds(1))
            let session = Session(.ephemeral.with { $0.retries.policy = policy })
            await withTaskGroup { group in
                for number in 0..<120 {
                    let verb = Verb.allCases[number % 4]
                    let load = RunningLoad(session, Request(url: origin.url("/\(number)")), verb: verb)
                    let isCancelled = number % 5 == 0
                    group.addTask {
                        if isCancelled {
                            try? await Task.sleep(for: .microseconds(number * 20))
                            load.task.cancel()
                        }
                        let reason = await load.reason
                        if reason != nil, !isCancelled || reason != .cancelled {
                            Issue.record("\(number): \(String(describing: reason))")
                        }
                    }
                }
            }
            await expectEmpty(session)
        }
    }

    @Test("statistics count attempts")
    func statistics() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.serviceUnavailable, .badGateway, .ok])
            let statistics = LoadStatistics()
            let rig = Rig(
                { $0.backoff = .constant(.zero) },
                configure: { $0.observers = [statistics, LoadTracer { _ in }, LoadLogger { _ in }] })
            try await rig.session.expect(origin.url(), "3")
            #expect(statistics.snapshot.retries == 2)
        }
    }
}
