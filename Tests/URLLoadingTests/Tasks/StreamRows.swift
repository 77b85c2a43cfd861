// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Checklist 39: stream tasks.
@Suite(.timeLimit(.minutes(4)))
struct StreamRows {
    @Test("a stream task is a raw TCP connection for reading and writing, by methods and by sequences (checklist 39)")
    func stream() async throws {
        let rig = try StreamRig()
        let task = rig.task()
        guard case .suspended = task.snapshot.state else { return #expect(Bool(false), "\(task)") }
        task.resume()
        let peer = try await rig.accept()
        async let echo: Void = peer.echo()
        try await task.write(Data("one ".utf8))
        let (first, isEnd) = try await task.read(atLeast: 4, atMost: 4)
        #expect(first == Data("one ".utf8) && !isEnd)
        try await task.output.write([UInt8]("two".utf8))
        try await task.output.close()
        var rest = Data()
        for try await chunk in task.input { rest.append(chunk) }
        #expect(rest == Data("two".utf8))
        try await echo
        #expect(await task.ended() == nil)
        peer.close()
        await rig.finish()
    }

    @Test("a stream may use TLS from the beginning, or start it later (checklist 39)")
    func secure() async throws {
        let rig = try StreamRig()
        for fromTheBeginning in [true, false] {
            let task = rig.task(secure: fromTheBeginning).resumed()
            async let accepted = rig.accept(secure: true)
            if !fromTheBeginning { try await task.startSecureConnection() }
            try await task.write(Data("x".utf8))
            let peer = try await accepted
            try await expect({ try await peer.text(1) }, "x")
            #expect(task.isSecure)
            task.cancel()
            #expect(await task.ended()?.reason == .cancelled)
            peer.close()
        }
        await rig.finish()
    }

    @Test("streams take no connection slots from loads (checklist 39)")
    func limits() async throws {
        let rig = try StreamRig { $0.connections.maximumPerHost = 1 }
        var streams: [(StreamTask, StreamPeer)] = []
        for _ in 1...3 { streams.append(try await rig.connected()) }
        #expect(rig.session.connectionsDescription == "empty")
        for (task, peer) in streams {
            task.cancel()
            peer.close()
        }
        await rig.finish()
    }
}
