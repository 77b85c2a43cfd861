// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Checklist 27 and 162: a load waits for a network that it may use.
@Suite(.timeLimit(.minutes(4)))
struct ConnectivityRows {
    /// A session that waits for connectivity, in a network of the test; its name resolves to an unreachable address
    /// first, then to loopback.
    struct Rig {
        let clock = ManualClock()
        let recorder = EventRecorder()
        let network: SwitchedNetwork
        let resolver: ScriptedResolver
        let session: Session

        init(
            isUp: Bool = false, configure: (inout Configuration) -> Void = { _ in },
            answer: @escaping @Sendable (Int) -> Result<[SocketAddress], IOFailure> = {
                $0 == 1 ? ScriptedResolver.far : ScriptedResolver.here
            }
        ) {
            network = SwitchedNetwork(isUp: isUp)
            resolver = ScriptedResolver(answer)
            var configuration = Configuration.ephemeral
            configuration.use(clock)
            configuration.networks.waitsForConnectivity = true
            configuration.networkMonitor = network.monitor
            configuration.networks.resolver = resolver
            configuration.observers = [recorder]
            configure(&configuration)
            session = Session(configuration)
        }

        /// Waits until this many loads wait for a network.
        func untilWaiting(_ count: Int = 1) async throws {
            try await recorder.wait(for: .waitingForConnectivity, count: count)
        }

        var story: [String] { recorder.loads.map { $0.description.split(separator: ": ").last.map(String.init) ?? "" } }
    }

    private func remote(_ origin: HTTPTestServer) throws -> URL { try url("http://name.example:\(origin.port)/") }

