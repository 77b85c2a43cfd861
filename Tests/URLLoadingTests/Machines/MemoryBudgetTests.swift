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
}
