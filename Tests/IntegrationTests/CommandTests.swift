// SPDX-License-Identifier: Apache-2.0

// `urlload` as a process, with real servers.

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport

@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(5)))
struct CommandTests {
    @Test(
        "Exit codes",
        arguments: [
            ("NGINX", "/1k.txt", [], 0), ("NGINX", "/nope", [], 0), ("NGINX", "/nope", ["-f"], 22),
            ("NGINX", "/500", ["--fail"], 22),
            ("NGINX", "/loop", [], 47), ("NGINX", "/loop", ["--no-location"], 0),
            ("NGINX", "/r302", ["--max-redirects", "0"], 47),
            ("NGINX", "/drop", [], 52), ("ORIGIN", "/short", [], 18), ("ORIGIN", "/reset", [], 56),
            ("ORIGIN", "/garbage", [], 1),
            ("ORIGIN", "/badgzip", [], 61), ("ORIGIN", "/silent", ["--timeout", "0.3"], 28),
            ("ORIGIN", "/stall", ["-m", "0.3"], 28),
            ("NGINX_TLS", "/1k.txt", [], 60), ("NGINX_TLS", "/1k.txt", ["--cacert", "CA"], 0),
            ("NGINX_TLS", "/1k.txt", ["-k"], 0),
            ("NGINX_TLS", "/1k.txt", ["--cacert", "/nope"], 77),
            ("NGINX_TLS13", "/1k.txt", ["-k", "--tls-max", "1.2"], 35),
            ("NGINX", "/1k.txt", ["-o", "/no/such/folder/x"], 23), ("NGINX", "/1k.txt", ["-d", "@/no/such/file"], 26),
            ("NGINX", "/1k.txt", ["--nope"], 2), ("NGINX", "/1k.txt", ["-F", "a=1", "-d", "b"], 2),
        ] as [(String, String, [String], Int32)])
    func exitCodes(_ server: String, _ path: String, _ options: [String], _ code: Int32) async throws {
        let options = options.map { $0 == "CA" ? Servers.variable("CA") ?? "" : $0 }
        let result = try await Running.urlload(options + [Servers.text(server, path)])
        #expect(result.code == code, "\(result.errors)")
        #expect(code == 0 || result.errors.hasPrefix("urlload: "))
        let silent = try await Running.urlload(["-s"] + options + [Servers.text(server, path)])
        #expect(silent.code == code)
        #expect(silent.errors.isEmpty || code == 2)
    }

    @Test(
        "Exit codes without a server",
        arguments: [
            ("http://127.0.0.1:1/", 7), ("gopher://127.0.0.1/", 1), ("http://a.invalid/", 6), ("http://[::1/", 3),
            ("http:///", 3),
        ] as [(String, Int32)])
    func unreachable(_ url: String, _ code: Int32) async throws {
        let result = try await Running.urlload([url])
        #expect(result.code == code, "\(result.errors)")
    }

    @Test("--checksum compares the body, and leaves no file with another one") func checksum() async throws {
        let folder = try TemporaryFolder()
        let place = folder.url("out").path(percentEncoded: false)
        let url = try Servers.text("NGINX", "/1k.txt")
        let numbers = String(decoding: Servers.numbers(128), as: UTF8.self)
        let digest = try await Running.command("/usr/bin/sha256sum", [], input: numbers).text.prefix(64)
        for options in [[], ["-O", "--output-dir", folder.path], ["-o", place], ["-C", "-", "-o", place]] {
            let right = try await Running.urlload(options + ["--checksum", "sha-256=\(digest)", url])
            #expect(right.code == 0, "\(options) \(right.errors)")
            for name in folder.names { try FileManager.default.removeItem(at: folder.url(name)) }
            let wrong = String(repeating: "0", count: 64)
            let result = try await Running.urlload(options + ["--checksum", "sha-256=\(wrong)", url])
            #expect(result.code == 32 && result.errors.contains("sha-256 of the body is \(digest)"), "\(result.errors)")
            #expect(folder.names.isEmpty, "\(options)")
        }
        #expect(try await Running.urlload(["--checksum", "md5=00", url]).code == 2)
    }

    @Test("-X QUERY sends its data, and again after a redirect") func query() async throws {
        let result = try await Running.urlload(["-v", "-X", "QUERY", "-d", "a=b", Servers.text("NGINX", "/r302")])
        #expect(result.errors.components(separatedBy: "> QUERY ").count == 3, "\(result.errors)")
    }

    @Test("The body is written to standard output") func theBodyGoesToStandardOutput() async throws {
        let result = try await Running.urlload([Servers.text("NGINX", "/1k.txt"), Servers.text("APACHE", "/r302")])
        #expect(result.output == Array(Servers.numbers(128) + Servers.numbers(128)))
        #expect(result.errors.isEmpty)
    }

