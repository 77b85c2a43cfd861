// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// RFC 8441: a WebSocket over a stream of a shared connection.
@Suite(.timeLimit(.minutes(4)))
struct WebSocketHTTP2Tests {
    // MARK: Messages

    @Test("messages of a WebSocket are echoed beside other loads of its connection")
    func messagesOfAWebSocketAreEchoedBesideOtherLoadsOfItsConnection() async throws {
        try await withTunnels { server, session in
            server.webSocket("/", .echo)
            server.route("/get") { _ in .ok("here") }
            let socket = session.webSocketTask(server.url("/")).resumed()
            let opening = try await socket.opened
            #expect(opening.response.http?.status == .ok && opening.response.http?.version == .http2)
            let long = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            for message in [
                WebSocketMessage.text(""), .text("grüße"), .data(Data(repeating: 7, count: 70_000)), .data(long),
            ] {
                let sending = Task { try await socket.send(message) }
                try await expect({ try await socket.receive() }, message)
                try await sending.value
                try await session.expect(server.url("/get"), "here")
            }
            try await socket.ping(timeout: .seconds(600))
            let ending = await socket.close()
            #expect(ending.error == nil && !ending.isClosedByServer && ending.close?.code == .normal, "\(ending)")
            #expect(server.counts.accepted == 1)
            // In good order: no RST_STREAM.
            try await server.wait { $0.openStreams == 0 }
            #expect(!server.frames.contains { $0.frame.kind == .resetStream })
            await expectEmpty(session)
        }
    }