    private func withOrigin(_ use: (HTTPTestServer) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("hello") }
            try await use(origin)
        }
    }

    @Test("without a network a load waits, reports it once, and continues", arguments: Verb.allCases)
    func waits(_ verb: Verb) async throws {
        try await withOrigin { origin in
            let rig = Rig()
            let target = try remote(origin)
            async let count = verb.run(rig.session, Request(url: target))
            try await rig.untilWaiting()
            #expect(rig.session.connectionsDescription == "empty")
            rig.network.addUnroutedLink()
            rig.network.goDown()
            // Neither silence of the peer nor elapsed time ends the wait.
            rig.clock.advance(by: .seconds(3600))
            try await pollerHasRun()
            #expect(rig.resolver.asked == 1)
            rig.network.goUp()
            #expect(try await count == 5)
            #expect(rig.story == ["waitingForConnectivity responded received metrics completed, 200, 5 bytes"])
            await expectEmpty(rig.session)
            #expect(rig.network.kernel.open == 0)
        }
    }

    @Test("a failed name resolution without a network waits; with a network it fails")
    func lookup() async throws {
        try await withOrigin { origin in
            let target = try remote(origin)
            let rig = Rig(answer: { $0 == 1 ? ScriptedResolver.failure : ScriptedResolver.here })
            async let text = rig.session.text(target)
            try await rig.untilWaiting()
            rig.network.goUp()
            #expect(try await text == "hello")

            let online = Rig(isUp: true, answer: { _ in ScriptedResolver.failure })
            await expectFailure(.lookupFailed) { try await online.session.data(from: target) }
            let nobodyKnows = Rig(answer: { _ in ScriptedResolver.failure })
            nobodyKnows.network.kernel.refuse(1)
            await expectFailure(.lookupFailed) { try await nobodyKnows.session.data(from: target) }
        }
    }

    @Test("a network that appeared during the failed name resolution is tried at once")
    func cameMeanwhile() async throws {
        try await withOrigin { origin in
            let network = SwitchedNetwork(isUp: false)
            let rig = Rig(
                configure: { $0.networkMonitor = network.monitor },
                answer: { number in
                    guard number == 1 else { return ScriptedResolver.here }
                    network.goUp()
                    return ScriptedResolver.failure
                })
            try await rig.session.expect(remote(origin), "hello")
            #expect(rig.story == ["responded received metrics completed, 200, 5 bytes"])
        }
    }

    @Test(
        "a load to this machine does not wait for a network, and the network is not queried",
        arguments: ["127.0.0.1", "localhost", "a.localhost", "LOCALHOST."])
    func loopback(_ host: String) async throws {
        try await withOrigin { origin in
            let rig = Rig()
            try await rig.session.expect(url("http://\(host):\(origin.port)/"), "hello")
            #expect(rig.network.kernel.opened == 0)
            let port = try closedPort()
            await expectFailure(.connectionRefused) { try await rig.session.data(from: url("http://\(host):\(port)/")) }
        }
    }

    @Test("a name of this machine is recognised, and the load does not wait")
    func loopbackName() async throws {
        try await withOrigin { origin in
            let rig = Rig(answer: { _ in ScriptedResolver.here })
            try await rig.session.expect(remote(origin), "hello")
            #expect(rig.story == ["responded received metrics completed, 200, 5 bytes"])
        }
    }

    @Test("a network that must not be used counts as none (checklist 27)")
    func forbidden() async throws {
        try await withOrigin { origin in
            let rig = Rig(isUp: true, configure: { $0.networks.allowsCellular = false })
            rig.network.exchange(for: "wwan0")
            let target = try remote(origin)
            async let text = rig.session.text(target)
            try await rig.untilWaiting()
            rig.network.goUp()
            try await pollerHasRun()
            #expect(rig.resolver.asked == 1)
            rig.network.exchange(for: "wlan0")
            #expect(try await text == "hello")
        }
    }

    @Test("hints of the program end a wait")
    func hints() async throws {
        try await withOrigin { origin in
            let rig = Rig(isUp: true, configure: { $0.networks.allowsExpensive = false })
            rig.network.monitor.hints.isExpensive = true
            let target = try remote(origin)
            async let text = rig.session.text(target)
            try await rig.untilWaiting()
            rig.network.monitor.hints.isExpensive = false
            #expect(try await text == "hello")
        }
    }

    @Test("by default, and for a request that says so, a load without a network fails")
    func fails() async throws {
        let rig = Rig(
            configure: { $0.networks.waitsForConnectivity = false }, answer: { _ in ScriptedResolver.failure })
        var request = Request(url: try url("http://name.example/"))
        await expectFailure(.lookupFailed) { try await rig.session.data(for: request) }
        request.waitsForConnectivity = true
        let waiting = request
        let load = RunningLoad(rig.session, waiting)
        try await rig.untilWaiting()
        load.task.cancel()
        #expect(await load.reason == .cancelled)

        let patient = Rig(answer: { _ in ScriptedResolver.failure })
        request.waitsForConnectivity = false
        await expectFailure(.lookupFailed) { try await patient.session.data(for: request) }
    }

    @Test("a wait ends like any other, but not by the idle timeout", arguments: Ending.withoutIdle, Verb.allCases)
    func endings(_ ending: Ending, _ verb: Verb) async throws {
        let rig = Rig(answer: { _ in ScriptedResolver.far })
        var request = Request(url: try url("http://name.example/"))
        request.idleTimeout = .seconds(1)
        request.resourceTimeout = .seconds(100)
        let load = RunningLoad(rig.session, request, verb: verb)
        try await rig.untilWaiting()
        try await rig.network.kernel.wait { $0.open > 0 }
        rig.clock.advance(by: .seconds(99))
        #expect(rig.recorder.loads.allSatisfy { !$0.isComplete })
        if ending == .resourceTimeout { rig.clock.advance(by: .seconds(1)) } else { ending.apply(load, rig.session) }
        #expect(await load.reason == ending.reason)
        await expectEmpty(rig.session)
        #expect(rig.network.kernel.open == 0)
    }

    @Test("a suspended load does not continue when a network appears")
    func suspension() async throws {
        try await withOrigin { origin in
            let rig = Rig()
            let task = rig.session.dataTask(from: try remote(origin)).resumed()
            try await rig.untilWaiting()
            task.suspend()
            rig.network.goUp()
            try await rig.network.kernel.wait { $0.questions >= 9 }
            try await pollerHasRun()
            #expect(rig.resolver.asked == 1)
            task.resume()
            #expect(try await task.value.count == 5)
        }
    }

    @Test("a network that disappears again is waited for again")
    func twice() async throws {
        try await withOrigin { origin in
            let network = SwitchedNetwork(isUp: false)
            let rig = Rig(
                configure: { $0.networkMonitor = network.monitor },
                answer: { number in
                    if number == 2 { network.goDown() }
                    return number < 3 ? ScriptedResolver.failure : ScriptedResolver.here
                })
            let target = try remote(origin)
            async let text = rig.session.text(target)
            try await rig.untilWaiting()
            network.goUp()
            try await rig.untilWaiting(2)
            network.goUp()
            #expect(try await text == "hello")
        }
    }

    @Test("a waiting load occupies no connection slot; an idle connection is used without a network")
    func places() async throws {
        try await withOrigin { origin in
            let rig = Rig(configure: { $0.connections.maximumPerHost = 1 })
            let target = try remote(origin)
            async let waiting = rig.session.text(target)
            try await rig.untilWaiting()
            // The second name resolution leads here.
            try await rig.session.expect(target, "hello")
            try await rig.session.expect(target, "hello")
            #expect(origin.counts.accepted == 1 && rig.resolver.asked == 2)
            rig.network.goUp()
            #expect(try await waiting == "hello")
        }
    }

    @Test("a peer that is silent because the network disappeared is waited for")
    func lostWhileConnecting() async throws {
        let host = try await FullHost()
        defer { host.close() }
        let rig = Rig(isUp: true, answer: { $0 == 1 ? ScriptedResolver.here : ScriptedResolver.far })
        let load = RunningLoad(rig.session, Request(url: try url("http://name.example:\(host.port)/")))
        try await rig.clock.untilWaiting()
        rig.network.goDown()
        rig.clock.advance(by: .seconds(60))
        try await rig.untilWaiting()
        load.task.cancel()
        #expect(await load.reason == .cancelled)
        await expectEmpty(rig.session)
    }

    @Test("the requests of a handler wait for a network, too")
    func handlers() async throws {
        try await withOrigin { origin in
            let rig = Rig(configure: { $0.handlers = [PriorityRows.Forwarding()] })
            let target = try remote(origin)
            async let text = rig.session.text(target)
            try await rig.untilWaiting()
            rig.network.goUp()
            #expect(try await text == "hello")
        }
    }
}
