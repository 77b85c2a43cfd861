// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Every wait of a load, ended in every way. None of these loads could end by itself; the test asserts the reason, and
/// that no object is left.
@Suite struct CancellationTests {
    // MARK: On a script: every wait of an exchange

    @Test("every wait of an exchange can be ended", arguments: 1...ScriptedLoad.blocks, Ending.allCases)
    func everyWaitOfAnExchange(block: Int, ending: Ending) async throws {
        for verb in Verb.allCases { await ScriptedLoad.end(at: block, ending, verb) }
    }

    /// The stop comes when the wait is decided but has not begun.
    @Test("a stop just before a wait begins ends the load", arguments: 2...ScriptedLoad.blocks)
    func justBeforeEveryWait(block: Int) async throws {
        for ending in [Ending.task, .invalidation] { await ScriptedLoad.endBefore(block, ending) }
    }

    @Test("without a stop the script is followed to its end") func theScriptIsFollowedToItsEndOtherwise() async throws {
        let transport = ScriptedTransport(ScriptedLoad.steps)
        let session = Session(ScriptedLoad.configuration(transport))
        let (data, _) = try await session.data(for: ScriptedLoad.request)
        #expect(String(decoding: data, as: UTF8.self) == "abcdef")
        #expect(transport.blocks == ScriptedLoad.blocks)
        await expectEmpty(session)
        #expect(transport.isClosed)
    }

    // MARK: Before there is a connection

    @Test("a name lookup can be ended", arguments: Ending.allCases) func resolving(ending: Ending) async throws {
        try await Waits.resolving(ending)
    }
    @Test("a connection attempt can be ended", arguments: Ending.allCases) func connecting(ending: Ending) async throws
    {
        try await Waits.connecting(ending)
    }
    @Test("a TLS handshake can be ended", arguments: Ending.allCases) func securing(ending: Ending) async throws {
        try await Waits.securing(ending)
    }
    @Test("a wait for a connection can be ended", arguments: Ending.withoutIdle) func waitingForAConnection(
        ending: Ending
    ) async throws {
        try await Waits.waitingForAConnection(ending)
    }

    // MARK: On sockets

    @Test("a load whose server stalls at any point can be ended", arguments: Waits.points, Ending.allCases)
    func everyStall(point: HTTPTestServer.Fault.Point, ending: Ending) async throws {
        for verb in Verb.allCases { try await Waits.stalled(at: point, ending, verb) }
    }

    @Test("the sending of a large body can be ended", arguments: Ending.allCases) func sendingALargeBody(ending: Ending)
        async throws
    {
        try await Waits.sendingALargeBody(ending)
    }

    // MARK: In the caller's own code

    @Test("a decision is cancelled with its task") func aDecisionIsCancelledWithItsTask() async throws {
        try await Waits.decidingWithCancellation()
    }

    @Test("a request body is cancelled with its task") func aBodyIsCancelledWithItsTask() async throws {
        try await Waits.producingABody()
    }

    /// A closure that waits for something else is not interrupted; its answer comes too late.
    @Test("a decision that comes too late changes nothing", arguments: Ending.withoutIdle, [false, true])
    func aDecisionThatComesTooLate(ending: Ending, delivers: Bool) async throws {
        try await Waits.decidingTooLate(ending, delivers)
    }

    // MARK: The end of a session

    /// Waiting for the end of a session must not be over while its idle connections are being closed.
    @Test("the end of a session waits until its idle connections are closed")
    func theEndOfASessionWaitsUntilItsIdleConnectionsAreClosed()
        async throws
    {
        let (mayFollow, isOver, hasLeft) = (Flag(), Flag(), Flag())
        let registry = LoadRegistry { mayFollow.waitBlocking() }
        let load = LoadHandle(idle: nil, resource: nil)
        #expect(registry.enter(load))
        registry.close(stopping: .invalidated)
        BlockingThreads.shared.run {
            registry.leave(load)
            hasLeft.raise()
        }
        // The load has left the registry, and its notification is held back.
        try await eventually(registry.count) { $0 == 0 }
        let waiting = Task.detached {
            await registry.emptied()
            isOver.raise()
        }
        for _ in 1...20 { await pause() }
        #expect(!isOver.value)
        mayFollow.raise()
        await waiting.value
        try await hasLeft.wait()
    }
}

/// A load over a script that makes it wait at every place where an exchange can wait.
enum ScriptedLoad {
    static let bodySize = 300_000
    static let steps: [ScriptedTransport.Step] = [
        .block, .take(20), .block, .takeUntil("\r\n\r\n"),
        .block, .take(100_000), .block, .take(bodySize - 100_000),
        .block, .give("HTTP/1.1 100 Continue\r\n\r\n"), .block, .give("HTTP/1.1 200 OK\r\nContent-"),
        .block, .give("Length: 6\r\n\r\n"), .block, .give("abc"), .block, .give("def"),
    ]
    static let blocks = 9

    static var request: Request {
        Request(url: URL(string: "http://script.example/")!, method: .put, body: .data(Data(count: bodySize)))
    }

    static func configuration(_ transport: ScriptedTransport, whenDialled: @escaping @Sendable () -> Void = {})
        -> Configuration
    {
        var configuration = Configuration.patient
        configuration.dial = { _, _ in
            whenDialled()
            return transport
        }
        return configuration
    }

    static func end(at block: Int, _ ending: Ending, _ verb: Verb) async {
        let transport = ScriptedTransport(steps, holdingAt: block)
        let isDialled = Flag()
        let session = Session(configuration(transport) { isDialled.raise() })
        let load = RunningLoad(session, ending.applied(to: request), verb: verb)
        if !ending.isTimeout { await transport.held() }
        ending.apply(load, session)
        #expect(await load.reason == ending.reason)
        #expect(transport.blocks <= block)
        // The time of the whole load may be over before it connects.
        #expect(transport.isClosed == isDialled.value && (isDialled.value || ending == .resourceTimeout))
        await expectEmpty(session)
    }

    /// The first block is reached before there is a load.
    static func endBefore(_ block: Int, _ ending: Ending) async {
        let started = Lock<RunningLoad?>(nil)
        let session = Lock<Session?>(nil)
        let transport = ScriptedTransport(steps, holdingAt: block) {
            guard let load = started.withLock({ $0 }), let session = session.withLock({ $0 }) else { return }
            ending.apply(load, session)
        }
        let own = Session(configuration(transport))
        session.withLock { $0 = own }
        let load = started.withLock { started in
            // Under the lock: the load cannot reach a block before it is known.
            let load = RunningLoad(own, request)
            started = load
            return load
        }
        #expect(await load.reason == .cancelled)
        await expectEmpty(own)
        #expect(transport.isClosed)
        session.withLock { $0 = nil }
    }
}
