import Synchronization
import Testing
import URLLoadingIO

/// Whoever asks the kernel inline must not keep what was meant for the poller's thread.
@Suite struct PollerWakeUpTests {
    @Test(.timeLimit(.minutes(1))) func timersFireWhileTasksPollThemselves() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        let token = StopToken()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 1...2 {
                let client = try await SocketTransport.connect(to: listener.address, token)
                let server = try await listener.accept(token)
                for end in [client, server] { group.addTask { try await Self.play(end, serves: end === client, token) } }
            }
            for _ in 1...2000 { try await Poller.shared.sleep(until: Poller.now() + 20_000, StopToken()) }
            token.stop(.cancelled)
            try await group.waitForAll()
        }
    }

    /// Each ball that comes in goes out again.
    private static func play(_ end: SocketTransport, serves: Bool, _ token: StopToken) async throws {
        token.attach(end.slot)
        defer {
            token.detach(end.slot)
            end.close()
        }
        let ball = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
        defer { ball.deallocate() }
        ball[0] = 1
        do throws(IOFailure) {
            if serves { try await end.send(UnsafeRawBufferPointer(ball), token) }
            while try await end.receive(into: ball, token) > 0 { try await end.send(UnsafeRawBufferPointer(ball), token) }
        } catch { if token.stopReason == nil { throw error } }
    }
}