    @Test("the request is the extended CONNECT of RFC 8441") func theRequestIsTheExtendedCONNECTOfRFC8441() async throws
    {
        try await withTunnels { server, session in
            var chat = WebSocketTestServer.compressedEcho
            chat.subprotocols = ["b"]
            server.webSocket("/chat", chat)
            var options = WebSocketOptions()
            options.compression = .deflate(minimumSize: 1)
            var request = Request(url: server.url("/chat?room=1"))
            request.headers["Origin"] = "https://page.example"
            let socket = session.webSocketTask(request, protocols: ["a", "b"], options: options).resumed()
            let opening = try await socket.opened
            #expect(opening.subprotocol == "b" && opening.isCompressed)
            try await socket.expectEcho(.text("compressed"))
            await socket.close()
            let seen = try #require(server.requests.first)
            #expect(
                seen.method == .connect && seen.target == "/chat?room=1"
                    && seen.headers["Origin"] == "https://page.example")
            #expect(seen.headers[.secWebSocketVersion] == "13" && seen.headers[.secWebSocketProtocol] == "a, b")
            #expect(
                seen.headers[.secWebSocketKey] == nil && seen.headers[.upgrade] == nil
                    && seen.headers[.connection] == nil)
        }
    }

    /// RFC 7692 §7.1.1: the window of a compressor consists of what was sent.
    @Test("the message after a cancelled one that was compressed and not begun can be read")
    func cancelledBeforeItsBeginning() async throws {
        try await withTunnels { server, session in
            let (gate, received) = (Watched(false), Watched<[WebSocketMessage]>([]))
            var listener = WebSocketTestServer { socket in
                try await gate.wait { $0 }
                while let message = try await socket.receive() { received.change { $0.append(message) } }
            }
            listener.compresses = true
            server.webSocket("/", listener)
            var options = WebSocketOptions()
            options.compression = .deflate(minimumSize: 10)
            let socket = session.webSocketTask(Request(url: server.url("/")), options: options).resumed()
            #expect(try await socket.opened.isCompressed)
            let text = String((0..<200).map { _ in Character(Unicode.Scalar(UInt8.random(in: 97..<123))) })
            try await socket.send(.text("0" + text))
            // Until a ping finds no room: the peer does not read.
            var sent: Int64 = -1
            for _ in 0..<20_000 where socket.snapshot.sent > sent {
                sent = socket.snapshot.sent
                _ = try? await socket.ping(timeout: .nanoseconds(1))
            }
            let other = String(text.reversed())
            let cancelled = Task { try await socket.send(.text("1" + other)) }
            try await Task.sleep(for: .milliseconds(20))
            cancelled.cancel()
            await #expect { try await cancelled.value } throws: { ($0 as? LoadError)?.reason == .cancelled }
            gate.change { $0 = true }
            try await socket.send(.text("2" + other))
            try await received.wait { $0.count == 2 }
            #expect(received.value == [.text("0" + text), .text("2" + other)])
            await socket.close()
            await expectEmpty(session)
        }
    }

    @Test("many WebSockets share a connection") func manyShareAConnection() async throws {
        try await withTunnels { server, session in
            server.webSocket("/", .echo)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        let socket = session.webSocketTask(server.url("/")).resumed()
                        for round in 0..<20 {
                            try await socket.expectEcho(.text("\(number) \(round)"))
                        }
                        await socket.close()
                    }
                }
                try await group.waitForAll()
            }
            #expect(server.counts.accepted == 1)
            await expectEmpty(session)
        }
    }

    // MARK: The consumer's pace

    @Test("messages without a receiver stay with the server") func messagesWithoutAReceiverStayWithTheServer()
        async throws
    {
        try await withTunnels { server, session in
            let sent = Atomic<Int>(0)
            server.webSocket("/") { socket in
                for _ in 0..<256 {
                    try await socket.send(.data(Data(count: 64 * 1024)))
                    sent.add(64 * 1024, ordering: .relaxed)
                }
                _ = try await socket.untilClose()
            }
            server.route("/get") { _ in .ok("here") }
            let socket = session.webSocketTask(server.url("/")).resumed()
            _ = try await socket.opened
            _ = try await socket.receive()
            for _ in 0..<20 { try await session.expect(server.url("/get"), "here") }
            // The stream's window, what the server and the socket hold, and no more of the 16 MiB.
            let count = sent.load(ordering: .relaxed)
            #expect(count < 2 << 20)
            for _ in 1..<256 { _ = try await socket.receive() }
            await socket.close()
            await expectEmpty(session)
        }
    }

    @Test("a server that reads nothing holds the sender up") func aServerThatReadsNothingHoldsTheSenderUp() async throws
    {
        try await withTunnels { server, session in
            server.webSocket("/") { socket in try await socket.stall() }
            server.route("/get") { _ in .ok("here") }
            var options = WebSocketOptions()
            // The close cannot get through either.
            options.closeTimeout = .milliseconds(1)
            let socket = session.webSocketTask(server.url("/"), options: options).resumed()
            let hasSent = Atomic<Bool>(false)
            let sending = Task {
                try await socket.send(.data(Data(count: 4 << 20)))
                hasSent.store(true, ordering: .relaxed)
            }
            _ = try await socket.opened
            for _ in 0..<20 { try await session.expect(server.url("/get"), "here") }
            let isDone = hasSent.load(ordering: .relaxed)
            #expect(!isDone)
            sending.cancel()
            await expectFailure(.cancelled) { try await sending.value }
            #expect(await socket.ended().error?.reason == .writeIncomplete)
            try await server.wait { $0.openStreams == 0 }
            await expectEmpty(session)
        }
    }

    // MARK: Whether

    @Test("a server without SETTINGS_ENABLE_CONNECT_PROTOCOL is not sent an extended CONNECT")
    func aServerWithoutSETTINGSENABLECONNECTPROTOCOLIsNotSentAnExtendedCONNECT() async throws {
        try await withHTTP2 { server, session in
            server.webSocket("/", .echo)
            let socket = session.webSocketTask(server.url("/")).resumed()
            await expectFailure(.webSocketRefused, .remote, .waiting) { try await socket.opened }
            #expect(server.requests.isEmpty)
            await expectEmpty(session)
        }
    }

    enum Kept: CaseIterable, Sendable { case nothing, without, with }

    /// ALPN: a connection that is there is used if its server has tunnels; a new one is made for HTTP/1.1.
    @Test("a WebSocket uses an HTTP/2 connection where one supports it", arguments: Kept.allCases)
    func aConnectionIsChosen(_ kept: Kept) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue(.init())
        var both = HTTPTestServer.TLS(identity)
        both.applicationProtocols = ["h2", "http/1.1"]
        try await withHTTPTestServer(.init(tls: both)) { origin in
            origin.webSocket("/", .echo)
            var old = HTTP2TestServer.Configuration(identity)
            if kept == .with { old.settings.append(.enableConnectProtocol(1)) }
            try await withHTTP2TestServer(old) { server in
                server.route("/get") { _ in .ok("here") }
                server.webSocket("/", .echo)
                let session = Session(
                    .patient.with { $0.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self)) })
                if kept != .nothing { _ = try await session.data(from: server.url("/get")) }
                let socket = session.webSocketTask(kept == .nothing ? origin.url("/") : server.url("/")).resumed()
                switch kept {
                case .nothing, .with:
                    let opening = try await socket.opened
                    #expect(opening.response.http?.version == (kept == .with ? .http2 : .http11))
                    try await socket.expectEcho(.text("x"))
                    await socket.close()
                    #expect(server.counts.accepted == (kept == .with ? 1 : 0))
                case .without:
                    // Another connection, which offers HTTP/1.1 alone; this server has none.
                    try await server.wait { $0.accepted == 2 }
                    socket.cancel()
                }
                await expectEmpty(session)
            }
        }
    }

    enum ProxyUse: CaseIterable, Sendable { case direct, proxied }

    @Test("the connection may lead through a proxy", arguments: ProxyUse.allCases)
    func theConnectionMayLeadThroughAProxy(_ proxyUse: ProxyUse) async throws {
        try await withHosts(proxyUse) { server, session in
            server.webSocket("/", .echo)
            _ = try await session.data(from: url("https://a.host.test:\(server.port)/get"))
            let socket = session.webSocketTask(try url("wss://a.host.test:\(server.port)/")).resumed()
            let opening = try await socket.opened
            #expect(opening.response.http?.version == .http2)
            try await socket.expectEcho(.text("x"))
            await socket.close()
            #expect(server.counts.accepted == 1)
            // Another host's WebSocket takes no stream of it: it gets a connection of its own, for HTTP/1.1.
            let other = session.webSocketTask(try url("wss://b.host.test:\(server.port)/")).resumed()
            try await server.wait { $0.accepted == 2 }
            other.cancel()
            await expectEmpty(session)
        }
    }

    /// RFC 9110 15.5.20: a misdirected request is sent again on a connection of its own, which the server must then
    /// accept.
    @Test("a misdirected WebSocket is opened on another connection", arguments: ProxyUse.allCases)
    func aMisdirectedWebSocketIsOpenedOnAnotherConnection(_ proxyUse: ProxyUse) async throws {
        try await withHosts(proxyUse) { server, session in
            server.route("/") { _ in .status(.misdirectedRequest) }
            _ = try await session.data(from: url("https://a.host.test:\(server.port)/get"))
            let socket = session.webSocketTask(try url("wss://a.host.test:\(server.port)/")).resumed()
            // A new one offers HTTP/1.1 alone; this server has none.
            try await server.wait { $0.accepted == 2 }
            socket.cancel()
            await expectEmpty(session)
        }
    }

    private func withHosts(_ proxyUse: ProxyUse, _ use: (HTTP2TestServer, Session) async throws -> Void) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var server = HTTP2TestServer.Configuration(try authority.issue(.init(names: ["localhost", "*.host.test"])))
        server.settings.append(.enableConnectProtocol(1))
        var configuration = Configuration.patient
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        configuration.networks.resolver = RecordingResolver()
        try await withTestProxy(.init(.socks)) { proxy in
            if proxyUse == .proxied {
                configuration.networks.proxyPolicy = .fixed([
                    try Proxy(.socks5, host: "127.0.0.1", port: proxy.port, resolvesHostNames: true)
                ])
            }
            try await withHTTP2TestServer(server) { server in
                server.route("/get") { _ in .ok("here") }
                try await use(server, Session(configuration))
                #expect((proxy.connections > 0) == (proxyUse == .proxied))
            }
        }
    }

    // MARK: The way there

    @Test("challenges, redirects and cookies are handled as in other loads")
    func challengesRedirectsAndCookiesAreThoseOfAnyLoad() async throws {
        try await withTunnels { server, session in
            server.webSocket("/in", .echo)
            server.route("/") { request in
                guard request.headers[.authorization] != nil else {
                    return .status(
                        .unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"zone\"", .setCookie: "a=1"])
                }
                return .redirect("/in")
            }
            var decisions = Decisions()
            decisions.challenge = Decision { _ in .use(Credential(user: "ada", password: "secret")) }
            let socket = session.webSocketTask(Request(url: server.url("/")), decisions: decisions).resumed()
            let opening = try await socket.opened
            #expect(opening.response.url == server.url("/in"))
            await socket.close()
            #expect(server.requests.map { $0.headers[.cookie] } == [nil, "a=1", "a=1"])
            #expect(server.counts.accepted == 1)
            await expectEmpty(session)
        }
    }

    @Test("a refused WebSocket has the response") func aRefusalIsAnAnswer() async throws {
        try await withTunnels { server, session in
            server.route("/") { _ in .status(.forbidden, headers: ["X": "why"]) }
            let socket = session.webSocketTask(server.url("/")).resumed()
            let error = await failure(.webSocketRefused, .remote, .waiting) { try await socket.opened }
            #expect(error?.webSocketRefusal?.http?.headers["X"] == "why")
            await expectEmpty(session)
        }
    }

    // MARK: Failures

    @Test("the client fails the stream on a faulty frame and sends the reason", arguments: WebSocketFault.all)
    func theClientFailsAndSaysWhy(_ fault: WebSocketFault) async throws {
        try await withTunnels { server, session in
            let heard = Lock<WebSocketClose?>(nil)
            server.webSocket("/", fault.server { close in heard.withLock { $0 = close } })
            var options = WebSocketOptions()
            if fault.needsCompression { options.compression = .deflate() }
            let socket = session.webSocketTask(server.url("/"), options: options).resumed()
            let reason: LoadError.Reason = fault.name.hasPrefix("resets") ? .streamReset : fault.reason
            await expectFailure(reason, .remote, nil, fault.name) { while true { _ = try await socket.receive() } }
            #expect(await socket.ended().error?.reason == reason)
            try await server.wait { $0.openStreams == 0 }
            #expect(heard.withLock { $0?.code } == fault.code, "\(fault)")
            await expectEmpty(session)
        }
    }

    /// The load that reads for all loads also writes their frames, and may get no thread for longer than a stream waits
    /// for the peer's end.
    @Test("the last frame is sent even if the writer is late") func theLastFrameIsSentEvenIfTheWriterIsLate()
        async throws
    {
        let clock = ManualClock()
        let isHeld = Flag()
        let gate = Flag()
        defer { gate.raise() }
        let configuration: (inout Configuration) -> Void = {
            $0.timeouts.idle = nil
            $0.use(clock)
            $0.wireTap = { event in
                guard case .frame(let line, isSent: true, connection: _) = event, line.contains("PING") else { return }
                isHeld.raise()
                gate.waitBlocking()
            }
        }
        try await withHTTP2(.init(), configuration) { server, session in
            server.script { peer in
                try await peer.start(.enableConnectProtocol(1))
                let stream = try await peer.expectRequest().stream
                try await peer.respond(to: stream, .ok, endStream: false)
                try await peer.hold()
                // In one piece: the answer to the PING is delayed until the wrong frame has been processed.
                try await peer.send(.data(stream: stream, [0xA1, 0x01, 0x61]), .ping())
                await peer.untilClosed()
            }
            let socket = session.webSocketTask(server.url("/")).resumed()
            _ = try await socket.opened
            server.release()
            try await isHeld.wait()
            await expectFailure(.malformedFrame, .remote) { _ = try await socket.receive() }
            clock.advance(by: .seconds(1))
            gate.raise()
            _ = try await server.wait(for: .data)
            try await clock.advance(by: .milliseconds(100)) {
                server.frames.contains { $0.frame.kind == .resetStream }
            }
            #expect(server.frames.filter { $0.frame.stream > 0 }.map(\.frame.kind) == [.headers, .data, .resetStream])
            _ = await socket.ended()
            await expectEmpty(session)
        }
    }

    @Test(
        "a wrong handshake response opens no WebSocket",
        arguments: [
            WebSocketHandshakeFault.unaskedProtocol, .twoProtocols, .unaskedExtension, .unknownParameter,
            .windowTooLarge,
            .windowTooSmall, .endsBeforeHead,
        ])
    func aWrongAnswerOpensNothing(_ fault: WebSocketHandshakeFault) async throws {
        try await withTunnels { server, session in
            var broken = WebSocketTestServer.echo
            broken.handshakeFault = fault
            server.webSocket("/", broken)
            var options = WebSocketOptions()
            options.compression = .deflate()
            let socket = session.webSocketTask(Request(url: server.url("/")), protocols: ["a", "b"], options: options)
                .resumed()
            let reason: LoadError.Reason = fault == .endsBeforeHead ? .streamReset : .malformedWebSocketHandshake
            await expectFailure(reason, .remote, nil, fault.rawValue) { try await socket.opened }
            try await server.wait { $0.openStreams == 0 }
            await expectEmpty(session)
        }
    }

    @Test("a faulty frame fails the stream or the connection", arguments: HTTP2TunnelFault.all)
    func theStreamOrTheConnectionFails(_ fault: HTTP2TunnelFault) async throws {
        try await withHTTP2TestServer { server in
            server.script(fault.script)
            try await withSession(.http2) { session in
                let socket = session.webSocketTask(server.url("/")).resumed()
                switch fault.outcome {
                case .fails(let reasons):
                    let reason = await reason { while true { _ = try await socket.receive() } }
                    #expect(reasons.contains { $0 == reason }, "\(fault): \(String(describing: reason))")
                case .says(let text):
                    try await expect({ try await socket.receive() }, .text(text))
                    await socket.close()
                }
                _ = socket
            }
        }
    }

    // MARK: Left at every point

    @Test("a WebSocket abandoned during any call leaves no stream", arguments: WebSocketOpeningTests.Leaving.allCases)
    func aWebSocketAbandonedDuringAnyCallLeavesNoStream(_ leaving: WebSocketOpeningTests.Leaving) async throws {
        for inside in 0..<4 {
            try await withTunnels { server, session in
                server.webSocket("/") { socket in try await socket.stall() }
                var socket: WebSocketTask? = session.webSocketTask(server.url("/"))
                let load = try #require(socket?.load)
                socket?.resume()
                _ = try await socket?.opened
                let call = WebSocketOpeningTests.Leaving.call(inside, of: socket)
                await pause()
                await leaving.leave(&socket, call, session)
                socket = nil
                await load.over()
                try await server.wait { $0.openStreams == 0 }
                await expectEmpty(session, "\(inside)")
            }
        }
    }

    @Test("WebSockets abandoned at random moments leave the others undisturbed") func leftAtAnyMomentTheOthersGoOn()
        async throws
    {
        try await withTunnels { server, session in
            server.webSocket("/", .echo)
            server.route("/get") { _ in .ok("here") }
            let witness = session.webSocketTask(server.url("/")).resumed()
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<8 {
                    group.addTask {
                        var random = SeededGenerator(seed: UInt64(worker))
                        for round in 0..<25 {
                            let socket = session.webSocketTask(server.url("/")).resumed()
                            let call = Task {
                                while true {
                                    try await socket.send(
                                        .data(Data(count: (worker + 1) * 1_000 * (round % 5 * 30 + 1))))
                                    _ = try await socket.receive()
                                }
                            }
                            for _ in 0..<Int.random(in: 0..<4, using: &random) { await pause() }
                            if Bool.random(using: &random) { socket.cancel() } else { call.cancel() }
                            _ = await call.result
                            if round.isMultiple(of: 5) { _ = try? await session.data(from: server.url("/get")) }
                        }
                    }
                }
            }
            for number in 0..<10 {
                try await witness.expectEcho(.text("\(number)"))
            }
            await witness.close()
            try await server.wait { $0.openStreams == 0 }
            #expect(server.counts.accepted == 1)
            await expectEmpty(session)
        }
    }

    private func reason(_ call: () async throws -> Void) async -> LoadError.Reason? {
        do { try await call() } catch { return (error as? LoadError)?.reason }
        return nil
    }

    private func withTunnels(_ use: (HTTP2TestServer, Session) async throws -> Void) async throws {
        var configuration = HTTP2TestServer.Configuration()
        configuration.settings.append(.enableConnectProtocol(1))
        try await withHTTP2(configuration, { $0.timeouts.idle = nil }, use)
    }
}
