// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// The content of the terminal after urlload: summaries, and nothing of the progress bars.
@Suite(.enabled(if: access("/usr/bin/python3", X_OK) == 0, "no python3"), .timeLimit(.minutes(4)))
struct ScreenTests {
    private struct Shown {
        var longest: Int
        var code: Int
        var hasColors: Bool
        var rows: [String]
    }

    private func run(
        _ columns: Int, _ words: [String], keys: String = "", in folder: TemporaryFolder,
        environment: [String: String] = ["NO_COLOR": ""]
    ) async throws -> Shown {
        // The environment of the tests may set NO_COLOR; empty counts as not set (no-color.org).
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Servers/screen.py").path
        let result = try await Running.command(
            "/usr/bin/python3", ["-I", script, "\(columns)", "5", keys, Running.urlloadPath] + words, in: folder,
            environment: environment)
        let lines = result.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        try #require(lines.count > 3, "\(result.text) \(result.errors)")
        return Shown(
            longest: Int(lines[0]) ?? 0, code: Int(lines[1]) ?? -1, hasColors: lines[2] == "colours",
            rows: lines[3...].filter { !$0.isEmpty })
    }

    private func withOrigin(_ use: (HTTPTestServer, TemporaryFolder) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            let piece = HTTPTestServer.Response.Piece.bytes([UInt8](repeating: 0x78, count: 50_000))
            for name in ["/one", "/two"] {
                origin.route(name) { _ in
                    .ok(
                        .chunks((0..<10).flatMap { _ in [piece, .pause(.milliseconds(100))] }),
                        headers: [.etag: "\"v\""])
                }
            }
            origin.route("/stall") { _ in
                .ok(.chunks([piece, .pause(.seconds(60))]), headers: [.etag: "\"v\""])
            }
            origin.route("/json") { _ in .ok("{\"a\":1}", headers: [.contentType: "application/json"]) }
            try await use(origin, try TemporaryFolder())
        }
    }

    @Test("Bars leave a summary for each file and one for all", arguments: [80, 200])
    func summaries(_ columns: Int) async throws {
        try await withOrigin { origin, folder in
            let shown = try await run(
                columns, ["-O", origin.url("/one").absoluteString, origin.url("/two").absoluteString], in: folder)
            #expect(shown.code == 0 && shown.longest < columns, "\(shown)")
            #expect(shown.rows.count == 3, "\(shown.rows)")
            let saved = shown.rows.dropLast().sorted()
            #expect(saved.first?.hasPrefix("saved one, 488.3 KiB in ") == true, "\(shown.rows)")
            #expect(saved.last?.hasPrefix("saved two, 488.3 KiB in ") == true, "\(shown.rows)")
            #expect(shown.rows.last?.hasPrefix("2 loaded, 976.6 KiB in ") == true, "\(shown.rows)")
        }
    }

    @Test("Ctrl-C leaves a message about the partial file, and no bar")
    func interrupted() async throws {
        try await withOrigin { origin, folder in
            let shown = try await run(
                80, ["-o", "file", origin.url("/stall").absoluteString], keys: "\\x03", in: folder)
            #expect(shown.code == 130, "\(shown)")
            let text = shown.rows.joined(separator: " ").replacing("^C", with: "")
            #expect(
                text.contains("urlload: file: 48.8 KiB are kept; repeat with -C to resume"), "\(shown.rows)")
        }
    }

    @Test("Terminals get colours unless NO_COLOR is set")
    func colors() async throws {
        try await withOrigin { origin, folder in
            let url = origin.url("/json").absoluteString
            let colored = try await run(80, ["http", "-I", url], in: folder)
            #expect(colored.hasColors && colored.rows.contains("    \"a\": 1"), "\(colored)")
            let plain = try await run(80, ["http", "-I", url], in: folder, environment: ["NO_COLOR": "1"])
            #expect(!plain.hasColors && plain.rows.contains("    \"a\": 1"), "\(plain)")
            let piped = try await Running.urlload(["http", "-I", url])
            #expect(piped.text == "{\"a\":1}" && piped.errors == "")
        }
    }

    @Test("Without a terminal there are no bars and no summaries")
    func piped() async throws {
        try await withOrigin { origin, folder in
            let result = try await Running.urlload(["-O", origin.url("/one").absoluteString], in: folder)
            #expect(result.code == 0 && result.errors == "" && result.text == "")
        }
    }
}
