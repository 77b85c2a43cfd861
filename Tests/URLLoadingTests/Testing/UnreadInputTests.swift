// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport

@testable import URLLoadingTesting

/// How a test server waits while it reads nothing.
@Suite(.timeLimit(.minutes(4)))
struct UnreadInputTests {
    private final class Checks: Sendable {
        private let number = Atomic<Int>(0)
        var count: Int { number.load(ordering: .relaxed) }
        func add() { number.add(1, ordering: .relaxed) }
    }

    @Test("input that stays unread does not end a wait over and over; the client's end ends it")
    func unreadInput() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let near = try await SocketTransport.connect(to: listener.address, StopToken())
        let far = try await listener.accept(StopToken())
        let checks = Checks()
        async let stalled: Void = far.waitWithoutReading(StopToken()) {
            checks.add()
            return false
        }
        try await eventually(checks.count) { $0 > 0 }
        for _ in 0..<10 {
            try await StreamPeer(near).send("never read")
            try await Task.sleep(for: .milliseconds(5))
        }
        // One for each notification. A wait that the unread input ends at once is repeated many thousand times.
        #expect(checks.count < 100)
        near.close()
        await stalled
        far.close()
        withExtendedLifetime(listener) {}
    }
}
