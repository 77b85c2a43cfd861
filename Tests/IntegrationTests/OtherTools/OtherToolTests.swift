// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// Typical command lines of curl, wget and httpie: each is run by that tool and by urlload, with the same server.
/// Requests, exit code, output and files must be equal unless the line names a row of the guide's table of differences.
@Suite(.timeLimit(.minutes(10)))
struct OtherToolTests {
    static func has(_ tool: String) -> Bool { access("/usr/bin/\(tool)", X_OK) == 0 }

    @Test(.enabled(if: has("curl"), "no curl"), arguments: ToolLine.all(CurlLines.all))
    func `A command line of curl does the same`(_ line: ToolLine) async throws {
        try await compare(line, "/usr/bin/curl", [])
    }

    @Test(
        .enabled("curl 8 refuses them") { try await curlVersion() < 8 },
        arguments: ToolLine.all(CurlLines.groupsWithoutURL))
    func `A group without a URL is passed over as by curl before its version 8`(_ line: ToolLine) async throws {
        try await compare(line, "/usr/bin/curl", [])
    }

    /// The major version of the installed curl, 8 if there is none.
    private static func curlVersion() async throws -> Int {
        guard has("curl") else { return 8 }
        let words = try await Running.command("/usr/bin/curl", ["--version"]).text.split(separator: " ")
        return words.count > 1 ? words[1].split(separator: ".").first.flatMap { Int($0) } ?? 8 : 8
    }

    @Test(.enabled(if: has("wget"), "no wget"), arguments: ToolLine.all(WgetLines.all))
    func `A command line of wget does the same`(_ line: ToolLine) async throws {
        try await compare(line, "/usr/bin/wget", ["wget"])
    }

    @Test(.enabled(if: has("http"), "no httpie"), arguments: ToolLine.all(HTTPieLines.all))
    func `A command line of httpie does the same`(_ line: ToolLine) async throws {
        try await compare(line, "/usr/bin/http", ["http"])
    }

    @Test func `Each intended difference has its row in the table of the guide`() {
        let rows = DifferenceTableTests.Row.all().map { row in row.what.filter { $0 != "`" } }
        let lines = [CurlLines.all, CurlLines.groupsWithoutURL, WgetLines.all, HTTPieLines.all].flatMap(ToolLine.all)
        for line in lines {
            guard let reason = line.reason else { continue }
            #expect(rows.contains(reason), "\(line.text): no row has \(reason) in its first column")
        }
    }

    @Test func `Each tool has a sufficient number of command lines`() {
        #expect(ToolLine.all(CurlLines.all).count >= 120)
        #expect(ToolLine.all(WgetLines.all).count >= 30 && ToolLine.all(HTTPieLines.all).count >= 30)
    }

    @Test(.enabled(if: has("curl"), "no curl"))
    func `Every option of the installed curl is supported, or listed with the nearest one`() async throws {
        let options = try await Running.command("/usr/bin/curl", ["--help", "all"]).text.split(separator: "\n")
        let known =
            try await Running.urlload(["--generate", "guide"]).text + " "
            + Running.urlload(["--generate", "bash"]).text.replacing("|", with: "` ").replacing(" ", with: "` `")
        for line in options {
            guard let name = line.split(separator: " ").first(where: { $0.hasPrefix("--") }) else { continue }
            let own = name.hasPrefix("--no-") ? "--" + name.dropFirst(5) : String(name)
            #expect(known.contains("\(name)`") || known.contains("\(own)`"), "\(name)")
        }
    }

    private func compare(_ line: ToolLine, _ tool: String, _ grammar: [String]) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { try await OtherToolOrigin.answer($0) }
            let theirs = try await ToolOutcome(line, tool, [], origin)
            let ours = try await ToolOutcome(line, Running.urlloadPath, grammar, origin)
            let differences = theirs.differences(from: ours)
            if line.reason == nil {
                #expect(differences.isEmpty, "\(line.text)\n\(differences.joined(separator: "\n"))\n\(ours.errors)")
            } else {
                #expect(!differences.isEmpty, "\(line.text): no difference, but a reason for one")
            }
        }
    }
}

/// One command line.
struct ToolLine: Sendable, CustomTestStringConvertible {
    let text: String
    /// The first column of the row about the intended difference, without backticks; `nil` without a difference.
    let reason: String?
    var testDescription: String { text }

    static func all(_ text: String) -> [ToolLine] {
        text.split(separator: "\n").map { line in
            let parts = line.split(separator: " ## ", maxSplits: 1)
            return ToolLine(text: "\(parts[0])", reason: parts.count > 1 ? "\(parts[1])" : nil)
        }
    }

