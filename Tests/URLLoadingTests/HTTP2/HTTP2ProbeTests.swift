// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Network paths that fail silently.
@Suite(.timeLimit(.minutes(4)))
struct HTTP2ProbeTests {
    @Test("streams on a dead path end, and the error says why")
    func deadPath() async throws {
        let clock = ManualClock()
        try await withHTTP2(
            clock: clock,
            {
                $0.timeouts.idle = nil
                $0.connections.http2PingInterval = .seconds(15)
            }
        ) { server, session in
            server.route("/") { _ in .ok("ok") }
            server.script(onConnection: 1) { peer in
                _ = try await peer.acceptRequest()
                let second = try await peer.expectRequest()
                try await peer.respond(to: second.stream, body: [1], endStream: false)
                // The server does not respond from now on.
                while true { _ = try await peer.receive() }
            }
            let first = session.dataTask(from: server.url("/")).resumed()
            _ = try await server.wait(for: .headers)
            let second = session.dataTask(from: server.url("/")).resumed()
            _ = try await second.response
            let ended = Watched(0)
            let failures = [first, second].map { task in
                Task { () -> LoadError? in
                    defer { ended.add() }
                    do throws(LoadError) { _ = try await task.value } catch { return error }
                    return nil
                }
            }
            // In small steps, so that probes can be answered.
            try await clock.advance(by: .milliseconds(500)) { ended.value == 2 }
            let all = [await failures[0].value, await failures[1].value]
            #expect(all.map { $0?.reason } == [.connectionLost, .truncated])
            #expect(all.allSatisfy { $0?.detail?.contains("PING") == true })
            // The server has read all that was sent when it reads the end.
            try await server.wait { $0.scriptsEnded == 1 }
            #expect(server.frames.count { $0.frame.kind == .ping } == 1)
            try await session.expect(server.url("/"), "ok")
        }
    }

    @Test("a silent peer that answers PINGs is kept")
    func silentPeer() async throws {
        let clock = ManualClock()
        try await withHTTP2(
            clock: clock,
            {
                $0.timeouts.idle = nil
                $0.connections.http2PingInterval = .seconds(15)
                $0.connections.http2PingTimeout = .seconds(15)
            }
        ) { server, session in
            let said = Watched(0)
            server.script { peer in
                let request = try await peer.acceptRequest()
                said.add()
                for _ in 1...5 {
                    try await peer.answerControl(try await peer.expect(.ping))
                    said.add()
                }
                try await peer.respond(to: request.stream, body: Array("ok".utf8))
                await peer.untilClosed()
            }
            async let late: Void = session.expect(server.url("/"), "ok")
            for count in 1...5 {
                // The clock advances after the last answer was received: the real time that this takes does not count.
                try await said.wait { $0 >= count }
                try await clock.untilWaiting()
                clock.advance(by: .seconds(15))
            }
            try await late
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("many loads on an idle connection send one PING")
    func onePing() async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock, { $0.connections.http2PingInterval = .seconds(15) }) { server, session in
            server.route("/") { _ in .ok("ok") }
            try await session.expect(server.url("/"), "ok")
            clock.advance(by: .seconds(20))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<30 { group.addTask { try await session.expect(server.url("/"), "ok") } }
                try await group.waitForAll()
            }
            #expect(server.frames.count { $0.frame.kind == .ping && !$0.frame.isAck } == 1)
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("SETTINGS that are never acknowledged end the connection")
    func settings() async throws {
        let clock = ManualClock()
        try await withHTTP2TestServer { server in
            server.script(onConnection: 1) { peer in
                try await peer.send(.settings())
                while true { _ = try await peer.receive() }
            }
            var configuration = Configuration.http2
            configuration.use(clock)
            configuration.timeouts.idle = nil
            // With a ping interval the server's SETTINGS are waited for; at this interval no PING is sent meanwhile.
            configuration.connections.http2PingInterval = .seconds(24 * 3600)
            try await withSession(configuration) { session in
                let isOver = Flag()
                async let error: LoadError? = {
                    defer { isOver.raise() }
                    do throws(LoadError) { _ = try await session.data(from: server.url("/")) } catch { return error }
                    return nil
                }()
                try await clock.advance(by: .milliseconds(500)) { isOver.value }
                let found = await error
                #expect(found?.reason == .http2Violation && "\(String(describing: found))".contains("SETTINGS_TIMEOUT"))
                #expect(try await server.wait(for: .goAway).frame.errorCode?.rawValue == 4)
            }
        }
    }
}
