// SPDX-License-Identifier: Apache-2.0

// What the grammars of curl, wget and httpie write and leave, where no line of `OtherToolTests` can compare it.

import Foundation
import Glibc
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct ToolGrammarTests {
    // MARK: httpie

    /// The lines of a message that both tools write, in any order of fields.
    private func lines(_ result: Running.Result) -> [String] {
        let changing = ["User-Agent:", "Accept-Encoding:", "Connection:", "Date:"]
        return result.text.replacing("\r\n", with: "\n").split(separator: "\n").map(String.init).filter { line in
            !changing.contains { line.hasPrefix($0) }
        }
    }

    @Test(arguments: [
        ["-v", "/plain"], ["-v", "/echo", "a=1"], ["-v", "-f", "/echo", "a=b c"], ["--print=Hh", "/echo", "a=1"],
        ["--print=HB", "/echo", "a=1"], ["--print=Hhb", "PUT", "/echo", "a=1"], ["--offline", "/echo", "a=1"],
        ["--offline", "/plain", "q==a b"], ["--offline", "POST", "/plain"], ["-v", "--pretty=none", "/echo", "a=1"],
    ])
    func `The request comes first on standard output, as with httpie`(_ words: [String]) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/plain") { _ in .ok("plain text\n") }
            origin.route("/echo") { _ in .ok("got it\n") }
            let all =
                ["--ignore-stdin"] + words.map { $0.hasPrefix("/") ? origin.url($0).absoluteString : $0 }
            let ours = try await Running.urlload(["http"] + all)
            let count = origin.requests.count
            #expect(ours.code == 0 && count == (words.contains("--offline") ? 0 : 1), "\(ours.errors)")
            let first = try #require(ours.text.split(separator: "\r\n").first)
            #expect(first.hasSuffix(" HTTP/1.1") && ours.text.contains("\r\nHost: 127.0.0.1:\(origin.port)\r\n"))
            guard OtherToolTests.has("http") else { return }
            let theirs = try await Running.command("/usr/bin/http", all)
            #expect(lines(ours).sorted() == lines(theirs).sorted(), "\(ours.text)\n---\n\(theirs.text)")
            // Blank lines separate the messages in the same way.
            let bodies = { (text: String) in text.components(separatedBy: "\r\n\r\n").dropFirst().map { $0.prefix(20) }
            }
            let isPlainBody = !words.contains("--print=Hh")
            #expect(!isPlainBody || bodies(ours.text) == bodies(theirs.text), "\(ours.text.debugDescription)")
        }
    }

    @Test func `The request is written although there is no server, and secrets of it are hidden`() async throws {
        let refused = try await Running.urlload(
            ["http", "--ignore-stdin", "-v", "-a", "ada:secret", "http://127.0.0.1:1/x?token=hush"])
        #expect(refused.code == 1 && refused.text.hasPrefix("GET /x?token="), "\(refused.text)")
        #expect(!refused.text.contains("hush") && refused.text.contains("Authorization: Basic [hidden]"))
        #expect(!refused.text.contains("YWRhOnNlY3JldA=="))
        let shown = try await Running.urlload(
            ["http", "--ignore-stdin", "--offline", "--trace-secrets", "-a", "ada:secret", "http://127.0.0.1:1/"])
        #expect(shown.code == 0 && shown.text.contains("Authorization: Basic YWRhOnNlY3JldA=="), "\(shown.text)")
    }

    @Test func `--offline resolves no name and takes no other scheme`() async throws {
        let result = try await Running.urlload([
            "http", "--ignore-stdin", "--offline", "https://nowhere.invalid/", "a=1",
        ])
        #expect(result.code == 0 && result.errors.isEmpty && result.text.hasSuffix("{\"a\": \"1\"}"), "\(result)")
        #expect(try await Running.urlload(["http", "--ignore-stdin", "--offline", "ftp://h/f"]).code == 1)
    }

    @Test func `-v shows each request of a chain and the heads between`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/moved") { _ in .redirect("/end") }
            origin.route("/end") { _ in .ok("here\n") }
            let result = try await Running.urlload(
                ["http", "--ignore-stdin", "-v", origin.url("/moved").absoluteString])
            let starts = result.text.components(separatedBy: "\n").filter { $0.contains("HTTP/1.1") }.map {
                $0.split(separator: " ").prefix(2).joined(separator: " ")
            }
            #expect(starts == ["GET /moved", "HTTP/1.1 302", "GET /end", "HTTP/1.1 200"], "\(result.text)")
            let without = try await Running.urlload(
                ["http", "--ignore-stdin", "--print=Hh", origin.url("/moved").absoluteString])
            #expect(!without.text.contains("302") && without.text.contains("200 OK"))
            let folder = try TemporaryFolder()
            let saved = try await Running.urlload(
                ["http", "--ignore-stdin", "-v", "-d", origin.url("/end").absoluteString], in: folder)
            #expect(saved.text.isEmpty && saved.errors.contains("GET /end HTTP/1.1"))
            #expect(try folder.bytes("end") == Array("here\n".utf8))
        }
    }

    @Test func `Standard input is sent byte for byte, and the file of an item must be text`() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer(answering: "got it") { origin in
            let script = "printf '\\377\\330\\201x' | \"$0\" http POST \"$1\""
            let sent = try await Running.command(
                "/bin/bash", ["-c", script, Running.urlloadPath, origin.url().absoluteString])
            #expect(sent.code == 0 && origin.requests.last?.body == [0xFF, 0xD8, 0x81, 0x78], "\(sent.errors)")
            _ = try folder.write("photo", Data([0xFF, 0xD8]))
            for item in ["a=@photo", "a:=@photo", "A:@photo", "a==@photo"] {
                let refused = try await Running.urlload(
                    ["http", "--ignore-stdin", origin.url().absoluteString, item], in: folder)
                #expect(refused.code == 1 && refused.errors.contains("not text in UTF-8"), "\(item) \(refused.errors)")
            }
            #expect(origin.requests.count == 1)
        }
    }

    // MARK: Files of killed runs

    /// A file of which the first half arrives at once, and the rest after the server's end.
    private static let content: [UInt8] = (0..<20_000).flatMap { Array("\(1_000_000 + $0)\n".utf8) }

    private func with(_ headers: Headers, _ use: (HTTPTestServer, TemporaryFolder) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/slow") { request in
                let half = Self.content.count / 2
                if let range = request.headers[.range], let first = Int(range.dropFirst(6).dropLast()),
                    request.headers[.ifRange] == headers[.etag]
                {
                    var part = headers
                    part[.contentRange] = "bytes \(first)-\(Self.content.count - 1)/\(Self.content.count)"
                    return .status(.partialContent, headers: part, body: .bytes(Array(Self.content[first...])))
                }
                return .ok(.chunks([.bytes(Array(Self.content[..<half])), .pause(.seconds(60))]), headers: headers)
            }
            origin.route("/quick") { _ in .ok(.bytes(Self.content), headers: headers) }
            try await use(origin, folder)
        }
    }

    /// Runs a download until bytes are in a file, and ends it.
    private func stop(
        _ words: [String], _ number: Int32, _ origin: HTTPTestServer, _ folder: TemporaryFolder,
        waitsForNotes: Bool = true
    ) async throws {
        let before = Set(folder.names)
        let process = try Running(
            Running.urlloadPath, words + [origin.url("/slow").absoluteString], in: folder)
        try await eventuallyFiles(folder.names) { names in
            names.contains { !before.contains($0) && ((try? folder.bytes($0))?.count ?? 0) > 1000 }
        }
        if waitsForNotes { try await eventuallyFiles(folder.names) { $0.contains { $0.hasSuffix(".urlload") } } }
        process.send(number)
        _ = try await process.wait()
    }

    @Test(arguments: [["-o", "film"], ["-i", "-o", "film"], ["-J", "-O"]])
    func `What three killed runs have left is gone after the next one`(_ words: [String]) async throws {
        try await with([:]) { origin, folder in
            for count in 1...3 {
                try await stop(words, SIGKILL, origin, folder, waitsForNotes: false)
                // Each run removes what the one before has left.
                #expect(folder.names.count == 1 && folder.names[0].hasPrefix(".urlload"), "\(count): \(folder.names)")
            }
            let last = try await Running.urlload(words + [origin.url("/quick").absoluteString], in: folder)
            #expect(last.code == 0 && folder.names.count == 1 && !folder.names[0].hasPrefix("."), "\(folder.names)")
        }
    }

    @Test func `The part of a killed run that can be resumed stays, for the same and for other downloads`()
        async throws
    {
        try await with([.etag: "\"v\""]) { origin, folder in
            try await stop(["-o", "film"], SIGKILL, origin, folder)
            let part = folder.names.first { $0.hasPrefix(".urlloading-") }
            let other = try await Running.urlload(["-o", "other", origin.url("/quick").absoluteString], in: folder)
            #expect(other.code == 0 && part.map(folder.names.contains) == true, "\(folder.names)")
            let second = try await Running.urlload(
                ["-C", "-o", "film", origin.url("/slow").absoluteString], in: folder)
            #expect(second.code == 0 && second.errors.contains("resumed at byte"), "\(second.errors)")
            let bytes = try folder.bytes("film")
            #expect(bytes == Self.content && folder.names == ["film", "other"])
        }
    }

    @Test func `A part whose token was removed by hand stays, and the command of the guide finds it alone`()
        async throws
    {
        let place = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../docs/guides/command-line.md")
        let blocks = try String(contentsOf: place, encoding: .utf8).components(separatedBy: "```")
        let block = try #require(blocks.first { $0.hasPrefix("sh\n") && $0.contains("-name '.urlloading-*'") })
        let command = String(block.dropFirst("sh\n".count))
        try await with([.etag: "\"v\""]) { origin, folder in
            try await stop(["-o", "film"], SIGKILL, origin, folder)
            // A part of another file, and one of a download that runs.
            let (named, marked) = (".urlloading-aaaaaaaaaaaaaaaaaaaaaaaa", ".urlloading-bbbbbbbbbbbbbbbbbbbbbbbb")
            for part in [named, marked] { _ = try folder.write(part, Data("part".utf8)) }
            _ = try folder.write(".other.urlload", Data("{\"path\":\"/home/ada/\(named)\"}".utf8))
            #expect(chmod(folder.path + "/" + marked, 0o1600) == 0)
            let nothing = try await Running.command("/bin/sh", ["-c", command], in: folder)
            #expect(nothing.text.isEmpty && nothing.errors.isEmpty, "\(nothing) \(folder.names)")
            let token = String(decoding: try folder.bytes(".film.urlload"), as: UTF8.self)
            let parts = folder.names.filter { $0.hasPrefix(".urlloading-") && token.contains($0) }
            try FileManager.default.removeItem(at: folder.url(".film.urlload"))
            let found = try await Running.command("/bin/sh", ["-c", command], in: folder)
            #expect(parts.count == 1 && found.text == "./\(parts.joined(separator: ""))\n", "\(found) \(parts)")
            let next = try await Running.urlload(["-o", "next", origin.url("/quick").absoluteString], in: folder)
            #expect(next.code == 0 && parts.allSatisfy { folder.names.contains($0) }, "\(folder.names)")
        }
    }

    @Test func `Downloads at the same time into one folder leave each other alone`() async throws {
        try await with([:]) { origin, folder in
            let waiting = try Running(
                Running.urlloadPath, ["-o", "first", origin.url("/slow").absoluteString], in: folder)
            try await eventuallyFiles(folder.names) { !$0.isEmpty }
            let part = folder.names
            try await withThrowingTaskGroup(of: Int32.self) { group in
                for number in 1...4 {
                    group.addTask {
                        try await Running.urlload(
                            ["-o", "file\(number)", origin.url("/quick").absoluteString], in: folder
                        ).code
                    }
                }
                for try await code in group { #expect(code == 0) }
            }
            #expect(Set(folder.names) == Set(part + (1...4).map { "file\($0)" }))
            waiting.send(SIGTERM)
            _ = try await waiting.wait()
        }
    }

    // MARK: A name that the response gives

    private static let named: Headers = [
        .etag: "\"v\"", "Content-Disposition": "attachment; filename=\"given.txt\"",
    ]

    @Test func `-C - with -J takes the name from the response and asks for the rest with If-Range`() async throws {
        try await with(Self.named) { origin, folder in
            try await stop(["-C", "-", "-OJ"], SIGTERM, origin, folder)
            #expect(folder.names.contains(".given.txt.urlload"), "\(folder.names)")
            let second = try await Running.urlload(
                ["-C", "-", "-OJ", origin.url("/slow").absoluteString], in: folder)
            #expect(second.code == 0, "\(second.errors)")
            let last = try #require(origin.requests.last)
            #expect(last.headers[.ifRange] == "\"v\"" && last.headers[.range]?.hasPrefix("bytes=") == true)
            let bytes = try folder.bytes("given.txt")
            #expect(bytes == Self.content && folder.names == ["given.txt"], "\(folder.names)")
            // The same again is complete already.
            let third = try await Running.urlload(
                ["-C", "-", "-OJ", origin.url("/quick").absoluteString], in: folder)
            #expect(third.code == 0 && third.errors.contains("is complete already") && folder.names == ["given.txt"])
        }
    }

    @Test func `-C with -J never writes to a file that was there before`() async throws {
        try await with(Self.named) { origin, folder in
            _ = try folder.write("given.txt", Data("mine".utf8))
            let result = try await Running.urlload(
                ["-C", "-", "-OJ", origin.url("/quick").absoluteString], in: folder)
            #expect(result.code == 0 && folder.names == ["given.txt", "given.txt.1"], "\(folder.names)")
            let (mine, other) = (try folder.bytes("given.txt"), try folder.bytes("given.txt.1"))
            #expect(mine == Array("mine".utf8) && other == Self.content && origin.requests.count == 1)
            #expect(
                try await Running.urlload(["-C", "5", "-OJ", origin.url("/quick").absoluteString], in: folder).code == 2
            )
        }
    }

    @Test(arguments: [["-OJ"], ["-C", "-", "-OJ"], ["wget", "--content-disposition"]])
    func `Responses that name the same file at the same time get a file each`(_ words: [String]) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            // The heads of all three have come before the first body is complete.
            origin.route("/*") { request in
                .ok(
                    .chunks(["body of ", .pause(.milliseconds(500)), .bytes(Array(request.path.utf8))]),
                    headers: ["Content-Disposition": "attachment; filename=export.csv"])
            }
            let paths = ["/1", "/2", "/3"]
            let result = try await Running.urlload(words + paths.map { origin.url($0).absoluteString }, in: folder)
            #expect(result.code == 0, "\(result.errors)")
            let names = ["export.csv", "export.csv.1", "export.csv.2"]
            #expect(folder.names == names, "\(folder.names) \(result.errors)")
            let bodies = names.map { String(decoding: (try? folder.bytes($0)) ?? [], as: UTF8.self) }
            #expect(Set(bodies) == Set(paths.map { "body of \($0)" }), "\(bodies)")
        }
    }

    @Test func `wget -O names the file alone, and -P the folder of other files`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/page") { _ in .ok("here") }
            let folder = try TemporaryFolder()
            let url = origin.url("/page").absoluteString
            #expect(try await Running.urlload(["wget", "-P", "d", "-O", "f", url], in: folder).code == 0)
            #expect(folder.names == ["f"])
            #expect(try await Running.urlload(["wget", "-P", "d", url], in: folder).code == 0)
            #expect(try folder.bytes("d/page") == Array("here".utf8))
        }
    }

    @Test(arguments: [["wget", "-c", "--content-disposition"], ["-R", "-C", "-", "-OJ"]])
    func `A file that the server names and that is complete keeps its time`(_ words: [String]) async throws {
        var headers = Self.named
        headers[.lastModified] = "Sun, 06 Nov 1994 08:49:37 GMT"
        try await with(headers) { origin, folder in
            let place = try folder.write("given.txt", Data(Self.content))
            let result = try await Running.urlload(words + [origin.url("/quick").absoluteString], in: folder)
            #expect(result.code == 0 && result.errors.contains("is complete already"), "\(result.errors)")
            var status = stat()
            #expect(stat(place.path(percentEncoded: false), &status) == 0)
            #expect(status.st_mtim.tv_sec != 784_111_777 && folder.names == ["given.txt"])
        }
    }

    // MARK: wget's attempts

    @Test(arguments: [true, false], [["-O", "f"], ["-O", "-"]])
    func `wget continues a body that is cut, from a server with ranges and from one without`(
        _ hasRanges: Bool, _ words: [String]
    ) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/cut") { [weak origin] request in
                let headers: Headers = [.etag: "\"v\""]
                if hasRanges, let range = request.headers[.range], let first = Int(range.dropFirst(6).dropLast()) {
                    var part = headers
                    part[.contentRange] = "bytes \(first)-\(Self.content.count - 1)/\(Self.content.count)"
                    return .status(.partialContent, headers: part, body: .bytes(Array(Self.content[first...])))
                }
                guard origin?.requests.count == 1 else { return .ok(.bytes(Self.content), headers: headers) }
                return .ok(
                    .declared(Int64(Self.content.count), bytes: Array(Self.content[..<1000])), headers: headers)
            }
            let result = try await Running.urlload(
                ["wget", "-nv", "--waitretry=0"] + words + [origin.url("/cut").absoluteString], in: folder)
            #expect(result.code == 0 && result.errors.contains("attempt 2 of 20 in 0 s"), "\(result.errors)")
            let names = words.contains("-") ? [] : ["f"]
            let written = names.isEmpty ? result.output : (try? folder.bytes("f"))
            #expect(written == Self.content && folder.names == names, "\(folder.names)")
            #expect(origin.requests.count == 2 && origin.requests.last?.headers[.range] == "bytes=1000-")
        }
    }

    @Test func `wget does not join a new version to what it has written of an old one`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/cut") { [weak origin] _ in
                let isFirst = origin?.requests.count == 1
                return .ok(
                    .declared(Int64(Self.content.count), bytes: Array(Self.content[..<1000])),
                    headers: [.etag: isFirst ? "\"old\"" : "\"new\""])
            }
            let result = try await Running.urlload(
                ["wget", "--waitretry=0", "-O", "-", origin.url("/cut").absoluteString])
            #expect(result.code == 8 && result.output == Array(Self.content[..<1000]), "\(result.errors)")
            #expect(origin.requests.count == 2 && result.errors.contains("is of another version"), "\(result.errors)")
        }
    }

    @Test func `wget repeats a load whose connection was lost, and a file that was there is not continued`()
        async throws
    {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/lost") { [weak origin] _ in (origin?.requests.count ?? 0) < 3 ? .raw([]) : .ok("here") }
            _ = try folder.write("f", Data("an old file".utf8))
            let result = try await Running.urlload(
                ["wget", "--waitretry=0", "-O", "f", origin.url("/lost").absoluteString], in: folder)
            #expect(result.code == 0 && result.errors.contains("attempt 3 of 20"), "\(result.errors)")
            let bytes = try folder.bytes("f")
            #expect(bytes == Array("here".utf8) && folder.names == ["f"], "\(folder.names)")
            #expect(origin.requests.allSatisfy { $0.headers[.range] == nil })
        }
    }

    @Test func `Messages of wget and httpie name their own options`() async throws {
        for (grammar, code) in [("wget", 2), ("http", 1)] as [(String, Int32)] {
            let result = try await Running.urlload([grammar, "--no-such-option"])
            #expect(result.code == code && result.errors.hasSuffix("urlload \(grammar) --help lists the options\n"))
        }
        let nothing = try await Running.urlload(["wget"])
        #expect(nothing.errors == "urlload: no URL\nurlload wget --help lists the options\n")
        try await with([.etag: "\"v\""]) { origin, folder in
            origin.route("/cut") { _ in
                .ok(
                    .declared(Int64(Self.content.count), bytes: Array(Self.content[..<1000])),
                    headers: [.etag: "\"v\""])
            }
            let cut = try await Running.urlload(
                ["wget", "--tries=1", "-O", "f", origin.url("/cut").absoluteString], in: folder)
            #expect(cut.code == 4 && cut.errors.contains("repeat with -c to resume"), "\(cut.errors)")
        }
    }

    @Test func `wget -c leaves a complete file alone, also with a server without ranges`() async throws {
        try await with([:]) { origin, folder in
            let place = try folder.write("f", Data(Self.content))
            let words = ["wget", "-c", "-O", "f", origin.url("/quick").absoluteString]
            let result = try await Running.urlload(words, in: folder)
            #expect(result.code == 0 && result.errors == "urlload: f: is complete already\n", "\(result.errors)")
            try Data("short".utf8).write(to: place)
            let other = try await Running.urlload(words, in: folder)
            let bytes = try folder.bytes("f")
            #expect(other.code == 0 && bytes == Self.content && folder.names == ["f"], "\(other.errors)")
        }
    }

    @Test func `wget names the file that it has saved in a pipe, too`() async throws {
        try await with([:]) { origin, folder in
            for (words, name) in [([], "quick"), (["-nv"], "quick.1"), (["-q"], nil)] as [([String], String?)] {
                let result = try await Running.urlload(
                    ["wget"] + words + [origin.url("/quick").absoluteString], in: folder)
                #expect(result.code == 0, "\(result.errors)")
                #expect(name.map { result.errors.contains("saved \($0), ") } ?? result.errors.isEmpty)
            }
        }
    }

    // MARK: Limits

    @Test(arguments: [[], ["-o", "out"], ["-i", "-o", "out"], ["--retry", "1"]])
    func `A body without a length ends at --max-filesize`(_ words: [String]) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.chunks((0..<100).map { _ in .bytes(Array(repeating: 0x78, count: 1000)) })) }
            let folder = try TemporaryFolder()
            let result = try await Running.urlload(
                words + ["--max-filesize", "5k", origin.url().absoluteString], in: folder)
            #expect(result.code == 63 && result.output.count <= 5 << 10, "\(result.errors)")
            #expect(result.errors.contains("--max-filesize allows 5120") && folder.names.isEmpty, "\(folder.names)")
        }
    }

    @Test func `A download sends no Accept-Encoding if it is left out`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("here") }
            let folder = try TemporaryFolder()
            for (words, value) in [([], "identity"), (["-H", "Accept-Encoding:"], nil)] as [([String], String?)] {
                let result = try await Running.urlload(words + ["-o", "out", origin.url().absoluteString], in: folder)
                #expect(result.code == 0 && origin.requests.last?.headers[.acceptEncoding] == value)
                let part = try await Running.urlload(
                    words + ["-C", "-", "-o", "out", origin.url().absoluteString], in: folder)
                #expect(part.code == 0 && origin.requests.last?.headers[.acceptEncoding] == value, "\(part.errors)")
            }
        }
    }

    /// `F:` stands for the field that is left out, `U` for the URL.
    @Test(
        arguments: [
            "-s U -H F:", "-s -o out U -H F:", "-s -O U -H F:", "-s -C - -o out U -H F:", "-s -d a=1 U -H F:",
            "wget -q -O - U --header=F:", "wget -q -O out U --header=F:", "wget -q U --header=F:",
            "http -I U F:", "http -I -o out U F:", "http -I -d U F:", "http -I U a=1 F:",
        ], ["Accept", "User-Agent", "Accept-Encoding"])
    func `A field that is left out is missing in the request, and all others stay`(
        _ line: String, _ name: String
    ) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/page") { _ in .ok("here") }
            var heads: [[String]] = []
            // Leaving out a field that would not be sent changes nothing.
            for field in ["X-None", name] {
                let folder = try TemporaryFolder()
                let words = line.split(separator: " ").map { word in
                    word == "U"
                        ? origin.url("/page").absoluteString : String(word).replacing("F:", with: "\(field):")
                }
                let result = try await Running.urlload(words, in: folder)
                #expect(result.code == 0 && origin.requests.count == heads.count + 1, "\(words) \(result.errors)")
                let last = try #require(origin.requests.last)
                heads.append(last.headers.map { "\($0.name): \($0.value)".lowercased() })
            }
            let others = heads[0].filter { !$0.hasPrefix(name.lowercased() + ":") }
            #expect(heads[1] == others, "\(line)")
            // Accept-Encoding depends on the destination.
            let offersCoding = ["-s U -H F:", "-s -o out U -H F:", "http -I U F:"].contains(line)
            #expect(heads[0].count == others.count + 1 || name == "Accept-Encoding" && !offersCoding, "\(heads[0])")
        }
    }

    // MARK: Trailers

    /// With `-C`, a part of the file is there.
    @Test(
        arguments: [
            [], ["-o", "out"], ["-i", "-o", "out"], ["-C", "-", "-o", "out"], ["-O", "-J"], ["-C", "-", "-O", "-J"],
        ] as [[String]])
    func `-D has the trailers behind the heads, whatever becomes of the body`(_ words: [String]) async throws {
        let isPart = words.contains("-C") && words.contains("out")
        try await withHTTPTestServer { origin in
            origin.route("/page") { request in
                guard request.headers[.range] == "bytes=2-" else {
                    return .ok(.chunks(["here"], trailers: ["X-Sum": "1"]))
                }
                return .status(
                    .partialContent, headers: [.contentRange: "bytes 2-3/4"],
                    body: .chunks(["re"], trailers: ["X-Sum": "1"]))
            }
            let folder = try TemporaryFolder()
            if isPart { _ = try folder.write("out.part", Data("he".utf8)) }
            let result = try await Running.urlload(
                words + ["-s", "-D", "heads", origin.url("/page").absoluteString], in: folder)
            let heads = String(decoding: try folder.bytes("heads"), as: UTF8.self)
            #expect(result.code == 0 && heads.hasPrefix("HTTP/1.1 20\(isPart ? 6 : 0) "), "\(result.errors) \(heads)")
            #expect(heads.hasSuffix("\r\n\r\nX-Sum: 1\r\n"), "\(heads.debugDescription)")
            if isPart { #expect(try folder.bytes("out") == Array("here".utf8)) }
        }
    }

    @Test(arguments: [[], ["-o", "out"]] as [[String]])
    func `A file of -D that cannot be written is an error`(_ words: [String]) async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            let folder = try TemporaryFolder()
            let result = try await Running.urlload(
                words + ["-sS", "-D", "/dev/full", origin.url().absoluteString], in: folder)
            #expect(result.code == 23 && result.errors.contains("/dev/full"), "\(result)")
        }
    }

    // MARK: Connections

    @Test func `The server sees the first free port of --local-port`() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        // The first port of the range is taken. Other processes may have taken the next ones, so several are offered.
        let taken = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let first = taken.address.port
        let last = max(first, min(first &+ 200, 65_535))
        let token = StopToken()
        let server = Task {
            let peer = try await listener.accept(token)
            // No other connection waits for an answer.
            listener.close()
            peer.close()
            return peer.remoteAddress?.port
        }
        let result = try await Running.urlload([
            "-sS", "--noproxy", "*", "--local-port", "\(first)-\(last)", "http://127.0.0.1:\(listener.address.port)/",
        ])
        // A command that has ended makes no connection any more.
        token.stop(.cancelled)
        let seen = try await server.value
        let port = try #require(seen, "\(result.errors)")
        #expect(port > first && port <= last, "\(port) is not of \(first) to \(last): \(result.errors)")
        withExtendedLifetime(taken) {}
    }

    @Test func `HTTP/1_0 sends no body of a pipe`() async throws {
        let result = try await Running.command(
            "/bin/sh", ["-c", "echo x | \"$0\" -s -S -0 -T - http://127.0.0.1:1/", Running.urlloadPath])
        #expect(result.code == 25 && result.errors.contains("unknown length"), "\(result.errors)")
    }

    // MARK: The demonstration

    @Test func `The demonstration is in order in a pipe, and ends with what to try next`() async throws {
        let result = try await Running.urlload([])
        #expect(result.code == 0 && result.errors.isEmpty, "\(result.errors)")
        let lines = result.text.split(separator: "\n")
        #expect(lines.last?.contains("urlload --help") == true && result.text.contains("Try next:"))
        // The message of a step stands between its command line and its exit code.
        let title = try #require(lines.firstIndex { $0.hasPrefix("# A page that is not there") })
        #expect(lines[title + 2].contains("404 Not Found") && lines[title + 3] == "(exit code 22)", "\(lines)")
    }
}
