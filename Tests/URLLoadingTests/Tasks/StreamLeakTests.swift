// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Alone in a process, like `LeakTests`, and for the same reason.
@Suite struct StreamLeakTests {
    @Test("an ended stream leaves no objects") func anEndedStreamLeavesNoObjects() async throws {
        await #expect(processExitsWith: .success) {
            try await StreamLeakTests.streams()
            let (slots, sockets) = (Poller.shared.slotsInUse, openSockets())
            for _ in 1...3 { try await StreamLeakTests.streams() }
            #expect(Poller.shared.slotsInUse == slots)
            #expect(openSockets() == sockets)
        }
    }

    static func streams() async throws {
        for (wait, apply) in StreamEndingTests.Wait.all {
            try await StreamEndingTests.end(wait, apply, isSecure: false)
        }
        for isSecure in [false, true] {
            let tests = StreamTaskTests()
            try await tests.writtenBytesAreEchoed(isSecure: isSecure)
            try await tests.readingIsClosedUnderAReader(isSecure: isSecure)
            try await StreamStressTests.endRandomly(20, isSecure: isSecure)
        }
        let security = StreamSecurityTests()
        try await security.inMidStream()
        try await security.injectedBytesEndTheStream()
    }
}

/// Readers, writers, a close and the end of the stream, whichever comes first.
@Suite(.timeLimit(.minutes(4)))
struct StreamStressTests {
    @Test("concurrent ends of a stream leave no objects", arguments: [false, true])
    func concurrentEndsOfAStreamLeaveNoObjects(isSecure: Bool) async throws {
        try await Self.endRandomly(60, isSecure: isSecure)
    }

    static func endRandomly(_ count: Int, isSecure: Bool) async throws {
        let rig = try StreamRig()
        // A stream that ends early enough never comes to be a connection.
        let over = StopToken()
        let echoing = Watched(0)
        let serving = Task {
            await withTaskGroup(of: Void.self) { group in
                while let transport = try? await rig.listener.accept(over) {
                    echoing.add()
                    group.addTask {
                        defer { echoing.add(-1) }
                        guard let peer = try? await rig.peer(transport, secure: isSecure) else { return }
                        try? await peer.echo()
                        peer.close()
                    }
                }
            }
        }
        for round in 0..<count {
            let task = rig.task(secure: isSecure).resumed()
            var random = SeededGenerator(seed: UInt64(round))
            let delays = (0..<2).map { _ in Duration.microseconds(Int.random(in: 0...3000, using: &random)) }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { do { for try await _ in task.input {} } catch {} }
                group.addTask {
                    for _ in 1...8 { try? await task.write([UInt8](repeating: 7, count: 20_000)) }
                    try? await task.closeWrite()
                }
                group.addTask {
                    try? await Task.sleep(for: delays[0])
                    switch round % 4 {
                    case 0: task.cancel()
                    case 1: task.closeRead()
                    case 2:
                        task.suspend()
                        task.resume()
                    default: break
                    }
                }
                if round % 5 == 0 {
                    try? await Task.sleep(for: delays[1])
                    group.cancelAll()
                }
            }
            task.cancel()
            let error = await task.ended()
            #expect(
                error == nil || error?.reason == .cancelled || round % 4 == 1 || round % 5 == 0,
                "seed \(round): \(error?.description ?? "")")
            try await echoing.wait { $0 == 0 }
        }
        over.stop(.cancelled)
        await serving.value
        await rig.finish()
    }
}
