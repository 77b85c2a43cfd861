// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// `urlload bg` with an agent: what is saved, what is said, and the exit codes.
@Suite(.timeLimit(.minutes(4)))
struct BackgroundCommandRows {
    struct Said {
        let code: Int32
        let output: String
        let errors: String
    }

    /// Runs a command until it ends.
    static func bg(_ rig: AgentRig, _ words: [String]) async throws -> Said {
        let name = rig.folder + "/said-" + String(UInt32.random(in: 0 ... .max))
        let command = try ChildProcess(
            AgentRig.executable.folder + "/urlload", ["bg"] + words,
            environment: ["URLLOADING_AGENT_SOCKET": rig.socket, "HOME": rig.folder],
            files: .init(output: name, errors: name + "-errors"))
        let code = await command.wait()
        return Said(
            code: code, output: (try? FileReader.text(name)) ?? "",
            errors: (try? FileReader.text(name + "-errors")) ?? "")
    }

    static func with(_ use: (AgentRig, HTTPTestServer) async throws -> Void) async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/missing") { _ in .status(.notFound, body: .bytes(Array("no such film".utf8))) }
            try await use(rig, origin)
        }
    }

    /// The state of the one transfer that is listed, once it is over.
    static func state(_ rig: AgentRig) async throws -> String {
        var state = ""
        try await eventuallyProcess {
            let words = try await bg(rig, ["ls"]).output.split(separator: " ").map(String.init)
            if words.count > 1 { state = words[1] }
            return ["finished", "failed", "cancelled"].contains(state)
        }
        return state
    }

    @Test("-f saves no page of an error: the transfer fails, and watch ends with 22")
    func fail() async throws {
        try await Self.with { rig, origin in
            let place = rig.folder + "/page"
            let got = try await Self.bg(rig, ["get", "-f", "-o", place, origin.url("/missing").absoluteString])
            #expect(got.code == 0, "\(got.errors)")
            #expect(try await Self.state(rig) == "failed")
            let watched = try await Self.bg(rig, ["watch"])
            #expect(watched.code == 22 && watched.output.contains("unacceptableStatus"), "\(watched)")
            #expect(!FileManager.default.fileExists(atPath: place))
        }
    }

    @Test("--fail-with-body saves the page, and watch ends with 22; without it with 0", arguments: [true, false])
    func failWithBody(_ fails: Bool) async throws {
        try await Self.with { rig, origin in
            let place = rig.folder + "/page"
            let words = fails ? ["--fail-with-body"] : []
            let got = try await Self.bg(rig, ["get"] + words + ["-o", place, origin.url("/missing").absoluteString])
            #expect(got.code == 0, "\(got.errors)")
            #expect(try await Self.state(rig) == "finished")
            let watched = try await Self.bg(rig, ["watch"])
            #expect(watched.code == (fails ? 22 : 0) && watched.output.contains(" 404 "), "\(watched)")
            #expect(try FileReader.text(place) == "no such film")
        }
    }

    @Test("An upload that is refused fails with -f", arguments: [["-f"], ["--fail-with-body"], []])
    func upload(_ words: [String]) async throws {
        try await Self.with { rig, origin in
            let file = rig.folder + "/file"
            try Data("text".utf8).write(to: URL(filePath: file))
            let put = try await Self.bg(rig, ["put"] + words + ["-T", file, origin.url("/missing").absoluteString])
            #expect(put.code == 0, "\(put.errors)")
            #expect(try await Self.state(rig) == (words == ["-f"] ? "failed" : "finished"))
            let watched = try await Self.bg(rig, ["watch"])
            #expect(watched.code == (words.isEmpty ? 0 : 22), "\(watched)")
        }
    }

    @Test("A missing folder is an error of the file that names it; --create-dirs makes it")
    func folders() async throws {
        try await Self.with { rig, origin in
            let place = rig.folder + "/new/deep/film"
            let words = ["-o", place, origin.url("/film").absoluteString]
            let missing = try await Self.bg(rig, ["get"] + words)
            #expect(missing.code == 23 && missing.errors.contains(rig.folder + "/new/deep"), "\(missing)")
            #expect(try await Self.bg(rig, ["ls"]).output == "")
            let made = try await Self.bg(rig, ["get", "--create-dirs"] + words)
            #expect(made.code == 0, "\(made.errors)")
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
        }
    }

    @Test("An option that the agent cannot apply is refused before anything is submitted")
    func refused() async throws {
        try await Self.with { rig, origin in
            let said = try await Self.bg(rig, ["get", "--limit-rate", "1k", origin.url("/film").absoluteString])
            #expect(said.code == 2 && said.errors.contains("--limit-rate cannot be used in the background"), "\(said)")
            #expect(origin.requests.isEmpty)
        }
    }

    @Test(
        "A terminal gets titles and per cent, and folds long lines; a pipe gets plain lines",
        .enabled(if: access("/usr/bin/python3", X_OK) == 0, "no python3"), arguments: [200, 30])
    func terminal(_ columns: Int) async throws {
        try await Self.with { rig, origin in
            let got = try await Self.bg(rig, ["get", "-o", rig.folder + "/film", origin.url("/film").absoluteString])
            #expect(got.code == 0, "\(got.errors)")
            #expect(try await Self.state(rig) == "finished")
            let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .appending(path: "Servers/screen.py").path(percentEncoded: false)
            let name = rig.folder + "/screen"
            let list = [AgentRig.executable.folder + "/urlload", "bg", "ls"]
            let screen = try ChildProcess(
                "/usr/bin/python3", ["-I", script, "\(columns)", "5", ""] + list,
                environment: ["URLLOADING_AGENT_SOCKET": rig.socket, "HOME": rig.folder],
                files: .init(output: name, errors: name + "-errors"))
            let code = await screen.wait()
            // The longest line, the exit code and the colours come first.
            let lines = try FileReader.text(name).split(separator: "\n", omittingEmptySubsequences: false)
            try #require(code == 0 && lines.count > 4, "\(lines)")
            let shown = lines[3...].joined(separator: "").filter { $0 != " " }
            #expect(lines[1] == "0" && shown.hasPrefix("IDSTATEDONESIZETRANSFER"), "\(shown)")
            #expect(shown.contains("finished100%") && shown.contains("→\(rig.folder)/film"), "\(shown)")
            let plain = try await Self.bg(rig, ["ls"])
            #expect(plain.output.contains("  finished  \(Film.content.count)/\(Film.content.count)  "), "\(plain)")
            #expect(!plain.output.contains("TRANSFER"))
        }
    }

    @Test("A cancelled transfer is listed as cancelled, in both forms")
    func cancelled() async throws {
        try await SurvivalRows.with(stallsAfter: 300_000) { rig, origin in
            let got = try await Self.bg(rig, ["get", "-o", rig.folder + "/film", origin.url("/film").absoluteString])
            #expect(got.code == 0, "\(got.errors)")
            let cancel = try await Self.bg(rig, ["cancel", "--all"])
            #expect(cancel.code == 0, "\(cancel.errors)")
            #expect(try await Self.state(rig) == "cancelled")
            let object = try await Self.bg(rig, ["ls", "--json"]).output
            #expect(object.contains(#""state":"cancelled""#) && object.contains(#""error":"cancelled""#), "\(object)")
        }
    }
}
