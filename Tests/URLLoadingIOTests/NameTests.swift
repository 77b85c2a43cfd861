// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing
import URLLoadingCSystem
import URLLoadingTestSupport

@testable import URLLoadingIO

/// Name lookups, their threads, and the race between addresses.
@Suite(.timeLimit(.minutes(4)))
struct NameTests {
    private static let one = SocketAddress.ipv4((192, 0, 2, 1), port: 0)

    /// Lookup threads wait here until the test releases them.
    private final class Gate: Sendable {
        private let isOpen = Flag()
        private let most = Atomic<Int>(0)
        var mostInside: Int { most.load(ordering: .acquiring) }
        let entered = Watched(0)
        func open() { isOpen.raise() }
        func pass() {
            _ = most.max(entered.add(), ordering: .acquiringAndReleasing)
            isOpen.waitBlocking()
            entered.add(-1)
        }
    }

    @Test("A name that does not exist is asked for again only in a family that was left out")
    func families() {
        #expect(SystemResolver.leftOut(hasIPv4: true, hasIPv6: true) == nil)
        #expect(SystemResolver.leftOut(hasIPv4: false, hasIPv6: false) == nil)
        #expect(SystemResolver.leftOut(hasIPv4: true, hasIPv6: false) == AF_INET6)
        #expect(SystemResolver.leftOut(hasIPv4: false, hasIPv6: true) == AF_INET)
    }

