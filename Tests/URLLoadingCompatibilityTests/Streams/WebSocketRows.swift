// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

extension URLSessionWebSocketTask.Message {
    var words: String {
        switch self {
        case .data(let data): "data \(data.count)"
        case .string(let text): "string \(text)"
        }
    }
}

@Suite(.timeLimit(.minutes(4)))
struct WebSocketRows {
    private static func routes(_ origin: HTTPTestServer) {
        var echo = WebSocketTestServer.echo
        echo.subprotocols = ["chat.v1"]
        origin.webSocket("/echo", echo)
        origin.webSocket("/leave") { socket in
            try await socket.send(.text("bye"))
            try await socket.close(WebSocketClose(.policyViolation, reason: "late"))
        }
        origin.webSocket("/large") { socket in
            try await socket.send(.data(Data(count: 3_000_000)))
            _ = try await socket.untilClose()
        }
        origin.webSocket("/silent") { socket in
            socket.answersPings = false
            try await socket.stall()
        }
        origin.route("/none") { _ in .ok("no") }
    }

    @Test(
        "messages go in both directions, in the order of the calls; didOpen, didClose, metrics and complete follow"
    )
    func echo() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Listener()
            let session = delegate.session()
            let socket = session.webSocketTask(with: origin.url("/echo"), protocols: ["chat.v2", "chat.v1"])
            #expect(socket.state == .suspended && socket.closeCode == .invalid && socket.maximumMessageSize == 1 << 20)
            let got = Box<String>()
            let received = Counter()
            let sent = Counter()
            for number in 0..<20 {
                socket.send(.string("\(number)")) { error in
                    if error == nil, OperationQueue.current === session.delegateQueue { sent.add() }
                }
                socket.receive { result in
                    got.add((try? result.get().words) ?? "none")
                    received.add()
                }
            }
            socket.resume()
            await received.reaches(20)
            await sent.reaches(20)
            #expect(got.all == (0..<20).map { "string \($0)" })
            try await socket.send(.data(Data(count: 5)))
            let last = try await socket.receive()
            #expect(last.words == "data 5")
            try await socket.sendPing()
            let pong = Counter()
            socket.sendPing { if $0 == nil { pong.add() } }
            await pong.reaches(1)
            #expect(socket.state == .running && socket.countOfBytesReceived > 0)
            socket.cancel(with: .goingAway, reason: Data("done".utf8))
            await delegate.done.reaches(1)
            #expect(delegate.words.all == ["open chat.v1", "close 1001 done", "metrics", "complete 0"])
            #expect(socket.closeCode == .goingAway && socket.state == .completed && socket.error == nil)
            await #expect(throws: URLError.self) { try await socket.send(.string("late")) }
            session.finishTasksAndInvalidate()
            await delegate.heard.reaches(5)
            #expect(delegate.words.all.last == "invalid")
        }
    }

    /// Implements one of the two methods.
    final class Half: NSObject, URLSessionWebSocketDelegate, Sendable {
        let closed = Box<Int>()
        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
            didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
        ) { closed.add(closeCode.rawValue) }
    }

    @Test("the session's delegate is notified of a WebSocket where the task's own does not implement the method")
    func halfDelegate() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Listener()
            let half = Half()
            let session = delegate.session()
            let socket = session.webSocketTask(with: origin.url("/leave"))
            socket.delegate = half
            socket.resume()
            await delegate.done.reaches(1)
            #expect(delegate.words.all == ["open -", "metrics", "complete 0"] && half.closed.all == [1008])
            session.finishTasksAndInvalidate()
        }
    }

    @Test("the server's close frame is reported, with its code and reason")
    func closed() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Listener()
            let session = delegate.session()
            let socket = session.webSocketTask(with: origin.url("/leave")).resumed()
            let message = try await socket.receive()
            #expect(message.words == "string bye")
            await #expect(throws: URLError.self) { _ = try await socket.receive() }
            await delegate.done.reaches(1)
            #expect(delegate.words.all == ["open -", "close 1008 late", "metrics", "complete 0"])
            #expect(socket.closeCode == .policyViolation && socket.closeReason == Data("late".utf8))
            session.finishTasksAndInvalidate()
        }
    }

    @Test(
        "a response that does not switch protocols fails the task and all its waiting calls",
        arguments: ["/none", "/missing"])
    func refused(_ path: String) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Listener()
            let session = delegate.session()
            let socket = session.webSocketTask(with: origin.url(path))
            let failed = Counter()
            socket.send(.string("a")) { if $0 is URLError { failed.add() } }
            socket.receive { if case .failure(let error) = $0, error is URLError { failed.add() } }
            socket.sendPing { if $0 is URLError { failed.add() } }
            socket.resume()
            await delegate.done.reaches(1)
            await failed.reaches(3)
            #expect(delegate.words.all == ["metrics", "complete -1011"])
            session.finishTasksAndInvalidate()
        }
    }

    @Test(
        "a message beyond maximumMessageSize ends the socket; a limit raised while it is open admits it",
        arguments: [false, true])
    func limit(_ isRaised: Bool) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Listener()
            let session = delegate.session()
            let socket = session.webSocketTask(with: origin.url("/large"))
            if isRaised { socket.maximumMessageSize = 4_000_000 }
            socket.resume()
            if isRaised {
                let message = try await socket.receive()
                #expect(message.words == "data 3000000")
                socket.cancel(with: .normalClosure, reason: nil)
                await delegate.done.reaches(1)
                #expect(delegate.words.all == ["open -", "close 1000 -", "metrics", "complete 0"])
            } else {
                await #expect(throws: URLError.self) { _ = try await socket.receive() }
                await delegate.done.reaches(1)
                #expect(
                    delegate.words.all.first == "open -" && delegate.words.all.last?.hasPrefix("complete -") == true)
            }
            session.finishTasksAndInvalidate()
        }
    }

    @Test(
        "cancel ends the socket and its waiting calls; invalidateAndCancel does as well", arguments: [false, true],
        [false, true])
    func cancelled(_ invalidates: Bool, _ isResumed: Bool) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Listener()
            let session = delegate.session()
            let socket = session.webSocketTask(with: origin.url("/silent"))
            let failed = Counter()
            socket.receive { if case .failure = $0 { failed.add() } }
            socket.sendPing { if $0 != nil { failed.add() } }
            if isResumed {
                socket.resume()
                await delegate.heard.reaches(1)
            }
            if invalidates { session.invalidateAndCancel() } else { socket.cancel() }
            await delegate.done.reaches(1)
            await failed.reaches(2)
            #expect(delegate.words.all.filter { $0.hasPrefix("complete") } == ["complete -999"])
            #expect(delegate.words.all.first == (isResumed ? "open -" : "metrics"))
            session.invalidateAndCancel()
            origin.releaseStalls()
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("cancel(with:) ends a socket whose server does not read, and the sends that wait for it")
    func closedWhileSending() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let clock = ManualClock()
            let delegate = Listener()
            let configuration = URLSessionConfiguration.ephemeral
            configuration.adjust { $0.use(clock) }
            let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            let socket = session.webSocketTask(with: origin.url("/silent"))
            let failed = Counter()
            for _ in 0..<2 { socket.send(.data(Data(count: 32 << 20))) { if $0 != nil { failed.add() } } }
            socket.resume()
            // The server reads nothing, and a WebSocket task reports no progress.
            try await eventually(socket.countOfBytesSent) { $0 > 0 }
            socket.cancel(with: .normalClosure, reason: nil)
            for _ in 0..<2_000 where socket.state != .completed {
                clock.advance(by: .seconds(1))
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(socket.state == .completed)
            session.invalidateAndCancel()
            await failed.reaches(2)
            origin.releaseStalls()
        }
    }

    @Test("cancelling the receiving task ends the call; the next receive gets the message")
    func cancelledCall() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = URLSession(configuration: .ephemeral)
            let socket = session.webSocketTask(with: origin.url("/echo")).resumed()
            let waiting = Task { try await socket.receive() }
            try await Task.sleep(for: .milliseconds(5))
            waiting.cancel()
            await #expect(throws: URLError.self) { _ = try await waiting.value }
            try await socket.send(.string("still here"))
            let message = try await socket.receive()
            #expect(message.words == "string still here")
            session.invalidateAndCancel()
        }
    }

    @Test(
        "the handshake sends a request's fields and subprotocols, and handles redirects, challenges and cookies"
    )
    func request() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            origin.route("/from") { _ in .redirect("/echo") }
            let session = URLSession(configuration: .ephemeral)
            var request = URLRequest(url: origin.url("/from"))
            request.setValue("https://me.example", forHTTPHeaderField: "Origin")
            request.setValue("chat.v1", forHTTPHeaderField: "Sec-WebSocket-Protocol")
            let socket = session.webSocketTask(with: request).resumed()
            try await socket.send(.string("a"))
            _ = try await socket.receive()
            #expect(origin.requests.map { $0.headers["Origin"] } == ["https://me.example", "https://me.example"])
            #expect(origin.requests.last?.headers["Sec-WebSocket-Protocol"] == "chat.v1")
            #expect((socket.response as? HTTPURLResponse)?.statusCode == 101)
            session.invalidateAndCancel()
        }
    }

    @Test("the handlers of pings are called in the order of the pings, each once", arguments: [2, 20])
    func pongOrder(count: Int) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            for round in 0..<10 {
                let socket = URLSession.shared.webSocketTask(with: origin.url("/echo"))
                let order = Box<Int>()
                let called = Counter()
                socket.resume()
                for number in 0..<count {
                    socket.sendPing { _ in
                        order.add(number)
                        called.add()
                    }
                }
                // In half of the rounds the pings end with the socket.
                if round % 2 == 1 { socket.cancel() }
                await called.reaches(count)
                #expect(order.all == Array(0..<count))
                socket.cancel()
            }
        }
    }

    @Test("cancel() directly after cancel(with:) sends the code of cancel(with:)")
    func codeOfCancel() async throws {
        let codes = Box<UInt16>()
        try await withHTTPTestServer { origin in
            origin.webSocket("/closed") { socket in
                if let close = try await socket.untilClose() { codes.add(close.code.rawValue) }
            }
            for _ in 0..<20 {
                let delegate = Listener()
                let socket = delegate.session().webSocketTask(with: origin.url("/closed"))
                socket.resume()
                try await socket.sendPing()
                socket.cancel(with: .policyViolation, reason: nil)
                socket.cancel()
            }
            try await origin.wait { $0.open == 0 }
        }
        #expect(codes.all == Array(repeating: 1008, count: 20))
    }

    /// Implements none of the methods of `URLSessionWebSocketDelegate`.
    private final class SilentDelegate: NSObject, URLSessionWebSocketDelegate {}

    @Test("a delegate may leave out the methods about WebSockets")
    func silentDelegate() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = URLSession(configuration: .ephemeral, delegate: SilentDelegate(), delegateQueue: nil)
            let socket = session.webSocketTask(with: origin.url("/echo"))
            socket.resume()
            try await socket.send(.string("hello"))
            #expect(try await socket.receive().words == "string hello")
            socket.cancel(with: .normalClosure, reason: nil)
            session.finishTasksAndInvalidate()
        }
    }
}
