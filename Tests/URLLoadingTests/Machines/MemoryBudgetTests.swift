// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// The memory of the buffers into which bodies are read.
struct MemoryBudgetTests {
    @Test("buffers count until their last chunk is released, and none exceeds the limit")
    func limit() {
        let budget = MemoryBudget(limit: 100)
        var held = [budget.buffer(capacity: 60), budget.buffer(capacity: 40)]
        #expect(held.allSatisfy { $0 != nil } && budget.used == 100)
        #expect(budget.buffer(capacity: 1) == nil && budget.used == 100)
        held.removeFirst()
        #expect(budget.used == 40 && budget.buffer(capacity: 60) != nil && budget.used == 40)
        held = []
        #expect(budget.used == 0)
    }

    @Test("a reader that keeps all of a large body gets small pieces once the large buffers are used up")
    func keptPieces() async throws {
        let size = 160 << 20
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: Int64(size))) }
            let session = Session(.ephemeral)
            let (count, last) = try await session.load(Request(url: origin.url())) { _, body in
                var pieces: [Chunk] = []
                var large = 0
                for try await piece in body {
                    // Later pieces are dropped, so that the test itself takes little memory.
                    if large < MemoryBudget.reading.limit * 2 { pieces.append(piece) }
                    large += piece.count
                    #expect(MemoryBudget.reading.used <= MemoryBudget.reading.limit + (1 << 20))
                }
                return (large, pieces.last?.count ?? 0)
            }
            #expect(count == size && last <= 32 << 10)
            session.invalidateAndCancel()
        }
    }

    /// Notes the most that the read buffers of the process have taken whenever a load has an event.
    private struct Gauge: LoadObserver {
        let most = Watched(-1)
        func observe(_ event: LoadEvent, of load: LoadIdentity) {
            most.change { $0 = max($0, MemoryBudget.reading.used) }
        }
    }

    @Test("the read buffers of 200 bodies that are collected at once stay within the budget of the process")
    func collectedBodies() async throws {
        let count = 200
        let size = 600_000
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: Int64(size))) }
            let gauge = Gauge()
            let session = Session(
                .ephemeral.with {
                    $0.connections.maximumPerHost = count
                    $0.observers = [gauge]
                })
            let url = origin.url()
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<count { group.addTask { try await session.data(from: url).0.count } }
                for try await loaded in group { #expect(loaded == size) }
            }
            // A buffer beyond the limit is counted until it is refused: one for each thread that reads.
            let limit = MemoryBudget.reading.limit
            #expect((0...limit + limit / 8).contains(gauge.most.value))
            session.invalidateAndCancel()
        }
    }

    @Test("HTTP/2 reads into small buffers once the large ones are used up, and into large ones again later")
    func http2() {
        let budget = MemoryBudget(limit: 300 << 10)
        var input = HTTP2Input(budget: budget)
        var held: [Chunk] = []
        /// Fills the room, and leaves so many bytes of it unread; returns the room's size.
        func fill(leaving rest: Int = 0) -> Int {
            let room = input.makeRoom()
            for index in room.indices { room[index] = UInt8(truncatingIfNeeded: index) }
            input.received(room.count, filled: true)
            let count = input.bytes.count
            var lent = ObjectIdentifier?.none
            held.append(input.chunk(0..<count - rest, isAwaited: true, beside: &lent))
            input.consume(count - rest)
            return room.count
        }
        #expect(fill() == 32 << 10)
        #expect((1...2).map { _ in fill() } == [64 << 10, 128 << 10] && budget.used == 192 << 10)
        // A buffer of 256 KiB would exceed the limit; what is unread fits the small one.
        let last = held.last.map { [UInt8]($0) }
        #expect(fill(leaving: 20_000) == 32 << 10 && budget.used == 192 << 10)
        #expect(held[2].withUnsafeBytes { [UInt8]($0) } == last)
        let rest = [UInt8](input.bytes)
        #expect(fill() == (64 << 10) - 20_000 && budget.used == 256 << 10)
        #expect([UInt8](held[4]).starts(with: rest))
        held = []
        // That of the buffer itself.
        #expect(budget.used == 64 << 10)
        #expect((1...3).map { _ in fill() }.contains(128 << 10))
    }

    @Test("A stream's pieces keep one read buffer: what follows a copied piece is not copied, nor what lies in it")
    func http2Pieces() {
        var input = HTTP2Input(budget: MemoryBudget(limit: 1 << 20))
        var lent = ObjectIdentifier?.none
        var pieces: [Chunk] = []
        /// Returns whether a piece of so many bytes lies in the buffer of the last read.
        func isLent(_ count: Int, isAwaited: Bool = true) -> Bool {
            let start = input.bytes.baseAddress
            let piece = input.chunk(0..<count, isAwaited: isAwaited, beside: &lent)
            input.consume(count)
            pieces.append(piece)
            return piece.withUnsafeBytes { $0.baseAddress == start && $0.count == count }
        }
        func read() { input.received(input.makeRoom().count, filled: true) }
        read()
        // The rest of a frame that was read before, whole frames, and the beginning of one.
        #expect(!isLent(3_000) && isLent(8_000) && isLent(8_000, isAwaited: false) && isLent(100))
        read()
        // Another buffer would be kept.
        #expect(!isLent(8_000) && !isLent(100))
        lent = nil
        #expect(!isLent(8_000, isAwaited: false) && isLent(8_000))
        withExtendedLifetime(pieces) {}
    }
}
