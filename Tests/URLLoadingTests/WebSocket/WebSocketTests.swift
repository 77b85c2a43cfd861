// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

@Suite(.timeLimit(.minutes(4)))
struct WebSocketTests {
    // MARK: Messages

    @Test("messages are echoed", arguments: [false, true])
    func messagesAreEchoed(isSecure: Bool) async throws {
        try await withEcho(isSecure) { session, url in
            let socket = session.webSocketTask(url)
            #expect("\(socket)".hasPrefix("websocket suspended 0/?"))
            socket.resume()
            let opening = try await socket.opened
            #expect(opening.response.http?.status == .switchingProtocols)
            #expect(opening.subprotocol == nil && !opening.isCompressed)
            for message in samples {
                try await socket.send(message)
                try await expect({ try await socket.receive() }, message)
            }
            let ending = await socket.close(WebSocketClose(.normal, reason: "done"))
            #expect(ending.error == nil && !ending.isClosedByServer && ending.close?.code == .normal, "\(ending)")
            await expectEmpty(session)
        }
    }

    private var samples: [WebSocketMessage] {
        [
            .text(""), .data(Data()), .text("hello"), .text("grüße, 世界, 👋"), .data(Data([0, 255, 1])),
            .data(Data(repeating: 7, count: 125)), .data(Data(repeating: 7, count: 126)),
            .text(String(repeating: "x", count: 65_536)),
            .data(Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })),
        ]
    }

    private func withEcho(
        _ isSecure: Bool = false, _ server: WebSocketTestServer = .echo, _ use: (Session, URL) async throws -> Void
    ) async throws {
        if isSecure {
            try await withSecureOrigin { origin, configuration in
                origin.webSocket("/", server)
                try await use(Session(configuration), origin.url("/"))
            }
        } else {
            try await withHTTPTestServer { origin in
                origin.webSocket("/", server)
                try await use(Session(.patient), origin.webSocketURL("/"))
            }
        }
    }

    /// A WebSocket to the echo, closed at the end.
    private func withSocket(_ use: (WebSocketTask) async throws -> Void) async throws {
        try await withEcho { session, url in
            let socket = session.webSocketTask(url).resumed()
            try await use(socket)
            await socket.close()
            await expectEmpty(session)
        }
    }

    @Test("received messages are an asynchronous sequence") func messagesAreASequence() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                for number in 1...3 { try await socket.send(.text("\(number)"), frameSize: 1) }
                try await socket.close(WebSocketClose(.goingAway, reason: "bye"))
                _ = try await socket.untilClose()
            }
            let session = Session(.patient)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            var messages: [WebSocketMessage] = []
            for try await message in socket.messages { messages.append(message) }
            #expect(messages == [.text("1"), .text("2"), .text("3")])
            let ending = await socket.ended()
            #expect(
                ending.isClosedByServer && ending.close == WebSocketClose(.goingAway, reason: "bye")
                    && ending.error == nil)
            let error = await failure(.webSocketClosed) { try await socket.receive() }
            #expect(error?.webSocketClose?.code == .goingAway)
            await expectFailure(.webSocketClosed) { try await socket.send(.text("late")) }
            await expectFailure(.webSocketClosed) { try await socket.ping() }
            await expectEmpty(session)
        }
    }

    @Test("an abnormal close is an error of the sequence") func anUnusualCloseIsAnErrorOfTheSequence() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                try await socket.close(WebSocketClose(.internalError, reason: "broken"))
                _ = try await socket.untilClose()
            }
            let session = Session(.patient)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            let error = await failure(.webSocketClosed, .remote) { for try await _ in socket.messages {} }
            #expect(error?.webSocketClose == WebSocketClose(.internalError, reason: "broken"))
            await expectEmpty(session)
        }
    }

    @Test("a scope opens a WebSocket and closes it") func aScopeOpensAndCloses() async throws {
        try await withHTTPTestServer { origin in
            let closes = Lock<[WebSocketClose?]>([])
            origin.webSocket("/") { socket in
                if try await socket.receive() != nil { try await socket.send(.text("answer")) }
                let close = try await socket.untilClose()
                closes.withLock { $0.append(close) }
            }
            let session = Session(.patient)
            let request = Request(url: origin.webSocketURL("/"))
            let answer = try await session.webSocket(request) { socket in
                try await socket.send(.text("question"))
                return try await socket.receive()
            }
            #expect(answer == .text("answer"))
            struct Trouble: Error {}
            await #expect(throws: Trouble.self) {
                try await session.webSocket(request) { _ in throw Trouble() }
            }
            #expect(closes.withLock { $0.map { $0?.code } } == [.normal, .goingAway])
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }

    // MARK: Several at a time

    @Test("messages of several tasks are sent whole") func messagesOfSeveralTasksAreSentWhole() async throws {
        try await withSocket { socket in
            let sizes = (0..<20).map { $0 % 2 == 0 ? 10 + $0 : 300_000 + $0 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for size in sizes {
                    group.addTask {
                        try await socket.send(.data(Data(repeating: UInt8(truncatingIfNeeded: size), count: size)))
                    }
                }
                group.addTask {
                    var heard: [Int] = []
                    for try await case .data(let data) in socket.messages {
                        #expect(data.allSatisfy { $0 == UInt8(truncatingIfNeeded: data.count) })
                        heard.append(data.count)
                        if heard.count == sizes.count { break }
                    }
                    #expect(heard.sorted() == sizes.sorted())
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("a second concurrent receive is refused") func aSecondReceiverIsRefused() async throws {
        try await withSocket { socket in
            _ = try await socket.opened
            let first = Task { try await socket.receive() }
            try await socket.eventually { $0.isReceiving }
            await expectFailure(.webSocketBusy, .local) { try await socket.receive() }
            try await socket.send(.text("for the first"))
            try await expect({ try await first.value }, .text("for the first"))
        }
    }

    @Test("a cancelled receive loses no message") func aCancelledReceiveLosesNothing() async throws {
        try await withSocket { socket in
            _ = try await socket.opened
            let first = Task { try await socket.receive() }
            try await socket.eventually { $0.isReading }
            first.cancel()
            await expectFailure(.cancelled) { try await first.value }
            try await socket.expectEcho(.text("one"))
        }
    }

    // MARK: Pings

    @Test("pings are answered with and without a receiver") func pingsAreAnsweredWithAndWithoutAReceiver() async throws
    {
        try await withSocket { socket in
            let time = try await socket.ping(timeout: .seconds(600))
            #expect(time > .zero)
            let receiver = Task { try await socket.receive() }
            try await socket.eventually { $0.isReading }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 { group.addTask { _ = try await socket.ping(timeout: .seconds(600)) } }
                try await group.waitForAll()
            }
            try await socket.send(.text("x"))
            _ = try await receiver.value
        }
    }

    @Test("pings of the server are answered without a receiver") func pingsOfTheServerAreAnsweredWithoutAReceiver()
        async throws
    {
        try await withHTTPTestServer { origin in
            let pongs = Lock<[[UInt8]]>([])
            origin.webSocket("/") { socket in
                try await socket.ping([1])
                try await socket.ping([2])
                try await socket.ping([3])
                _ = try await socket.receive()
                pongs.withLock { $0 = socket.pongs }
                try await socket.close(WebSocketClose(.normal))
                _ = try await socket.untilClose()
            }
            let session = Session(.patient)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            // The idle timer does it, sooner or later.
            try await socket.eventuallySent()
            try await socket.send(.text("now"))
            #expect(await socket.ended().close?.code == .normal)
            // Of those that came together the last.
            #expect(pongs.withLock { $0.last } == [3])
            await expectEmpty(session)
        }
    }

    @Test("a silent server is noticed by the ping interval") func aSilentServerIsNoticedByThePingInterval() async throws
    {
        let clock = ManualClock()
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                socket.answersPings = false
                _ = try await socket.receive()
            }
            let session = Session(.patient.with { $0.use(clock) })
            var options = WebSocketOptions()
            options.pingInterval = .seconds(30)
            let socket = session.webSocketTask(origin.webSocketURL("/"), options: options).resumed()
            _ = try await socket.opened
            clock.advance(by: .seconds(31))
            try await socket.eventuallySent()
            clock.advance(by: .seconds(31))
            let error = await socket.ended().error
            #expect(error?.reason == .pingTimeout && error?.detail == "no answer within \(Duration.seconds(30))")
            await expectEmpty(session)
        }
    }

    @Test("a socket that the server closed ends within twenty milliseconds, whatever timer was set before")
    func aClosedSocketEndsSoon() async throws {
        let clock = ManualClock()
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                try await socket.send(.text("last"))
                try await socket.close(WebSocketClose(.normal))
                _ = try await socket.untilClose()
            }
            let session = Session(.patient.with { $0.use(clock) })
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            #expect(try await socket.receive() == .text("last"))
            await expectFailure(.webSocketClosed) { _ = try await socket.receive() }
            let hasEnded = Flag()
            async let ending = {
                defer { hasEnded.raise() }
                return await socket.ended()
            }()
            // Less than the second of the timer that was set after the first message.
            for _ in 0..<45 where !hasEnded.value {
                clock.advance(by: .milliseconds(20))
                try await Task.sleep(for: .milliseconds(10))
            }
            #expect(hasEnded.value)
            clock.advance(by: .seconds(2))
            _ = await ending
            await expectEmpty(session)
        }
    }

    @Test("a large message without a receiver does not count as silence") func aLargeMessageHoldsUpThePong()
        async throws
    {
        let clock = ManualClock()
        let size = 256 * 1024
        try await withHTTPTestServer { origin in
            let hasSent = Flag()
            origin.webSocket("/") { socket in
                try await socket.send(.data(Data(count: size)))
                hasSent.raise()
                _ = try await socket.untilClose()
            }
            let session = Session(.patient.with { $0.use(clock) })
            var options = WebSocketOptions()
            options.pingInterval = .seconds(30)
            options.readAhead = 64 * 1024
            let socket = session.webSocketTask(origin.webSocketURL("/"), options: options).resumed()
            _ = try await socket.opened
            try await hasSent.wait()
            for _ in 0..<4 {
                clock.advance(by: .seconds(31))
                try await Task.sleep(for: .milliseconds(10))
            }
            #expect(try await socket.receive() == .data(Data(count: size)))
            await socket.close()
            await expectEmpty(session)
        }
    }

    @Test("a ping without a timeout sets no timer") func aPingWithoutATimeoutSetsNoTimer() async throws {
        let clock = ManualClock()
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in _ = try await socket.untilClose() }
            let session = Session(.patient.with { $0.use(clock) })
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            try await socket.ping(timeout: nil)
            let count = clock.time.scheduled
            for _ in 0..<100 { try await socket.ping(timeout: nil) }
            #expect(clock.time.scheduled <= count + 2)
            await socket.close()
            await expectEmpty(session)
        }
    }

    // MARK: Compression

    @Test("compressed messages are echoed", arguments: [false, true])
    func compressedMessagesComeBack(forgetting: Bool) async throws {
        try await withEcho(false, .compressedEcho) { session, url in
            var options = WebSocketOptions()
            options.compression = .deflate(minimumSize: 20, noContextTakeover: forgetting)
            let socket = session.webSocketTask(url, options: options).resumed()
            #expect(try await socket.opened.isCompressed)
            let text = String(repeating: "the same again, ", count: 10_000)
            for message in [
                WebSocketMessage.text("short"), .text(text), .text(""), .text(text), .data(Data(text.utf8)),
            ] {
                try await socket.send(message)
                try await expect({ try await socket.receive() }, message)
            }
            #expect(socket.snapshot.sent < 20_000)
            await socket.close()
            await expectEmpty(session)
        }
    }

    // MARK: Back-pressure

    @Test("messages without a receiver stay with the server") func messagesWithoutAReceiverStayWithTheServer()
        async throws
    {
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                let piece = WebSocketMessage.data(Data(repeating: 1, count: 1 << 20))
                for _ in 0..<100 { try await socket.send(piece) }
            }
            let session = Session(.patient)
            let socket = session.webSocketTask(origin.webSocketURL("/")).resumed()
            _ = try await socket.opened
            // The idle timer fires twice.
            try await Task.sleep(for: .milliseconds(2_200))
            #expect(socket.snapshot.received < 1 << 20)
            #expect(socket.load.input.map { $0.held <= 128 * 1024 } ?? false)
            var count = 0
            while count < 100 {
                guard case .data(let data) = try await socket.receive() else { break }
                #expect(data.count == 1 << 20)
                count += 1
            }
            #expect(count == 100)
            socket.cancel()
            await expectEmpty(session)
        }
    }
}

extension HTTPTestServer {
    /// With the scheme of WebSockets.
    func webSocketURL(_ path: String) -> URL { URL(string: "ws" + url(path).absoluteString.dropFirst(4)) ?? url(path) }
}

extension WebSocketTask {
    /// Waits until the state fulfils a condition. A call changes it when it begins to wait, of which nothing notifies.
    fileprivate func eventually(
        file: StaticString = #fileID, line: UInt = #line, _ isSo: (WebSocketState) -> Bool
    ) async throws {
        try await URLLoadingTestSupport.eventually(load.state.withLock { isSo($0) }, file: file, line: line) { $0 }
    }

    /// Waits until a frame was sent. The count of sent bytes is part of the snapshot, of which there are no events.
    fileprivate func eventuallySent(file: StaticString = #fileID, line: UInt = #line) async throws {
        try await URLLoadingTestSupport.eventually(load.sentCount.load(ordering: .relaxed), file: file, line: line) {
            $0 > 0
        }
    }
}
