// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import URLLoadingIO

/// A thread that polls the kernel inline must not take the wake-ups of the poller's thread: the timers of the tasks
/// below would wait for the next event, and while all of them sleep there is none.
@Suite struct PollerWakeUpTests {
    @Test("Timers fire although tasks poll for themselves", .timeLimit(.minutes(5)))
    func timersFireAlthoughTasksPollThemselves() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 1...24 {
                let client = try await SocketTransport.connect(to: listener.address, StopToken())
                let server = try await listener.accept(StopToken())
                group.addTask { try await Self.play(client, rounds: 20, serves: true) }
                group.addTask { try await Self.play(server, rounds: 20, serves: false) }
            }
            try await group.waitForAll()
        }
    }

    /// Exchanges messages, pauses, and repeats.
    private static func play(_ end: SocketTransport, rounds: Int, serves: Bool) async throws {
        let token = StopToken()
        token.attach(end.slot)
        defer {
            token.detach(end.slot)
            end.close()
        }
        let ball = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
        defer { ball.deallocate() }
        ball[0] = 1
        for _ in 1...rounds {
            for _ in 1...20 {
                if serves { try await end.send(UnsafeRawBufferPointer(ball), token) }
                guard try await end.receive(into: ball, token) > 0 else { return }
                if !serves { try await end.send(UnsafeRawBufferPointer(ball), token) }
            }
            if serves { try await Poller.shared.sleep(until: Poller.now() + 50_000, token) }
        }
    }

    #if DEBUG
    @Test(
        "A long wait beside data that no notification tells of is found",
        arguments: ["lost", "noted", "read", "brief", "gathering"])
    func lostWakeUps(_ kind: String) async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        let near = try await SocketTransport.connect(to: listener.address, StopToken())
        let far = try await listener.accept(StopToken())
        if kind == "gathering" { #expect(near.notifyReadable(at: 100)) }
        try await send([1], on: far)
        try await SocketTests.settle()
        switch kind {
        // A reader takes the notification, and reads from somewhere else.
        case "lost", "brief": _ = near.slot.beginRead()
        case "read":
            var byte: UInt8 = 0
            let progress = try withUnsafeMutableBytes(of: &byte) { bytes throws in try near.read(into: bytes) }
            #expect(progress == .moved(1))
        default: break
        }
        let start = Poller.now() - (kind == "brief" ? 0 : LostWakeUp.leastWait)
        #expect(LostWakeUp.isLost(at: near.slot, waitingSince: start) == (kind == "lost"))
        withExtendedLifetime(far) {}
    }
    #endif
}
