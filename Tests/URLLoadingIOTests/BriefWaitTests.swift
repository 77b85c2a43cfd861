// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import URLLoadingTestSupport

@testable import URLLoadingIO

/// Waits in the thread of the task, during which the notifications of the socket are off.
@Suite(.timeLimit(.minutes(4)))
struct BriefWaitTests {
    /// Two connected sockets; the notifications of the first are off, as after many quick answers.
    private func mutedPair() async throws -> (near: SocketTransport, far: SocketTransport) {
        let (near, far) = try await socketPair()
        for _ in 0..<BriefWait.quickAnswersToMute { near.slot.brief.note(isQuick: true) }
        // A wait that finds a notification mutes nothing.
        while !isMuted(near) { try await answer(on: far, to: near) }
        return (near, far)
    }

    private func isMuted(_ socket: SocketTransport) -> Bool { socket.slot.brief.isMuted.load(ordering: .relaxed) }

    /// Sends a byte, which a brief wait finds and a read takes.
    private func answer(on far: SocketTransport, to near: SocketTransport) async throws {
        try await send([7], on: far)
        #expect(Poller.shared.waitBriefly(near.slot))
        try read(1, near)
    }

    private func read(_ count: Int, _ socket: SocketTransport) throws {
        var buffer = [UInt8](repeating: 0, count: 100)
        let progress = try buffer.withUnsafeMutableBytes { try socket.read(into: $0) }
        #expect(progress == .moved(count))
    }

    @Test("A socket without quick answers is not waited for in the thread")
    func unknown() async throws {
        let (near, far) = try await socketPair()
        try await send([1], on: far)
        #expect(!Poller.shared.waitBriefly(near.slot))
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        slot.brief.note(isQuick: true)
        #expect(!Poller.shared.waitBriefly(slot))
    }

    @Test("A brief wait ends after 100 µs, and none follows until an answer was quick again")
    func late() async throws {
        let (near, far) = try await mutedPair()
        // The socket may still be notified of the bytes before.
        while Poller.shared.waitBriefly(near.slot) { _ = near.slot.beginRead() }
        try await send([1], on: far)
        #expect(!Poller.shared.waitBriefly(near.slot))
        let quickAnswers = near.slot.brief.quickAnswers.load(ordering: .relaxed)
        #expect(quickAnswers == 0)
        await Poller.shared.park(near.slot, .read, StopToken())
        try read(1, near)
    }

    @Test(
        "What came while notifications were off is notified to a task that parks", arguments: ["bytes", "end", "reset"])
    func earlier(_ kind: String) async throws {
        let (near, far) = try await mutedPair()
        switch kind {
        case "bytes": try await send([1], on: far)
        case "end": far.finishWriting()
        default: far.abort()
        }
        try await SocketTests.settle()
        _ = near.slot.readable.take()
        await Poller.shared.park(near.slot, .read, StopToken())
        // A reset is notified in any case: its mark ends the wait before it begins.
        #expect(!isMuted(near) || near.slot.mayHoldInput)
        #expect(near.hasPendingInput(askingKernel: true))
        withExtendedLifetime(far) {}
    }

    @Test("What comes after a task has parked is notified")
    func later() async throws {
        let (near, far) = try await mutedPair()
        try await SocketTests.settle()
        async let isWoken: Void = parked(near)
        while !near.slot.hasWaiter { await Task.yield() }
        try await send([1], on: far)
        await isWoken
        try read(1, near)
    }

    private func parked(_ socket: SocketTransport) async {
        // The socket was read to its end, and was notified of that input late.
        _ = socket.slot.readable.take()
        _ = socket.slot.beginRead()
        await Poller.shared.park(socket.slot, .read, StopToken())
    }

    @Test("A slot that relays its notifications has them on")
    func relayed() async throws {
        let (near, far) = try await mutedPair()
        let slot = Poller.shared.borrowSlot()
        defer {
            near.slot.unrelay()
            Poller.shared.returnSlot(slot)
        }
        near.slot.relay(to: slot)
        #expect(!isMuted(near))
        withExtendedLifetime(far) {}
    }

    @Test("A task that waits to send is notified")
    func sending() async throws {
        let (near, far) = try await mutedPair()
        async let sent: Void = send([UInt8](repeating: 1, count: 8 << 20), on: near)
        var left = 8 << 20
        while left > 0 { left -= try await receive(1, from: far).count }
        try await sent
    }

    @Test("A task that waits for the body it sends is woken by what the peer sends")
    func waitingForPiece() async throws {
        let (near, far) = try await mutedPair()
        near.slot.wakeWriterForReads(true)
        defer { near.slot.wakeWriterForReads(false) }
        async let isWoken: Void = waitedForInput(near)
        try await SocketTests.settle()
        try await send([1], on: far)
        await isWoken
        try read(1, near)
    }

    private func waitedForInput(_ socket: SocketTransport) async {
        // Like a writer that was told of room before.
        _ = socket.slot.writable.take()
        while !socket.hasPendingInput(askingKernel: true) {
            await Poller.shared.parkUntimed(socket.slot, StopToken())
        }
    }

    @Test("Input without a notification is pending", arguments: ["bytes", "end", "nothing"])
    func pending(_ kind: String) async throws {
        let (near, far) = try await mutedPair()
        switch kind {
        case "bytes": try await send([1], on: far)
        case "end": far.finishWriting()
        default: break
        }
        try await SocketTests.settle()
        #expect(near.hasPendingInput(askingKernel: false) == (kind != "nothing"))
        withExtendedLifetime(far) {}
    }

    @Test("A slot that is lent again knows nothing of earlier waits")
    func again() async throws {
        let (near, far) = try await mutedPair()
        let slot = near.slot
        near.close()
        far.close()
        #expect(!Poller.shared.waitBriefly(slot))
    }
}
