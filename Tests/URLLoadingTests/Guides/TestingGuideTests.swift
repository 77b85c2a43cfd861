// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/testing.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct TestingGuideTests {
    @Test("an origin")
    func origin() async throws {
        let session = Session(.ephemeral)
        try await withHTTPTestServer { origin in
            origin.route("/hello") { request in .ok("Hello, \(request.headers[.userAgent] ?? "you")") }
            origin.route("/files/*") { _ in .status(.notFound) }
            origin.route("/old") { _ in .redirect("/hello") }
            let (data, response) = try await session.data(from: origin.url("/old"))
            #expect(response.url == origin.url("/hello"))
            #expect(origin.requests.map(\.path) == ["/old", "/hello"])

            #expect(data.count > 7)
            try await origin.wait(timeout: .seconds(5)) { $0.requests == 2 }
            session.invalidateAndCancel()
            try await origin.wait { $0.open == 0 }  // every socket is closed
        }
    }

    @Test("an origin with TLS")
    func tls() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in
            origin.route("/") { _ in .ok("secret") }
            let (data, _) = try await Session(configuration).data(from: origin.url())
            #expect(data.count == 6)
        }
    }

    @Test("faults")
    func faults() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/cut", faults: [.init(.responseBody(after: 100), .reset)]) { _ in .ok(.repeated(count: 1_000))
            }
            origin.inject(.init(.accept, .close), onConnection: 1)

            let session = Session(.ephemeral)
            for _ in 0..<2 { await expectFailure(.connectionLost) { try await session.data(from: origin.url("/cut")) } }
            origin.setSchedule(.init(seed: 42, probability: 0.2))
        }
    }

    @Test("a clock that stands still")
    func clock() async throws {
        try await withHTTPTestServer { origin in
            let clock = ManualClock()
            var configuration = Configuration.ephemeral
            configuration.timeouts.idle = .seconds(60)
            configuration.use(clock)
            let session = Session(configuration)

            origin.route("/stalls", faults: [.init(.responseBody(after: 3), .stall)]) { _ in .ok("hello") }
            let task = session.dataTask(from: origin.url("/stalls"))
            task.resume()
            try await origin.wait { $0.stalled == 1 }  // the server says no more,
            try await clock.untilWaiting()  // the load has heard all it said,
            clock.advance(by: .seconds(60))  // and has waited long enough
            await #expect(throws: LoadError.self) { try await task.value }
            #expect(task.snapshot.received == 3)
        }
    }

    @Test("a clock and a task that sleeps on it, in turns")
    func turns() async throws {
        let clock = ManualClock()
        let tries = Task { for _ in 1...3 { try await clock.sleep(for: .seconds(60)) } }
        for _ in 1...3 {  // three tries, each after its pause
            try await clock.untilSleeping()
            clock.advance(by: .seconds(60))
        }
        try await tries.value
    }

    @Test("the example of recorded events")
    func events() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/hello") { _ in .ok("Hello, you") }
            let recorder = EventRecorder()
            var configuration = Configuration.ephemeral
            configuration.observers = [recorder]
            let session = Session(configuration)

            let task = session.dataTask(from: origin.url("/hello"))
            task.resume()
            try await recorder.wait(for: .responded, of: task.id)
            _ = try await task.value
            try await recorder.wait(for: .completed, of: task.id)
            #expect(recorder.events(of: task).count == 4)
            #expect(recorder.loads.allSatisfy { $0.isLegal }, "\(recorder)")
            #expect("\(recorder)".hasSuffix("/hello: responded received metrics completed, 200, 10 bytes"))
        }
    }

    @Test("a script in place of a socket")
    func script() async throws {
        let peer = ScriptedPeer([
            .takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Le"), .hold, .give("ngth: 2\r\n\r\nhi"),
        ])
        var configuration = Configuration.ephemeral
        configuration.connect(to: peer)
        let session = Session(configuration)
        let task = session.dataTask(from: URL(string: "https://anywhere.test/")!)
        task.resume()
        try await peer.untilHeld()  // half of a field was read
        peer.release()
        let data = try await task.value
        #expect(data.count == 2 && peer.failures.isEmpty)
    }

    @Test("record and replay")
    func recording() async throws {
        let file = URL(filePath: "/tmp/urlloading-guide-\(UInt64.random(in: 0 ... .max)).txt")
        defer { try? FileManager.default.removeItem(at: file) }
        let address = try await withHTTPTestServer { origin in
            origin.route("/hello") { _ in .ok("Hello, you") }
            let recorder = RecordingHandler()
            var configuration = Configuration.ephemeral
            configuration.handlers = [recorder]
            try await withSession(configuration) { session in
                _ = try await session.data(from: origin.url("/hello"))
            }
            try await recorder.finished().write(to: file)
            return origin.url("/hello")
        }

        let replay = ReplayHandler(try Recording(contentsOf: file))
        var configuration = Configuration.ephemeral
        configuration.handlers = [replay]
        try await withSession(configuration) { session in
            let (data, _) = try await session.data(from: address)
            #expect(data.count == 10)
        }
        #expect(replay.unused.isEmpty)
    }

    @Test("the file of the guide is one")
    func file() throws {
        let recording = try Recording(
            text: RecordingTextTests.ofGuide + """

                request GET http://down.example/ at 20
                failed hostNotFound -1003 resolving system at 21 down.example

                """)
        #expect(recording.exchanges.count == 2)
        guard case .failed(let failure, _) = recording.exchanges[1].ending else { throw CancellationError() }
        #expect(failure.reason == .hostNotFound && failure.detail == "down.example")
    }
}