    @Test("-i and -I write heads") func headsAndBodies() async throws {
        let head = try await Running.urlload(["-I", Servers.text("NGINX", "/1m.bin")])
        #expect(head.text.hasPrefix("HTTP/1.1 200 OK\r\n") && head.text.hasSuffix("\r\n\r\n"))
        #expect(head.text.contains("Content-Length: 1000000\r\n"))
        let both = try await Running.urlload(["-i", Servers.text("ORIGIN", "/interim")])
        let interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        #expect(both.text == interim + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
    }

    @Test("-i and -I write the head of a response that --fail or a condition refuses")
    func headsOfRefusedResponses() async throws {
        let missing = try Servers.text("NGINX", "/nowhere")
        for option in ["-i", "-I"] {
            let result = try await Running.urlload(["-sf", option, missing])
            #expect(result.code == 22)
            #expect(result.text.hasPrefix("HTTP/1.1 404 Not Found\r\n") && result.text.hasSuffix("\r\n\r\n"))
        }
        let unchanged = try await Running.urlload(["-i", "-H", "If-None-Match: *", Servers.text("APACHE", "/1k.txt")])
        #expect(unchanged.code == 0)
        #expect(unchanged.text.hasPrefix("HTTP/1.1 304 Not Modified\r\n") && unchanged.text.hasSuffix("\r\n\r\n"))
        #expect(try await Running.urlload(["-sf", missing]).output.isEmpty)
    }

    @Test("Data is posted") func dataIsPosted() async throws {
        let echo = try Servers.text("ORIGIN", "/echo")
        let form = try await Running.urlload(["-i", "-d", "a=1", "-d", "b=2", echo])
        #expect(form.text.hasSuffix("\r\n\r\na=1&b=2"))
        #expect(form.text.contains("X-Method: POST\r\nX-Type: application/x-www-form-urlencoded\r\n"))
        let json = try await Running.urlload(
            ["-i", "-X", "PUT", "-H", "Content-Type: application/json", "-d", "@-", echo], input: "{}")
        #expect(json.text.hasSuffix("X-Method: PUT\r\nX-Type: application/json\r\n\r\n{}"))
        let folder = try TemporaryFolder()
        let file = try await Running.urlload([
            "--data-binary", "@" + (Servers.variable("FILES") ?? "") + "/1m.bin", "-o", folder.path + "/echo", echo,
        ])
        #expect(file.code == 0)
        #expect(try folder.bytes("echo") == Array(Servers.numbers(125_000)))
    }

    @Test("Files appear when they are complete") func filesAppearWhenTheyAreComplete() async throws {
        let folder = try TemporaryFolder()
        let good = try await Running.urlload(
            ["-O", Servers.text("NGINX", "/1m.txt"), Servers.text("NGINX", "/1k.txt?x")], in: folder)
        #expect(good.code == 0 && good.output.isEmpty && good.errors.isEmpty)
        #expect(folder.names == ["1k.txt", "1m.txt"])
        #expect(try folder.bytes("1m.txt") == Array(Servers.numbers(125_000)))
        let bad = try await Running.urlload(["-o", "1k.txt", Servers.text("ORIGIN", "/short")], in: folder)
        #expect(bad.code == 18)
        // The partial content is kept beside the file, which is never incomplete.
        #expect(folder.names == ["1k.txt", "1k.txt.part", "1m.txt"])
        #expect(try folder.bytes("1k.txt") == Array(Servers.numbers(128)))
    }

