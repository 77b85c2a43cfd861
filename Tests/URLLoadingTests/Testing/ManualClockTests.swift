// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Minutes pass in no time: whatever a session does by the clock, it does by the one it was given.
@Suite(.timeLimit(.minutes(4)))
struct ManualClockTests {
    /// A configuration with a clock that stands still.
    static func manual(_ clock: ManualClock) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.use(clock)
        return configuration
    }

    /// A server that stalls after three bytes of each body, and a session with a clock that stands still.
    struct Stall {
        let clock: ManualClock
        let session: Session
        let origin: HTTPTestServer
        fileprivate let received: ReceivedBytes

        /// Waits until loads have received all that the server sends, and wait for the rest. The system may deliver
        /// bytes late, and the idle time of a load begins with the last of them.
        func untilStalled(_ count: Int = 1) async throws {
            try await origin.wait { $0.stalled == count }
            try await received.total.wait { $0 == 3 * count }
            try await clock.untilWaiting(count)
        }
    }

    fileprivate struct ReceivedBytes: LoadObserver {
        let total = Watched(0)
        func observe(_ event: LoadEvent, of load: LoadIdentity) {
            if case .received(let bytes) = event { total.change { $0 += bytes.count } }
        }
    }

    static func withStall(
        _ change: (inout Configuration) -> Void = { _ in }, _ use: (Stall) async throws -> Void
    ) async throws {
        let clock = ManualClock()
        let received = ReceivedBytes()
        var configuration = manual(clock)
        configuration.observers = [received]
        change(&configuration)
        try await withHTTPTestServer { origin in
            origin.route("/stalls", faults: [.init(.responseBody(after: 3), .stall)]) { _ in .ok("hello") }
            origin.route("/") { _ in .ok("hello") }
            let session = Session(configuration)
            try await use(Stall(clock: clock, session: session, origin: origin, received: received))
            await expectEmpty(session)
        }
    }

    @Test("a silent peer is given up when its time is over, not earlier (security 83)")
    func idle() async throws {
        try await Self.withStall { stall in
            let (clock, load) = (stall.clock, RunningLoad(stall.session, Request(url: stall.origin.url("/stalls"))))
            try await stall.untilStalled()
            clock.advance(by: .seconds(60) - .nanoseconds(1))
            #expect(clock.time.waiting.count == 1)
            clock.advance(by: .nanoseconds(1))
            #expect(clock.time.waiting.count == 0)
            #expect(await load.reason == .idleTimeout)
            #expect(clock.elapsed == .seconds(60))
        }
    }

    @Test("received bytes restart the idle time")
    func activity() async throws {
        let clock = ManualClock()
        try await withHTTPTestServer(.init(clock: clock)) { origin in
            origin.route("/") { _ in
                .ok(.chunks(["a", .pause(.seconds(50)), "b", .pause(.seconds(50)), "c", .pause(.seconds(70)), "d"]))
            }
            let session = Session(Self.manual(clock))
            let task = session.dataTask(from: origin.url())
            let recorder = task.events
            task.resume()
            var events = recorder.makeAsyncIterator()
            for expected in [1, 2, 3] as [Int64] {
                var total: Int64 = 0
                while total < expected, let event = await events.next() {
                    if case .received(let bytes) = event { total = bytes.total }
                }
                try await clock.untilWaiting()
                clock.advance(by: .seconds(50))
            }
            clock.advance(by: .seconds(10))
            await expectFailure(.idleTimeout) { try await task.value }
            #expect(task.snapshot.received == 3)
            await expectEmpty(session)
        }
    }

    @Test("a load as a whole takes no longer than its limit (checklist 22)")
    func resource() async throws {
        try await Self.withStall({ $0.timeouts.idle = nil }) { stall in
            let (clock, load) = (stall.clock, RunningLoad(stall.session, Request(url: stall.origin.url("/stalls"))))
            try await stall.untilStalled()
            clock.advance(by: .seconds(7 * 24 * 60 * 60 - 1))
            #expect(clock.time.waiting.count == 1)
            clock.advance(by: .seconds(1))
            #expect(await load.reason == .resourceTimeout)
        }
    }

    @Test("of several loads those whose time has come end")
    func several() async throws {
        final class Ended: LoadObserver {
            let order = Lock<[String]>([])
            func observe(_ event: LoadEvent, of load: LoadIdentity) {
                if case .completed = event { order.withLock { $0.append(load.request.url.query() ?? "") } }
            }
        }
        let ended = Ended()
        try await Self.withStall({ $0.observers.append(ended) }) { stall in
            var tasks: [LoadTask<Data>] = []
            for limit in [30, 10, 20, 21, 40] {
                var request = Request(url: stall.origin.url("/stalls?\(limit)"))
                request.idleTimeout = .seconds(limit)
                tasks.append(stall.session.dataTask(request).resumed())
            }
            try await stall.untilStalled(5)
            stall.clock.advance(by: .seconds(25))
            for task in tasks[1...3] { await expectFailure(.idleTimeout) { try await task.value } }
            #expect(Set(ended.order.withLock { $0 }) == ["10", "20", "21"])
            stall.clock.advance(by: .seconds(20))
            for task in tasks { await expectFailure(.idleTimeout) { try await task.value } }
        }
    }

    @Test("unused connections are closed when their time is over, and not before")
    func reaping() async throws {
        try await Self.withStall { stall in
            let (clock, session, origin) = (stall.clock, stall.session, stall.origin)
            for _ in 0..<2 {
                try await session.expect(origin.url(), "hello")
                clock.advance(by: .seconds(54))
                #expect(session.connectionsDescription.hasSuffix("0 connecting 0 leased 1 idle 0 waiting"))
            }
            #expect(origin.counts.accepted == 1)
            clock.advance(by: .seconds(1))
            #expect(session.connectionsDescription == "empty")
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a decision that is late is decided by its deadline")
    func decision() async throws {
        let clock = ManualClock()
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            let isAsked = Latch()
            var decisions = Decisions()
            decisions.redirect = Decision(timeout: .seconds(5), fallback: .doNotFollow) { _ in
                isAsked.open()
                try await Task.sleep(for: .seconds(3600))
                return .follow
            }
            let session = Session(Self.manual(clock))
            async let loaded = session.data(for: Request(url: origin.url()), decisions: decisions)
            await isAsked.wait()
            clock.advance(by: .seconds(5))
            let response = try await loaded.1
            #expect(response.http?.status == .found)
            await expectEmpty(session)
        }
    }

    @Test("a load that was woken and has not run yet is not idle")
    func secondCheckDelay() async throws {
        let clock = ManualClock()
        let registry = LoadRegistry(LoopClock(clock.time)) {}
        let load = LoadHandle(idle: .seconds(1), resource: nil, clock: LoopClock(clock.time))
        #expect(registry.enter(load))
        // The load counts as waiting but is parked on no slot, as a load that was just woken.
        load.beginIdle()
        registry.check(now: ManualTime.beginning + 2_000_000_000)
        #expect(load.stopReason == nil)
        registry.leave(load)
    }

    /// Seen with a handler: the load waits for it, in a task of its own the handler waits for the peer,
    /// was woken, and has not run yet.
    @Test("a load that waits for a handler which was just woken is not idle")
    func wokenWithinAHandler() async throws {
        let time = LoopClock(ManualClock().time)
        let registry = LoadRegistry(time) {}
        let load = LoadHandle(idle: .seconds(1), resource: nil, clock: time)
        #expect(registry.enter(load))
        let outer = Poller.shared.borrowSlot()
        let inner = Poller.shared.borrowSlot()
        load.attach(outer)
        load.attach(inner)
        // Slots are reused, and may be woken by a late event of their previous user.
        let waiting = Task { while load.stopReason == nil { await Poller.shared.park(outer, until: load) } }
        try await outer.eventuallyParked()
        load.beginIdle()
        registry.check(now: ManualTime.beginning + 2_000_000_000)
        #expect(load.stopReason == nil)
        // A load whose peer is silent is idle.
        let idle = Task { while load.stopReason == nil { await Poller.shared.park(inner, .read, load) } }
        try await inner.eventuallyParked()
        registry.check(now: ManualTime.beginning + 4_000_000_000)
        #expect(load.stopReason == .idle)
        await waiting.value
        await idle.value
        registry.leave(load)
        for slot in [outer, inner] {
            load.detach(slot)
            Poller.shared.returnSlot(slot)
        }
    }

    @Test("an answer of the program counts although its load runs only after the deadline")
    func answeredBeforeTheLoadRuns() async throws {
        let clock = ManualClock()
        let load = LoadHandle(idle: nil, resource: nil, clock: LoopClock(clock.time))
        // Both tasks share one thread: the load, which the deadline wakes, runs after the answer.
        let outcome = await withTaskExecutorPreference(eventLoopExecutor) {
            await CallbackOutcome<Int>.run(load, timeout: .seconds(1), onLoop: true) {
                clock.advance(by: .seconds(2))
                return 7
            }
        }
        guard case .answered(7) = outcome else {
            Issue.record("\(outcome)")
            return
        }
    }

    @Test("a load for which another one reads is not idle while that one is to read, at most for its timeout once more")
    func readByAnother() async throws {
        let time = LoopClock(ManualClock().time)
        let registry = LoadRegistry(time) {}
        let load = LoadHandle(idle: .seconds(1), resource: nil, clock: time)
        #expect(registry.enter(load))
        let socket = Poller.shared.borrowSlot()
        let own = Poller.shared.borrowSlot()
        own.share(socket)
        load.attach(own)
        let waiting = Task { while load.stopReason == nil { await Poller.shared.park(own, .read, load) } }
        try await own.eventuallyParked()
        // No task waits at the socket: one reads it, or is about to.
        registry.check(now: ManualTime.beginning + 1_500_000_000)
        #expect(load.stopReason == nil)
        registry.check(now: ManualTime.beginning + 2_000_000_000)
        #expect(load.stopReason == .idle)
        await waiting.value
        registry.leave(load)
        load.detach(own)
        for slot in [socket, own] { Poller.shared.returnSlot(slot) }
    }

    @Test("suspended, a load is not idle; let go, it has its time again")
    func suspension() async throws {
        try await Self.withStall { stall in
            let (clock, task) = (stall.clock, stall.session.dataTask(from: stall.origin.url("/stalls")).resumed())
            try await stall.untilStalled()
            task.suspend()
            clock.advance(by: .seconds(600))
            #expect("\(task.snapshot)".hasPrefix("suspended"))
            // It waits for the caller only.
            try await eventually(clock.time.waiting.count) { $0 == 0 }
            task.resume()
            try await clock.untilWaiting()
            clock.advance(by: .seconds(59))
            #expect("\(task.snapshot)".hasPrefix("running"))
            clock.advance(by: .seconds(1))
            await expectFailure(.idleTimeout) { try await task.value }
        }
    }

    @Test("it is a clock: one can sleep on it, and be cancelled")
    func sleeping() async throws {
        let clock = ManualClock()
        let sleeper = Task { try await clock.sleep(for: .seconds(10)) }
        try await clock.untilSleeping()
        clock.advance(by: .seconds(10))
        try await sleeper.value
        try await clock.sleep(until: clock.now)
        let cancelled = Task { try await clock.sleep(for: .seconds(10)) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let waiter = Task { try await clock.untilWaiting() }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
    }

    /// The value that `untilSleeping` sees now; `nil` if a task sleeps. Without a suspension, so that other work of the
    /// actor cannot run before it returns.
    @MainActor private func seen(_ clock: ManualClock) async throws -> String? {
        do { try await clock.untilSleeping(timeout: .zero) } catch let error as WaitTimedOut { return error.seen }
        return nil
    }

    @Test("a sleeper that an advance has woken does not count, until it sleeps again") @MainActor
    func wokenSleeper() async throws {
        let clock = ManualClock()
        let sleeper = Task { @MainActor in
            // Not `sleep(for:)`, which leaves the actor.
            for _ in 0..<3 { try await clock.sleep(until: clock.now.advanced(by: .seconds(1))) }
        }
        for _ in 0..<3 {
            try await clock.untilSleeping()
            clock.advance(by: .seconds(1))
            let seen = try await seen(clock)
            // The sleeper sleeps again only on this actor; it may leave its sleep on another thread.
            #expect(seen?.hasPrefix("0 tasks asleep") == true, "\(String(describing: seen))")
        }
        try await sleeper.value
        #expect(clock.elapsed == .seconds(3))
    }

    @Test("a sleeper that was cancelled does not count") @MainActor
    func cancelledSleeper() async throws {
        let clock = ManualClock()
        let sleeper = Task { @MainActor in try await clock.sleep(until: clock.now.advanced(by: .seconds(1))) }
        try await clock.untilSleeping()
        sleeper.cancel()
        #expect(try await seen(clock) != nil)
        await #expect(throws: CancellationError.self) { try await sleeper.value }
    }

    /// Many at once, as tests run: the loop waited for ever where a woken sleeper counted.
    @Test("sleeping and advancing in turns comes to an end")
    func turns() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    let clock = ManualClock()
                    let sleeper = Task { for _ in 0..<50 { try await clock.sleep(for: .seconds(1)) } }
                    for _ in 0..<50 {
                        try await clock.untilSleeping()
                        clock.advance(by: .seconds(1))
                    }
                    try await sleeper.value
                }
            }
            try await group.waitForAll()
        }
    }
}