    @Test("Equal lookups share one call, different ones do not, and results are not kept")
    func coalescing() async throws {
        let gate = Gate()
        let asked = Lock<[String]>([])
        let resolver = SystemResolver(threads: BlockingThreads(limit: 4)) { name in
            asked.withLock { $0.append(name) }
            gate.pass()
            return .success([Self.one])
        }
        let lookups = (0..<10).map { number in
            Task { try await resolver.addresses(of: number < 8 ? "a.example" : "b\(number).example", StopToken()) }
        }
        try await gate.entered.wait { $0 >= 3 }
        // Waits until the remaining callers are inside, too.
        try await SocketTests.settle()
        gate.open()
        for lookup in lookups { #expect(try await lookup.value == [Self.one]) }
        #expect(asked.withLock { $0.count { $0 == "a.example" } } <= 2)
        let before = asked.withLock { $0.count }
        _ = try await resolver.addresses(of: "a.example", StopToken())
        #expect(asked.withLock { $0.count } == before + 1)
    }

    @Test("Callers of one lookup share its failure")
    func sharedFailure() async throws {
        let gate = Gate()
        let calls = Atomic<Int>(0)
        let resolver = SystemResolver(threads: BlockingThreads(limit: 1)) { name in
            calls.add(1, ordering: .relaxed)
            gate.pass()
            return .failure(IOFailure(.hostNotFound(name), .resolve))
        }
        let token = StopToken()
        let lookups = (0..<5).map { _ in Task { try await resolver.addresses(of: "a.example", token) } }
        try await gate.entered.wait { $0 >= 1 }
        gate.open()
        for lookup in lookups {
            let error = await #expect(throws: IOFailure.self) { try await lookup.value }
            guard case .hostNotFound("a.example")? = error?.code else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
        #expect(calls.load(ordering: .relaxed) <= 5)
    }

    @Test("A cancelled caller leaves at once; the lookup continues for the others")
    func cancelledCaller() async throws {
        let gate = Gate()
        defer { gate.open() }
        let resolver = SystemResolver(threads: BlockingThreads(limit: 1)) { _ in
            gate.pass()
            return .success([Self.one])
        }
        let token = StopToken()
        let leaves = Task { try await resolver.addresses(of: "a.example", token) }
        try await gate.entered.wait { $0 >= 1 }
        let stays = Task { try await resolver.addresses(of: "a.example", StopToken()) }
        token.stop(.cancelled)
        let error = await #expect(throws: IOFailure.self) { try await leaves.value }
        #expect(stopReason(error) == .cancelled)
        #expect(error?.operation == .resolve)
        gate.open()
        #expect(try await stays.value == [Self.one])
    }

    @Test("A lookup that all its callers have left is not joined by later ones")
    func abandoned() async throws {
        let gate = Gate()
        defer { gate.open() }
        let calls = Atomic<Int>(0)
        let resolver = SystemResolver(threads: BlockingThreads(limit: 2)) { _ in
            if calls.add(1, ordering: .relaxed).oldValue == 0 { gate.pass() }
            return .success([Self.one])
        }
        let token = StopToken()
        let leaves = Task { try await resolver.addresses(of: "a.example", token) }
        try await gate.entered.wait { $0 >= 1 }
        token.stop(.cancelled)
        await #expect(throws: IOFailure.self) { try await leaves.value }
        #expect(try await resolver.addresses(of: "a.example", StopToken()) == [Self.one])
    }

    @Test("A library that is missing is looked for once, one that is found is loaded once")
    func foundLibrary() {
        let loads = Atomic<Int>(0)
        let missing = FoundLibrary<String> {
            loads.add(1, ordering: .relaxed)
            return nil
        }
        #expect(missing.library == nil && missing.library == nil)
        if case .missing = missing.answer {} else { Issue.record("not missing") }
        #expect(loads.load(ordering: .relaxed) == 1)
        let found = FoundLibrary {
            loads.add(1, ordering: .relaxed)
            return "found"
        }
        #expect(found.library == "found" && found.library == "found")
        #expect(loads.load(ordering: .relaxed) == 2)
    }

    @Test("The lock of a library is free while the library is loaded, which is other code")
    func loadingLibrary() {
        let (isLoading, hasOther, hasEnded) = (ThreadSignal(), ThreadSignal(), ThreadSignal())
        let loads = Atomic<Int>(0)
        let isFree = Atomic<Bool>(false)
        let found = FoundLibrary<String> {
            guard loads.add(1, ordering: .relaxed).oldValue == 0 else { return "second" }
            isLoading.raise()
            isFree.store(hasOther.wait(nanoseconds: 60_000_000_000), ordering: .relaxed)
            return "first"
        }
        BlockingThreads(limit: 1).run {
            _ = found.library
            hasEnded.raise()
        }
        #expect(isLoading.wait(nanoseconds: 60_000_000_000))
        #expect(found.library == "second")
        hasOther.raise()
        #expect(hasEnded.wait(nanoseconds: 60_000_000_000))
        // The first answer stays.
        #expect(isFree.load(ordering: .relaxed) && found.library == "second")
    }

    @Test("The system resolver resolves localhost and does not resolve .invalid")
    func system() throws {
        let addresses = try SystemResolver.getaddrinfo("localhost").get()
        #expect(!addresses.isEmpty)
        #expect(addresses.allSatisfy { $0.port == 0 })
        #expect(Set(addresses).count == addresses.count)
        #expect(throws: IOFailure.self) { try SystemResolver.getaddrinfo("nobody.invalid").get() }
    }

    @Test("Work is done by no more threads than the limit", arguments: [1, 3])
    func threads(_ limit: Int) async throws {
        let gate = Gate()
        let threads = BlockingThreads(limit: limit)
        let done = Watched(0)
        for _ in 0..<20 {
            threads.run {
                gate.pass()
                done.add()
            }
        }
        try await gate.entered.wait { $0 >= limit }
        gate.open()
        try await done.wait { $0 == 20 }
        #expect(gate.mostInside == limit)
        // Idle threads are used again.
        threads.run { done.add() }
        try await done.wait { $0 == 21 }
    }

    @Test("A single thread works in the order of submission")
    func order() async throws {
        let threads = BlockingThreads(limit: 1)
        let seen = Watched<[Int]>([])
        for number in 0..<100 { threads.run { seen.append(number) } }
        let numbers = try await seen.wait { $0.count == 100 }
        #expect(numbers == Array(0..<100))
    }

    // MARK: The race

    @Test("attempts start at intervals, or when an attempt has failed (RFC 8305)")
    func schedule() {
        var race = ConnectRace(count: 3, delay: 100)
        #expect(race.step(now: 0) == .start(0))
        #expect(race.step(now: 0) == .wait(until: 100))
        #expect(race.step(now: 99) == .wait(until: 100))
        #expect(race.step(now: 100) == .start(1))
        #expect(race.step(now: 120) == .wait(until: 200))
        race.failed()
        #expect(race.step(now: 120) == .start(2))
        #expect(race.step(now: 900) == .wait(until: .max))
        race.failed()
        #expect(race.step(now: 900) == .wait(until: .max))
        race.failed()
        #expect(race.step(now: 900) == .giveUp)
        var none = ConnectRace(count: 0)
        #expect(none.step(now: 0) == .giveUp)
        var failing = ConnectRace(count: 2, delay: 100)
        #expect(failing.step(now: 0) == .start(0))
        failing.failed()
        #expect(failing.step(now: 1) == .start(1))
        #expect(failing.step(now: 1) == .wait(until: .max))
        failing.failed()
        #expect(failing.step(now: 1) == .giveUp)
    }

    /// `localhost` without IPv6: ::1 cannot be reached, and 127.0.0.1 refuses.
    @Test("a refusal tells more than an address family that this machine lacks, and the lack of descriptors most")
    func telling() {
        func failure(_ code: Int32) -> IOFailure { IOFailure(.system(code), .connect) }
        func reported(_ codes: Int32...) -> String {
            var reported: IOFailure?
            for code in codes { reported = ConnectRace.failure(reported, failure(code)) }
            return reported.map { "\($0.code)" } ?? ""
        }
        #expect(reported(EADDRNOTAVAIL, ECONNREFUSED) == "\(failure(ECONNREFUSED).code)")
        #expect(reported(ENETUNREACH, ETIMEDOUT, ECONNREFUSED) == "\(failure(ETIMEDOUT).code)")
        #expect(reported(ECONNREFUSED, EAFNOSUPPORT) == "\(failure(ECONNREFUSED).code)")
        #expect(reported(ENETUNREACH, EADDRNOTAVAIL) == "\(failure(ENETUNREACH).code)")
        #expect(reported(ECONNREFUSED, EMFILE, ENETUNREACH) == "\(failure(EMFILE).code)")
    }

    @Test("address families alternate, beginning with the first (RFC 8305 §4)")
    func interleaving() {
        func four(_ last: UInt8) -> SocketAddress { .ipv4((192, 0, 2, last), port: 1) }
        func six(_ last: UInt8) -> SocketAddress { .ipv6([UInt8](repeating: 0, count: 15) + [last], port: 1) }
        #expect(
            ConnectRace.interleave([six(1), six(2), four(1), six(3), four(2)]) == [
                six(1), four(1), six(2), four(2), six(3),
            ])
        #expect(ConnectRace.interleave([four(1), four(2), six(1)]) == [four(1), six(1), four(2)])
        #expect(ConnectRace.interleave([four(1)]) == [four(1)])
        #expect(ConnectRace.interleave([]) == [])
    }

    @Test("The first address that connects wins; if all fail, the first failure is thrown")
    func connecting() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        let dead = try SocketListener(.ipv4((127, 0, 0, 2), port: 0))
        dead.close()
        let winner = try await ConnectRace.connect([dead.address, listener.address], StopToken())
        #expect(winner.peer == listener.address)
        winner.close()
        let error = await #expect(throws: IOFailure.self) {
            try await ConnectRace.connect([dead.address, dead.address.withPort(1)], StopToken())
        }
        #expect(systemError(error) == ECONNREFUSED)
        let none = await #expect(throws: IOFailure.self) { try await ConnectRace.connect([], StopToken()) }
        guard case .invalidAddress? = none?.code else {
            Issue.record("\(String(describing: none))")
            return
        }
    }

    @Test("A stopped token ends a hanging race, and releases its slots")
    func stopped() async throws {
        // This backlog is full: later connections get no answer.
        let full = try SocketListener(.ipv4((127, 0, 0, 1), port: 0), backlog: 0)
        defer { full.close() }
        let filler = try await SocketTransport.connect(to: full.address, StopToken())
        defer { filler.close() }
        let token = StopToken(idleLimit: .max)
        let race = Task { try await ConnectRace.connect([full.address, full.address, full.address], token) }
        token.stop(.deadline)
        let error = await #expect(throws: IOFailure.self) { try await race.value.close() }
        #expect(stopReason(error) == .deadline)
        #expect(error?.operation == .connect)
    }
}
