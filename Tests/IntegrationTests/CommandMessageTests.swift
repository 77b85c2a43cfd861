// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// The messages of `urlload` on standard error, and the places of saved files.
@Suite(.timeLimit(.minutes(4)))
struct CommandMessageTests {
    private func withPages(_ use: (HTTPTestServer, TemporaryFolder) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in .ok("page \(request.path)") }
            origin.route("/missing") { _ in .status(.notFound, body: .bytes(Array("no such page".utf8))) }
            try await use(origin, folder)
        }
    }

    private func text(_ name: String, in folder: TemporaryFolder) throws -> String {
        String(decoding: try folder.bytes(name), as: UTF8.self)
    }

    // MARK: Files of certificates

    @Test(
        "The error for an unusable file of --cacert names the file and the cause",
        arguments: [
            ("missing.pem", "No such file or directory"), ("", "Is a directory"),
            ("text.pem", "the file contains no certificate in PEM"),
        ])
    func roots(_ name: String, _ words: String) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let folder = try TemporaryFolder()
        try Data("no certificate\n".utf8).write(to: URL(filePath: folder.path + "/text.pem"))
        let path = name.isEmpty ? folder.path : folder.path + "/" + name
        try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in
            let result = try await Running.urlload(["--cacert", path, origin.url().absoluteString])
            #expect(result.code == 77 && result.errors.hasSuffix(": \(path): \(words)\n"), "\(result.errors)")
        }
    }

    @Test("The error for an unusable file of --cert or --key names the file and the cause")
    func identity() async throws {
        let made = try TestCertificateAuthority(commonName: "Test root").issue()
        let folder = try TemporaryFolder()
        func file(_ name: String, _ content: some Collection<UInt8>) throws -> String {
            try Data(content).write(to: URL(filePath: folder.path + "/" + name))
            return folder.path + "/" + name
        }
        let certificate = try file("certificate.pem", made.certificatePEM)
        let text = try file("text", "no certificate\n".utf8)
        let nowhere = folder.path + "/nowhere"
        func words(_ options: String...) async throws -> String {
            let result = try await Running.urlload(options + ["http://127.0.0.1:1/"])
            #expect(result.code == 58, "\(result.errors)")
            return result.errors
        }
        let missing = ": \(nowhere) cannot be read: No such file or directory\n"
        #expect(try await words("--cert", nowhere).hasSuffix(missing))
        #expect(try await words("--cert", text).hasSuffix(": \(text): there is no certificate\n"))
        #expect(try await words("--cert", certificate).hasSuffix(": \(certificate): there is no private key\n"))
        #expect(try await words("--cert", certificate, "--key", nowhere).hasSuffix(missing))
        #expect(try await words("--cert", certificate, "--key", text).hasSuffix(": \(text): there is no private key\n"))
        let alone = try await Running.urlload(["--key", text, "http://127.0.0.1:1/"])
        #expect(alone.code == 2 && alone.errors.hasPrefix("urlload: --key needs --cert\n"))
    }

    @Test("Status lines are written with the reason phrase that the server sent")
    func reasonPhrases() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .raw(["HTTP/1.1 200 Fine   indeed\r\nContent-Length: 2\r\n\r\nok"]) }
            let address = origin.url().absoluteString
            for words in [["-i", address], ["-s", "-D", "-", address], ["http", "-h", address]] {
                let result = try await Running.urlload(words)
                #expect(
                    result.text.hasPrefix("HTTP/1.1 200 Fine   indeed\r\nContent-Length: 2\r\n\r\n"),
                    "\(words): \(result.text)")
            }
        }
    }

    @Test("The message about a violation is a sentence, and its name follows")
    func violations() async throws {
        try await withHTTPTestServer { origin in
            let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            origin.route("/chunk") { _ in .raw([.bytes(Array("\(chunked)5\r\nhello\r\nzz\r\n".utf8))]) }
            origin.route("/head") { _ in .ok("", headers: ["A": String(repeating: "x", count: 70_000)]) }
            for (path, words) in [
                (
                    "/chunk",
                    "a chunk does not begin with a valid size in hexadecimal digits, at byte 10 of the body "
                        + "(RFC 9112 7.1) (malformedChunkSize, receiving)"
                ), ("/head", "the head is larger than the limit of 65536 bytes (RFC 9110 5.4) (headTooLarge, waiting)"),
            ] {
                let address = origin.url(path).absoluteString
                let result = try await Running.urlload(["-sS", address])
                #expect(result.errors == "urlload: \(address): \(words)\n", "\(result.errors)")
            }
        }
    }

    @Test("-s leaves standard error empty, without the warning of -k")
    func silence() async throws {
        try await withPages { origin, folder in
            for options in [["-k"], ["-O"], ["-k", "-o", "x"]] {
                let result = try await Running.urlload(
                    ["-s"] + options + [origin.url("/missing").absoluteString], in: folder)
                #expect(result.code == 0 && result.errors == "", "\(options): \(result.errors)")
            }
        }
    }

    @Test("A log to which standard error or standard output is appended keeps its lines")
    func appendedLogs() async throws {
        try await withPages { origin, _ in
            for (words, file, part) in [
                ("wget -S -O got", "2>>log", "HTTP/1.1 200 OK"), ("-D /dev/stderr -o got", "2>>log", "HTTP/1.1 200 OK"),
                ("-D /dev/stdout -o got", ">>log", "HTTP/1.1 200 OK"),
                ("--stderr /dev/stdout -k -o got", ">>log", "WARNING: --insecure"),
                ("--trace-ascii /dev/stdout -o got", ">>log", "GET /page"), ("-o /dev/stdout", ">>log", "page /page"),
                ("-C - -o /dev/stdout", ">>log", "page /page"), ("-i -o /dev/stderr", "2>>log", "page /page"),
            ] {
                let folder = try TemporaryFolder()
                let load = "\"$0\" \(words) \"$1\" \(file)"
                let script = "echo before >log; \(load); code=$?; echo after >>log; exit $code"
                let result = try await Running.command(
                    "/bin/bash", ["-c", script, Running.urlloadPath, origin.url("/page").absoluteString], in: folder)
                let log = try text("log", in: folder)
                #expect(result.code == 0 && log.hasPrefix("before\n") && log.hasSuffix("after\n"), "\(words): \(log)")
                #expect(log.contains(part), "\(words): \(log)")
            }
        }
    }

    @Test("Heads and messages on standard error stand one behind the other in a file")
    func headsAndMessages() async throws {
        try await withPages { origin, folder in
            let script = "\"$0\" wget -S \"$1\" 2>log"
            let url = origin.url("/missing").absoluteString
            let result = try await Running.command("/bin/bash", ["-c", script, Running.urlloadPath, url], in: folder)
            let log = try text("log", in: folder)
            #expect(result.code == 8 && log.hasPrefix("HTTP/1.1 404 Not Found\r\n"), "\(log)")
            #expect(log.contains("urlload: \(url): ") && log.hasSuffix("\n"), "\(log)")
        }
    }

    @Test("The groups of --next share the files of --trace-ascii and --stderr")
    func sharedFiles() async throws {
        try await withPages { origin, folder in
            let (first, second) = (origin.url("/first").absoluteString, origin.url("/second").absoluteString)
            let result = try await Running.urlload(
                ["--trace-ascii", "trace", "--stderr", "errors", "-k", first, "--next", "-k", second], in: folder)
            #expect(result.code == 0 && result.text == "page /firstpage /second", "\(result.errors)")
            let (trace, errors) = (try text("trace", in: folder), try text("errors", in: folder))
            #expect(trace.contains("GET /first") && trace.contains("GET /second"), "\(trace)")
            #expect(errors.components(separatedBy: "WARNING: --insecure").count == 3, "\(errors)")
            let both = try await Running.urlload(["--trace-ascii", "one", "--stderr", "one", "-k", first], in: folder)
            let one = try text("one", in: folder)
            #expect(both.code == 0 && one.hasPrefix("urlload: WARNING: --insecure"), "\(one)")
            #expect(one.contains("GET /first"), "\(one)")
        }
    }

    @Test("The groups of --next share the files of --har and --report")
    func sharedPages() async throws {
        try await withPages { origin, folder in
            var arguments = ["-s"]
            for name in ["first", "second"] {
                arguments += ["--har", "a.har", "--report", "a.html", origin.url("/" + name).absoluteString, "--next"]
            }
            let result = try await Running.urlload(arguments + [origin.url("/third").absoluteString], in: folder)
            #expect(result.code == 0 && result.errors == "", "\(result.errors)")
            for name in ["a.har", "a.html"] {
                let page = try text(name, in: folder)
                #expect(page.contains("/first") && page.contains("/second"), "\(name): \(page)")
                #expect(!page.contains("/third"), "\(name): \(page)")
            }
        }
    }

    // MARK: Files of bodies

    @Test("Each URL of -O has its own file: repeated names get a number, with a message")
    func names() async throws {
        try await withPages { origin, folder in
            let paths = ["/a/x", "/b/x", "/c/x.1", "/d/y", "/e/x"]
            let result = try await Running.urlload(["-O"] + paths.map { origin.url($0).absoluteString }, in: folder)
            #expect(
                result.code == 0 && folder.names == ["x", "x.1", "x.2", "x.3", "y"], "\(folder.names) \(result.errors)")
            for (name, path) in zip(["x", "x.2", "x.1", "y", "x.3"], paths) {
                #expect(try text(name, in: folder) == "page \(path)")
            }
            #expect(
                result.errors == """
                    urlload: \(origin.url("/b/x")) is saved to x.2: an earlier URL is saved to x
                    urlload: \(origin.url("/e/x")) is saved to x.3: an earlier URL is saved to x

                    """)
            // Another run replaces the files of the first.
            let again = try await Running.urlload(["-O", origin.url("/f/x").absoluteString], in: folder)
            #expect(again.code == 0 && again.errors == "" && folder.names.count == 5)
            #expect(try text("x", in: folder) == "page /f/x")
        }
    }

    @Test(
        "A saved error page causes a message; the exit code is 0 unless -f is given",
        arguments: [["-O"], ["-o", "missing"], ["-C", "-O"]])
    func errorPage(_ options: [String]) async throws {
        try await withPages { origin, folder in
            let url = origin.url("/missing").absoluteString
            let saved = try await Running.urlload(options + [url], in: folder)
            #expect(saved.code == 0 && folder.names == ["missing"], "\(saved.code) \(folder.names)")
            #expect(
                saved.errors
                    == "urlload: \(url): the server answered 404 Not Found, "
                    + "and missing holds that page; -f saves none\n"
            )
            let printed = try await Running.urlload([url])
            let thrown = try await Running.urlload(["-o", "/dev/null", url])
            #expect(printed.errors == "" && thrown.errors == "" && printed.code == 0 && thrown.code == 0)
            let strict = try await Running.urlload(options + ["-f", url], in: try TemporaryFolder())
            #expect(strict.code == 22)
        }
    }
}