    @Test("--summary json writes one object for each URL") func oneJSONObjectPerURL() async throws {
        let result = try await Running.urlload(
            [
                "--summary", "json", "--cacert", #require(Servers.variable("CA")), Servers.text("NGINX_TLS", "/1k.txt"),
                Servers.text("NGINX", "/r302"),
                "http://127.0.0.1:1/",
            ])
        #expect(result.code == 7)
        struct Report: Decodable {
            struct Timings: Decodable { let resolve, connect, tls, firstByte, total: Double? }
            struct Redirect: Decodable {
                let status: Int
                let url: String
            }
            struct Failure: Decodable {
                let reason, phase, party: String
                let code, exitCode: Int
            }
            let url: String
            let effectiveURL: String?
            let status: Int?
            let headers: [String: [String]]?
            let bytes: Int
            let timings: Timings
            let reused: Bool
            let redirects: [Redirect]
            let error: Failure?
        }
        let reports = try result.output.split(separator: 10).map {
            try JSONDecoder().decode(Report.self, from: Data($0))
        }
        try #require(reports.count == 3)
        #expect(reports[0].status == 200 && reports[0].bytes == 1024)
        #expect(reports[0].headers?["content-type"] == ["text/plain"])
        let times = [
            reports[0].timings.connect, reports[0].timings.tls, reports[0].timings.firstByte, reports[0].timings.total,
        ]
        #expect(times.compactMap { $0 }.count == 4 && times.compactMap { $0 } == times.compactMap { $0 }.sorted())
        #expect(reports[1].redirects.map(\.status) == [302] && reports[1].timings.tls == nil)
        // The server's redirect leads past the relay.
        #expect(reports[1].reused == !Servers.isFar)
        #expect(reports[1].effectiveURL?.hasSuffix("/1k.txt") == true)
        #expect(
            reports[2].error?.reason == "connectionRefused" && reports[2].error?.exitCode == 7
                && reports[2].status == nil)
    }

    @Test("--har contains every transaction") func anArchiveHasEveryTransaction() async throws {
        let folder = try TemporaryFolder()
        let result = try await Running.urlload(
            ["--har", "a.har", "-H", "Cookie: id=secret", Servers.text("NGINX", "/r302"), "http://127.0.0.1:1/"],
            in: folder)
        #expect(result.code == 7)
        struct File: Decodable {
            struct Log: Decodable {
                let version: String
                let entries: [Entry]
            }
            struct Entry: Decodable {
                let time: Double
                let response: Answer
            }
            struct Answer: Decodable {
                let status: Int
                let _error: String?
            }
            let log: Log
        }
        let bytes = try folder.bytes("a.har")
        let log = try JSONDecoder().decode(File.self, from: Data(bytes)).log
        #expect(log.version == "1.2" && log.entries.map(\.response.status) == [302, 200, 0])
        #expect(log.entries.last?.response._error == "connectionRefused" && log.entries.allSatisfy { $0.time >= 0 })
        #expect(!String(decoding: bytes, as: UTF8.self).contains("secret"))
        let nowhere = try await Running.urlload(["--har", "/no/such/folder/a.har", Servers.text("NGINX", "/1k.txt")])
        #expect(nowhere.code == 23 && nowhere.output.count == 1024)
    }

    @Test("--trace contains every byte") func aTraceHasEveryByte() async throws {
        let result = try await Running.urlload(
            [
                "--trace", "-H", "Authorization: Basic c2VjcmV0", "-H", "Cookie: id=secret", "-d", "a\\b",
                Servers.text("ORIGIN", "/control"),
            ])
        let lines = result.errors.split(separator: "\n").map(String.init)
        #expect(lines.contains("> POST /control HTTP/1.1") && lines.contains("> Authorization: Basic [hidden]"))
        #expect(lines.contains("> a\\\\b\\") && lines.contains("< \\x1b[31m\\x00\\xff\\"))
        #expect(!result.errors.contains("secret") && !result.errors.contains("c2VjcmV0"))
        let shown = try await Running.urlload([
            "--trace-secrets", "-v", "-H", "Cookie: id=secret", Servers.text("ORIGIN", "/control"),
        ])
        #expect(shown.errors.contains("> Cookie: id=secret\n") && !shown.errors.contains("\\x1b"))
        let large = try await Running.urlload([
            "--trace", "--data-binary", "@" + (Servers.variable("FILES") ?? "") + "/1m.txt",
            Servers.text("ORIGIN", "/count"),
        ])
        #expect(large.text == "1000000")
        #expect(large.errors.split(separator: "\n").count { $0.hasPrefix("> 0") } >= 125_000)
    }

    @Test("--insecure causes a warning") func insecureIsLoud() async throws {
        let result = try await Running.urlload(["-k", Servers.text("NGINX_TLS", "/1k.txt")])
        #expect(result.errors.contains("WARNING"))
    }

    @Test("A closed pipe ends the command without a message") func aClosedPipeIsNoNews() async throws {
        let url = try Servers.text("NGINX", "/1g.bin")
        // With SIGPIPE ignored, as by some parents, and not ignored.
        for trap in ["", "trap '' PIPE; "] {
            let result = try await Running.command(
                "/bin/bash",
                ["-c", trap + "\"$0\" \"$1\" | head -c 10 | wc -c; echo ${PIPESTATUS[0]}", Running.urlloadPath, url])
            #expect(result.text == "10\n141\n")
            #expect(result.errors.isEmpty)
        }
    }

    @Test("The demonstration ends without a message at a closed pipe, and with 130 after SIGINT")
    func demonstrationEnds() async throws {
        for trap in ["", "trap '' PIPE; "] {
            let result = try await Running.command(
                "/bin/bash", ["-c", trap + "\"$0\" | head -n 1 | wc -l; echo ${PIPESTATUS[0]}", Running.urlloadPath])
            #expect(result.text == "1\n141\n")
            #expect(result.errors.isEmpty)
        }
        let process = try Running(Running.urlloadPath, [])
        try await process.eventuallyText { $0.contains("# A body that takes its time") }
        process.send(SIGINT)
        let result = try await process.wait()
        #expect(result.code == 130)
    }

    @Test(
        "Signals end the load and leave only the partial file",
        arguments: [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 130)] as [(Int32, Int32)])
    func signals(_ number: Int32, _ code: Int32) async throws {
        let folder = try TemporaryFolder()
        let process = try Running(
            Running.urlloadPath, ["-o", "file", "--summary", "json", Servers.text("ORIGIN", "/stall")], in: folder)
        // The temporary file shows that the load has begun.
        try await eventuallyFiles(folder.names) { $0.contains { $0.hasPrefix(".urlload") } }
        process.send(number)
        let result = try await process.wait()
        #expect(result.code == code)
        #expect(result.text.contains(#""reason":"cancelled""#))
        // A partial file, if any bytes arrived: the response has no validator.
        #expect(folder.names.isEmpty || folder.names == ["file.part"], "\(folder.names)")
        #expect(result.errors.isEmpty || result.errors.contains("to resume without validation"), "\(result.errors)")
    }

    @Test("A signal ends a blocked write") func aSignalEndsAWriteThatWaits() async throws {
        // The pipe is not read: it fills, and the next write would block forever.
        let script = "\"$0\" \"$1\" > >(exec sleep 5) & sleep 0.5; kill -TERM $!; wait $!; echo $?"
        let result = try await Running.command(
            "/bin/bash", ["-mc", script, Running.urlloadPath, Servers.text("NGINX", "/1g.bin")])
        #expect(result.text == "143\n")
    }

    @Test("-C resumes the file of a killed run: only the missing bytes are sent")
    func continued() async throws {
        let folder = try TemporaryFolder()
        let whole = try Servers.text("NGINX", "/1g.bin")
        let first = try Running(Running.urlloadPath, ["-sC", "-o", "file", "--max-time", "60", whole], in: folder)
        // Enough bytes for a token, but not all.
        try await eventuallyFiles(folder.names) { $0.contains(".file.urlload") }
        first.send(SIGKILL)
        _ = try await first.wait()
        #expect(!folder.names.contains("file"))
        let held = folder.names.filter { $0.hasPrefix(".urlloading-") }
        #expect(held.count == 1)
        let second = try await Running.urlload(["-C", "-v", "-o", "file", whole], in: folder)
        #expect(second.code == 0)
        #expect(second.errors.contains("> Range: bytes=") && second.errors.contains("< HTTP/1.1 206"))
        #expect(folder.names == ["file"])
        let files = Servers.variable("FILES") ?? ""
        let same = try await Running.command("/usr/bin/cmp", [folder.path + "/file", files + "/1g.bin"])
        #expect(same.code == 0)
        // The server counts the bytes: those present were not sent again.
        let range = try #require(second.errors.split(separator: "\n").first { $0.contains("> Range: bytes=") })
        let offset = try #require(Int(range.split(separator: "=")[1].dropLast()))
        #expect(offset > 0)
        let length = try #require(second.errors.split(separator: "\n").first { $0.contains("< Content-Length: ") })
        #expect(Int(length.split(separator: " ").last ?? "") == (1 << 30) - offset)
    }

    @Test(
        "Memory stays small for a large body",
        .disabled(if: Servers.isSanitized, "The sanitizer's own memory is many times the limit"))
    func memoryStaysSmall() async throws {
        let folder = try TemporaryFolder()
        func highWater(_ arguments: [String]) async throws -> Int {
            let result = try await Running(Running.urlloadPath, arguments, in: folder, sampling: true).wait()
            #expect(result.code == 0)
            return result.highWater
        }
        // The program's own memory differs between systems, by its libraries. A small body, slow enough to be sampled.
        let small = try Servers.text("NGINX", "/1m.bin")
        let own = try await highWater(["--limit-rate", "2m", "-o", "/dev/null", small])
        #expect(own > 1 << 20)
        let most = own + 8 << 20
        let url = try Servers.text("NGINX", Servers.isLong ? "/10g.bin" : "/1g.bin")
        for options in [["-o", "/dev/null"], ["--summary", "json"]] {
            let taken = try await highWater(options + [url])
            #expect(taken > 1 << 20 && taken < most)
        }
        let file = (Servers.variable("FILES") ?? "") + "/1g.bin"
        // nginx reads the rest of the body before it closes.
        let taken = try await Running(
            Running.urlloadPath, ["--data-binary", "@" + file, Servers.text("NGINX", "/drop")], in: folder,
            sampling: true
        ).wait().highWater
        #expect(taken < most)
    }
}
