// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// `urlload ws` in pipes, on a terminal, and interrupted.
@Suite(.timeLimit(.minutes(4)))
struct WebSocketCommandTests {
    private func withEcho(_ use: (HTTPTestServer, String) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/", .echo)
            try await use(origin, origin.url().absoluteString.replacingOccurrences(of: "http:", with: "ws:"))
        }
    }

    @Test func `Lines are sent, messages are written`() async throws {
        try await withEcho { origin, target in
            let result = try await Running.urlload(
                ["ws", "--wait=1", "-H", "X: y", target], input: "one\n\nthrée\nfour")
            #expect(result.code == 0 && result.text == "one\n\nthrée\nfour\n", "\(result.text) \(result.errors)")
            #expect(origin.requests.first?.headers["X"] == "y")
        }
    }

    @Test func `The end of the input closes with 1000`() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                _ = try await socket.receive()
                let close = try await socket.untilClose()
                #expect(close?.code == .normal)
            }
            let result = try await Running.urlload(["ws", origin.url().absoluteString], input: "last words\n")
            #expect(result.code == 0 && result.text == "", "\(result.errors)")
        }
    }

    @Test func `An input that ends before the socket is open closes the socket once it is open`() async throws {
        try await withHTTPTestServer { origin in
            // The input is empty, so it has ended long before the server answers the handshake.
            origin.inject(.init(.requestHead, .delay(.milliseconds(300))))
            origin.webSocket("/") { socket in
                let close = try await socket.untilClose()
                #expect(close?.code == .normal)
            }
            let result = try await Running.urlload(["ws", origin.url().absoluteString])
            #expect(result.code == 0 && result.errors == "", "\(result.code) \(result.errors)")
        }
    }

    @Test func `--wait receives until the server closes`() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                _ = try await socket.receive()
                for number in 1...3 {
                    try await Task.sleep(for: .milliseconds(50))
                    try await socket.send(.text("\(number)"))
                }
                try await socket.close(WebSocketClose(.normal))
                _ = try await socket.untilClose()
            }
            let result = try await Running.urlload(["ws", "--wait", origin.url().absoluteString], input: "count\n")
            #expect(result.code == 0 && result.text == "1\n2\n3\n", "\(result.text) \(result.errors)")
        }
    }

    @Test func `A long message through a pipe comes back complete`() async throws {
        try await withEcho { _, target in
            let text = String(repeating: "0123456789", count: 300_000)
            let result = try await Running.urlload(["ws", "--binary", "--wait=3", target], input: text)
            #expect(
                result.code == 0 && result.output.count == text.utf8.count && result.text == text,
                "\(result.output.count) \(result.errors)")
        }
    }

    @Test func `Exit codes tell how the WebSocket ended`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/refused") { _ in .status(.forbidden) }
            origin.webSocket("/bad") { socket in try await socket.close(WebSocketClose(.internalError, reason: "sorry"))
            }
            origin.webSocket("/gone") { socket in socket.reset() }
            func run(_ path: String) async throws -> (Int32, String) {
                let result = try await Running.urlload(["ws", "--wait", origin.url(path).absoluteString])
                return (result.code, result.errors)
            }
            let refused = try await run("/refused")
            let bad = try await run("/bad")
            let gone = try await run("/gone")
            #expect(refused.0 == 22 && refused.1.contains("403"), "\(refused)")
            #expect(bad.0 == 56 && bad.1.contains("sorry"), "\(bad)")
            #expect(gone.0 == 56, "\(gone)")
            let silent = try await Running.urlload(["ws", "-s", "-k", origin.url("/refused").absoluteString])
            #expect(silent.code == 22 && silent.errors == "", "\(silent.errors)")
            let none = try await Running.urlload(["ws"])
            let wrong = try await Running.urlload(["ws", "ftp://a.example/"])
            #expect(none.code == 2 && wrong.code == 2 && none.errors.contains("--help"))
            let help = try await Running.urlload(["ws", "--help"])
            #expect(help.code == 0 && help.text.contains("--wait"))
        }
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `A signal ends the command, and the server gets a close`(_ signal: Int32) async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/") { socket in
                try await socket.send(.text("hello"))
                _ = try await socket.untilClose()
            }
            let running = try Running(Running.urlloadPath, ["ws", "--wait", origin.url().absoluteString])
            try await running.eventuallyText { $0 == "hello\n" }
            running.send(signal)
            let result = try await running.wait()
            #expect(result.code == 128 + signal || result.code == signal, "\(result.code) \(result.errors)")
            #expect(result.text == "hello\n")
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test func `On a terminal typed lines are sent, and Ctrl-D closes`() async throws {
        try await withEcho { _, target in
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .appendingPathComponent("Servers/terminal.py").path
            let result = try await Running.command(
                "/usr/bin/python3",
                ["-I", script, "--at-once", "typed\\n\\x04", Running.urlloadPath, "ws", "--wait=1", target])
            let lines = result.text.split(separator: "\n").map(String.init)
            try #require(lines.count == 3, "\(result.text) \(result.errors)")
            // Once as typed, and once as received.
            #expect(
                lines[0].components(separatedBy: "typed").count == 3 && lines[1] == "echoes" && lines[2] == "0",
                "\(lines)")
        }
    }
}
