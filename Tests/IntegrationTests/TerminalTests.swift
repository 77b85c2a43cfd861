// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

/// `urlload -u user` on a terminal: the password is not shown, and no key leaves the terminal without echo.
@Suite(.enabled(if: access("/usr/bin/python3", X_OK) == 0, "no python3"), .timeLimit(.minutes(4)))
struct TerminalTests {
    /// The content of the terminal, whether it echoes afterwards, and the program's exit code.
    private func type(_ keys: String, _ words: String...) async throws -> (shown: String, state: String, code: String) {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Servers/terminal.py").path
        let result = try await Running.command("/usr/bin/python3", ["-I", script, keys, Running.urlloadPath] + words)
        let lines = result.text.split(separator: "\n").map(String.init)
        try #require(lines.count == 3, "\(result.text) \(result.errors)")
        return (lines[0], lines[1], lines[2])
    }

    private func withDoor(_ use: (String) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                let right = "Basic " + Data("ada:päss".utf8).base64EncodedString()
                guard request.headers[.authorization] == right else {
                    return .status(
                        .unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"r\""],
                        body: .bytes(Array("refused".utf8)))
                }
                return .ok("welcome")
            }
            try await use(origin.url().absoluteString)
        }
    }

    @Test(arguments: ["p\\xc3\\xa4ss\\n", "p\\xc3\\xa4\\x7f\\xc3\\xa4sx\\x7fs\\r", "nonsense\\x15p\\xc3\\xa4ss\\x04"])
    func `A typed and corrected password is used and not shown`(_ keys: String) async throws {
        try await withDoor { target in
            let (shown, state, code) = try await type(keys, "-s", "-u", "ada", target)
            #expect(shown.contains("welcome") && shown.contains("ada"), "\(shown)")
            #expect(
                !shown.contains("\\xe4") && !shown.contains("nonsense") && state == "echoes" && code == "0", "\(shown)")
        }
    }

    @Test func `ws and tls ask for a missing password, too`() async throws {
        try await withDoor { target in
            let (socket, _, _) = try await type("p\\xc3\\xa4ss\\n", "ws", "-u", "ada", target)
            #expect(socket.contains("Password of ada: "), "\(socket)")
            let (chain, _, _) = try await type("secret\\n", "tls", "-U", "ada", "-x", "127.0.0.1:1", "127.0.0.2:1")
            #expect(chain.contains("Password of ada at the proxy: "), "\(chain)")
        }
    }

    @Test func `An interrupt restores the terminal`() async throws {
        try await withDoor { target in
            let (shown, state, code) = try await type("p\\x03", "-s", "-u", "ada", target)
            #expect(
                state == "echoes" && (code == "-2" || code == "130") && !shown.contains("refused"), "\(shown) \(code)")
        }
    }

    @Test func `An empty password prompt ends the command`() async throws {
        try await withDoor { target in
            let (shown, state, code) = try await type("\\x04", "-s", "-u", "ada", target)
            #expect(state == "echoes" && code != "0" && !shown.contains("welcome"), "\(shown) \(code)")
        }
    }
}