    /// The arguments, split as a shell does; `U/` is the server.
    func words(_ base: String) -> [String] {
        var words: [String] = []
        var word: String?
        var isQuoted = false
        for character in text {
            if character == "'" {
                isQuoted.toggle()
                word = word ?? ""
            } else if character == " ", !isQuoted {
                if let word { words.append(word) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        return (words + [word].compactMap(\.self)).map { $0.hasPrefix("U/") ? base + $0.dropFirst() : $0 }
    }
}

/// The result of a run.
struct ToolOutcome {
    /// The requests as they came.
    var received: [HTTPTestServer.RecordedRequest]
    struct Request: Hashable, Comparable {
        var line: String
        var fields: [String]
        var body: String
        static func < (a: Request, b: Request) -> Bool { (a.line, a.body) < (b.line, b.body) }
    }
    var requests: [Request]
    var code: Int32
    var output: String
    var files: [String: String]
    var errors: String

    init(_ line: ToolLine, _ tool: String, _ grammar: [String], _ origin: HTTPTestServer) async throws {
        let folder = try TemporaryFolder()
        let base = String(origin.url().absoluteString.drop { $0 == " " }.prefix { _ in true })
        let root = base.hasSuffix("/") ? String(base.dropLast()) : base
        try OtherToolOrigin.prepare(folder, root)
        let words = line.words(root)
        let before = origin.requests.count
        let input = words.contains("-K") && words.contains("-") ? "header = \"X-Stdin: 1\"\n" : "from stdin\nline 2\n"
        let result = try await Running.command(
            tool, grammar + words, input: input, in: folder,
            environment: ["HOME": folder.path, "XDG_CONFIG_HOME": folder.path, "HTTPIE_CONFIG_DIR": folder.path])
        code = result.code
        errors = result.errors
        output = Self.plain(result.output)
        // `urlload` runs loads that write no common output at the same time, so their requests arrive in any order.
        let isParallel =
            words.count { $0 == "-O" } > 1
            || !Set(words).isDisjoint(with: ["-Z", "--parallel", "--remote-name-all", "-i", "--spider"])
        received = Array(origin.requests.dropFirst(before))
        let shown = received.map { Self.request($0, line.text) }
        requests = isParallel ? shown.sorted() : Array(shown)
        files = [:]
        let all = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        for name in all.sorted() where !name.contains("httpie") && name != "config.json" {
            guard let bytes = try? folder.bytes(name) else { continue }
            files[name] = Self.plain(bytes)
        }
    }

    /// Fields that differ between tools, unless the line is about them.
    private static func request(_ request: HTTPTestServer.RecordedRequest, _ text: String) -> Request {
        var ignored: Set<String> = ["user-agent", "accept-encoding", "host", "connection", "accept", "expect"]
        if text.contains("gent") { ignored.remove("user-agent") }
        if text.contains("ccept") || text.contains("--json") { ignored.remove("accept") }
        var body = String(decoding: request.body, as: UTF8.self)
        var fields: [String] = []
        let type = request.headers[.contentType] ?? ""
        if let start = type.firstRange(of: "boundary=") {
            let boundary = String(type[start.upperBound...].filter { $0 != "\"" })
            body = body.replacing(boundary, with: "BOUNDARY")
            ignored.insert("content-length")
        }
        // httpie may put blanks into JSON.
        if type.contains("json") { body = body.filter { !$0.isWhitespace }; ignored.insert("content-length") }
        for field in request.headers {
            let name = field.name.description.lowercased()
            guard !ignored.contains(name), name != "content-length" || field.value != "0" else { continue }
            fields.append("\(name): \(field.value.replacing(/boundary=.*/, with: "boundary"))")
        }
        let version = request.version == .http10 ? " HTTP/1.0" : ""
        return Request(line: "\(request.method) \(request.target)\(version)", fields: fields.sorted(), body: body)
    }

    /// Removes values that differ in each run.
    private static func plain(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .filter { !$0.hasPrefix("Date: ") && !$0.hasPrefix("#") }.joined(separator: "\n")
            .replacing("\n\n127.0.0.1", with: "\n127.0.0.1").replacing(/^\n/, with: "")
    }

    func differences(from other: ToolOutcome) -> [String] {
        var all: [String] = []
        if requests != other.requests { all.append("requests \(requests)\n      not \(other.requests)") }
        if code != other.code { all.append("exit code \(code), not \(other.code)") }
        if output != other.output {
            all.append("output \(output.debugDescription), not \(other.output.debugDescription)")
        }
        for name in Set(files.keys).union(other.files.keys) where files[name] != other.files[name] {
            all.append(
                "file \(name): \(files[name]?.prefix(60) ?? "none"), not \(other.files[name]?.prefix(60) ?? "none")")
        }
        return all
    }
}
