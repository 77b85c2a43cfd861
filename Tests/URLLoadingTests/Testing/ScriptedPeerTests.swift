// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct ScriptedPeerTests {
    static func session(_ peer: ScriptedPeer, _ clock: ManualClock? = nil) -> Session {
        var configuration = Configuration.ephemeral
        configuration.connect(to: peer)
        if let clock { configuration.use(clock) }
        return Session(configuration)
    }

    @Test("exchanges as they are written, on one connection, whatever the scheme")
    func keepAlive() async throws {
        let peer = ScriptedPeer([
            .expect("GET /a HTTP/1.1\r\nHost: nowhere.test\r\n"), .takeUntil("\r\n\r\n"), .give(""),
            .give("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), .giveBytes([0x68, 0x69]),
            .takeUntil("\r\n\r\n"), .give("HTTP/1.1 204 No Content\r\n\r\n"),
        ])
        let session = Self.session(peer)
        try await session.expect(url("https://nowhere.test/a"), "hi")
        #expect(peer.failures == ["connection 1: 2 steps left"])
        try await session.expect(url("https://nowhere.test/b"), "")
        #expect(peer.failures.isEmpty && peer.connections == 1)
        #expect(String(decoding: peer.written(), as: UTF8.self).contains("\r\n\r\nGET /b HTTP/1.1\r\n"))
        await expectEmpty(session)
    }

    @Test("a script stops at a hold until it is released, then continues or loses the connection")
    func holding() async throws {
        for ending in [ScriptedPeer.Step.lose, .give("ngth: 0\r\n\r\n")] {
            let peer = ScriptedPeer([.takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Le"), .hold, ending])
            let session = Self.session(peer)
            let load = RunningLoad(session, Request(url: try url("http://nowhere.test/")))
            try await peer.untilHeld()
            peer.release()
            if case .lose = ending {
                #expect(await load.reason == .connectionLost)
            } else {
                #expect(await load.reason == nil)
            }
            await expectEmpty(session)
        }
    }

    @Test("silence in the middle of a field, on a clock that is moved")
    func silence() async throws {
        let peer = ScriptedPeer([.takeUntil("\r\n\r\n"), .give("HTTP/1.1 200 OK\r\nContent-Le"), .hold])
        let clock = ManualClock()
        let session = Self.session(peer, clock)
        let load = RunningLoad(session, Request(url: try url("http://nowhere.test/")))
        try await peer.untilHeld()
        clock.advance(by: .seconds(60))
        #expect(await load.reason == .idleTimeout)
        await expectEmpty(session)
    }

    @Test("unexpected bytes, and bytes expected in vain, are reported")
    func complaints() async throws {
        let peer = ScriptedPeer([.expect("POST")], [.end], [.end])
        let session = Self.session(peer)
        await expectFailure(.connectionLost) { try await session.data(from: try url("http://nowhere.test/")) }
        #expect(peer.failures.count == 2 && peer.failures[0].hasPrefix("connection 1: \"GET / HTTP/1.1"))
        #expect(peer.failures[1] == "2 connections not made")
        peer.release(connection: 9)
        let none = Self.session(ScriptedPeer())
        await expectFailure(.connectionRefused, .remote) { try await none.data(from: try url("http://nowhere.test/")) }
        await expectEmpty(session)
    }
}
