// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Many loads, ended at random, against an origin that fails at random. What any of them does is not
/// asserted, only that it ends, and that nothing is left of it.
@Suite(.serialized) struct StressTests {
    static let isLong = getenv("URLLOADING_LONG") != nil

    @Test("loads cancelled at random moments leave no connection", arguments: [false, true])
    func randomCancellations(isSecure: Bool) async throws {
        try await Self.cancelRandomly(Self.isLong ? 10_000 : 500, isSecure: isSecure)
    }

    /// The clock of the session stands still: a wait that only a timer of the library would end does not end.
    @Test(
        "10,000 requests over 200 connections through jitter, some cancelled, wait for nothing but the network",
        arguments: [1, 2, 3])
    func jitter(seed: UInt64) async throws {
        let conditions = NetworkConditions(
            delay: .milliseconds(3), jitter: .milliseconds(5), segmentSize: 1...700, seed: seed)
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in .ok(.repeated(count: Int64(request.target.utf8.count * 100))) }
            try await withNetworkRelay(to: origin.url(), conditions) { relay in
                var configuration = RelayedLoadTests.timeless()
                configuration.connections.maximumPerHost = 200
                configuration.connections.maximumIdle = 200
                let total = 10_000
                let limits = configuration
                let counts = try await RelayedLoadTests.limited(relay, limit: .seconds(180)) {
                    try await withSession(limits) { session in
                        try await withThrowingTaskGroup(of: Bool.self) { group in
                            var (done, cancelled) = (0, 0)
                            func take() async throws {
                                guard let isDone = try await group.next() else { return }
                                if isDone { done += 1 } else { cancelled += 1 }
                            }
                            for number in 0..<total {
                                if number >= 400 { try await take() }
                                group.addTask { try await Self.load(number, relay, session) }
                            }
                            while !group.isEmpty { try await take() }
                            return (done, cancelled)
                        }
                    }
                }
                #expect(counts.0 + counts.1 == total && counts.0 > total * 9 / 10)
            }
        }
    }

    /// Returns whether a load ended by itself; one of twenty is cancelled, at the latest after a few milliseconds.
    private static func load(_ number: Int, _ relay: NetworkRelay, _ session: Session) async throws -> Bool {
        let url = relay.url("/\(number)")
        guard number % 20 == 0 else {
            let (data, _) = try await session.data(from: url)
            return data.count == ("/\(number)".utf8.count) * 100
        }
        let load = Task { try await session.data(from: url).0.count }
        try await Task.sleep(for: .microseconds(number % 7_000))
        load.cancel()
        return (try? await load.value) != nil
    }

    static func cancelRandomly(_ count: Int, isSecure: Bool) async throws {
        try await withRandomFaults(count, seed: 7, isSecure: isSecure) { session, request, random in
            let load = RunningLoad(session, request, verb: Bool.random(using: &random) ? .data : .load)
            if Bool.random(using: &random) {
                try? await Task.sleep(for: .microseconds(Int.random(in: 0...2000, using: &random)))
                load.task.cancel()
            }
            _ = await load.task.value
        }
    }

    /// Sends `count` random requests to an origin that fails at random, and expects that nothing is left of them.
    static func withRandomFaults(
        _ count: Int, seed: UInt64, isSecure: Bool = false,
        _ use: @escaping @Sendable (Session, Request, inout SeededGenerator) async -> Void
    ) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var setUp = HTTPTestServer.Configuration()
        setUp.tls = isSecure ? HTTPTestServer.TLS(try authority.issue()) : nil
        setUp.recordedRequests = 0
        try await withHTTPTestServer(setUp) { origin in
            addRoutes(to: origin)
            origin.setSchedule(
                .init(
                    seed: seed, probability: 0.3,
                    faults: HTTPTestServer.FaultSchedule.usual + [
                        .init(.accept, .stall), .init(.requestHead, .stall), .init(.responseBody(after: 7), .stall),
                    ]))
            var configuration = Configuration.ephemeral
            configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
            configuration.connections.maximumPerHost = 16
            configuration.timeouts.idle = .milliseconds(200)
            let session = Session(configuration)
            let urls = paths.map { origin.url($0) }
            await inParallel(count, width: 48) { number in
                var random = SeededGenerator(seed: UInt64(number))
                await use(session, request(urls, &random), &random)
            }
            #expect(
                session.connectionsDescription.contains("0 connecting 0 leased")
                    || session.connectionsDescription == "empty")
            await expectEmpty(session)
            // Bytes that a stalled connection has not read hide from it that the client has closed.
            origin.releaseStalls()
            try await origin.wait { $0.open == 0 }
            #expect(session.leakedClosures == 0)
        }
    }

    /// Sessions that end while their loads go on.
    @Test("sessions invalidated at random moments end all of their loads") func randomInvalidations() async throws {
        try await withHTTPTestServer { origin in
            Self.addRoutes(to: origin)
            let urls = Self.paths.map { origin.url($0) }
            await Self.inParallel(Self.isLong ? 1000 : 100, width: 8) { number in
                var random = SeededGenerator(seed: UInt64(number))
                let session = Session(.patient)
                let loads = (1...8).map { _ in RunningLoad(session, Self.request(urls, &random)) }
                try? await Task.sleep(for: .microseconds(Int.random(in: 0...2000, using: &random)))
                await expectEmpty(session)
                for load in loads { _ = await load.task.value }
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("many loads share few connections") func manyLoadsOverFewConnections() async throws {
        let count = Self.isLong ? 5000 : 1000
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok(.bytes(Array($0.target.utf8))) }
            let session = Session(.patient.with { $0.connections.maximumPerHost = 64 })
            let url = origin.url()
            let answered = await withTaskGroup(of: Bool.self) { group in
                for _ in 1...count {
                    group.addTask { (try? await session.data(from: url).0) == Data("/".utf8) }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(answered == count)
            #expect(origin.counts.mostOpen <= 64)
            #expect(origin.counts.requests == count)
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }

    /// As many connections as the process may have descriptors for, up to 5,000.
    @Test("thousands of connections are open at once", .enabled(if: isLong)) func thousandsOfConnections() async throws
    {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let count = min(5000, Int(limit.rlim_cur) / 2 - 200)
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            let session = Session(.patient.with { $0.connections.maximumPerHost = count })
            let loads = (1...count).map { _ in RunningLoad(session, Request(url: origin.url())) }
            try await origin.wait { $0.stalled == count }
            await expectEmpty(session)
            for load in loads { #expect(await load.reason == .cancelled) }
            try await origin.wait { $0.open == 0 }
        }
    }

    // MARK: Loads

    static let paths = ["/small", "/large", "/chunks", "/echo", "/close", "/redirect", "/slow"]

    static func addRoutes(to origin: HTTPTestServer) {
        origin.route("/small") { _ in .ok("small") }
        origin.route("/large") { _ in .ok(.repeated(count: 300_000)) }
        origin.route("/chunks") { _ in .ok(.chunks(["one", "two", "three"], trailers: ["Sum": "3"])) }
        origin.route("/echo") { .ok(.bytes($0.body)) }
        origin.route("/close") { _ in .ok(.untilClose(["until close"])) }
        origin.route("/redirect") { _ in .redirect("/small") }
        origin.route("/slow") { _ in .ok(.chunks(["a", .pause(.milliseconds(1)), "b"])) }
    }

    static func request(_ urls: [URL], _ random: inout SeededGenerator) -> Request {
        let number = Int.random(in: urls.indices, using: &random)
        guard paths[number] == "/echo" else { return Request(url: urls[number]) }
        let body = RequestBody.data(Data(count: Int.random(in: 0...200_000, using: &random)))
        return Request(url: urls[number], method: .put, body: body)
    }

    static func inParallel(_ count: Int, width: Int, _ work: @escaping @Sendable (Int) async -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                if number >= width { await group.next() }
                group.addTask { await work(number) }
            }
        }
    }
}
