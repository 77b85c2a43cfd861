// SPDX-License-Identifier: Apache-2.0

// `urlload -T` with input that can be read only once: a process with a pipe.

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct PipedUploadTests {
    /// Writes one half, and the other half when the file `go` exists.
    static func piped(_ options: String, _ url: URL, in folder: TemporaryFolder) throws -> Running {
        let script = "(printf one; until [ -e go ]; do sleep 0.01; done; printf two) | exec \"$0\" \(options) \"$1\""
        return try Running("/bin/bash", ["-c", script, Running.urlloadPath, url.absoluteString], in: folder)
    }

    static func go(_ folder: TemporaryFolder) {
        _ = FileManager.default.createFile(atPath: folder.path + "/go", contents: nil)
    }

    @Test("The request is sent, chunked, before the input has ended")
    func streams() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer(answering: "done") { origin in
            let running = try Self.piped("-T -", origin.url(), in: folder)
            try await origin.wait { $0.requests == 1 }
            Self.go(folder)
            let result = try await running.wait()
            #expect(result.code == 0 && result.text == "done", "\(result.errors)")
            let request = try #require(origin.requests.first)
            #expect(request.method == .put && request.body == Array("onetwo".utf8))
            #expect(request.headers[.transferEncoding] == "chunked" && request.headers[.contentLength] == nil)
            #expect(
                request.headers["Expect"] == "100-continue" && request.headers[.contentType] == nil)
        }
    }

    @Test("With HTTP/2 the input is sent in DATA frames")
    func http2() async throws {
        let folder = try TemporaryFolder()
        try await withHTTP2TestServer { server in
            server.route("/") { request in .ok(.bytes(request.body)) }
            let running = try Self.piped("--http2-prior-knowledge -T -", server.url("/"), in: folder)
            try await server.wait { $0.accepted > 0 }
            Self.go(folder)
            let result = try await running.wait()
            #expect(result.code == 0 && result.text == "onetwo", "\(result.errors)")
            #expect(server.failures.isEmpty)
        }
    }

    @Test("A pipe may be given by its path, and standard input may be a file")
    func others() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer(answering: "done") { origin in
            let script = "mkfifo pipe; printf piped >pipe & exec \"$0\" -T pipe \"$1\""
            let named = try await Running.command(
                "/bin/bash", ["-c", script, Running.urlloadPath, origin.url().absoluteString], in: folder)
            #expect(named.code == 0 && origin.requests.last?.body == Array("piped".utf8), "\(named.errors)")
            #expect(origin.requests.last?.headers[.transferEncoding] == "chunked")
            // Like the path of the file: its length is known, and it can be sent again.
            let file = try await Running.urlload(["-T", "-", origin.url().absoluteString], input: "file")
            #expect(file.code == 0 && origin.requests.last?.body == Array("file".utf8), "\(file.errors)")
            #expect(
                origin.requests.last?.headers[.contentLength] == "4" && origin.requests.last?.headers["Expect"] == nil)
        }
    }

    @Test(
        "Data from a pipe is sent to every URL",
        arguments: [
            "-d @-", "--data-binary @-", "--data-urlencode a@-", "-F f=@-", "-F 'f=<-'", "-G -d @-",
            "-d @<(printf piped)", "-F f=@<(printf piped)",
        ])
    func everyURL(_ options: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("done") }
            let script = "printf piped | \"$0\" \(options) \"$1{a,b}\" \"$1c\""
            let result = try await Running.command(
                "/bin/bash", ["-c", script, Running.urlloadPath, origin.url("/").absoluteString])
            #expect(result.code == 0 && origin.requests.map(\.path) == ["/a", "/b", "/c"], "\(result.errors)")
            for request in origin.requests {
                let sent = request.target + String(decoding: request.body, as: UTF8.self)
                #expect(sent.contains("piped"), "\(request.path): \(sent)")
            }
        }
    }

    @Test("An upload from a pipe is for one URL", arguments: ["-T -", "-T <(printf piped)"])
    func oneURL(_ options: String) async throws {
        try await withHTTPTestServer(answering: "done") { origin in
            let script = "printf piped | \"$0\" \(options) \"$1{a,b}\""
            let result = try await Running.command(
                "/bin/bash", ["-c", script, Running.urlloadPath, origin.url("/").absoluteString])
            #expect(result.code == 2 && result.errors.contains("can be sent once"), "\(result.errors)")
            #expect(origin.requests.isEmpty)
        }
    }

    @Test("A redirect or a challenge arrives before the body, which is sent to the final server")
    func expectation() async throws {
        let folder = try TemporaryFolder()
        Self.go(folder)
        try await withHTTPTestServer { origin in
            origin.route("/moved", readsBody: false) { _ in .redirect("/", status: .temporaryRedirect) }
            origin.route("/closed", readsBody: false) { request in
                request.headers[.authorization] == nil
                    ? .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=x"])
                    : .redirect("/", status: .temporaryRedirect)
            }
            origin.route("/") { _ in .ok("done") }
            for (path, options) in [
                ("/moved", "--expect100-timeout 60 -T -"), ("/closed", "--expect100-timeout 60 -u u:pw -T -"),
            ] {
                let result = try await Self.piped(options, origin.url(path), in: folder).wait()
                #expect(result.code == 0 && result.text == "done", "\(path): \(result.errors)")
                #expect(origin.requests.last?.body == Array("onetwo".utf8))
            }
        }
    }

    @Test("A server that requires the body a second time causes an error")
    func again() async throws {
        let folder = try TemporaryFolder()
        Self.go(folder)
        try await withHTTPTestServer { origin in
            origin.route("/moved") { _ in .redirect("/", status: .temporaryRedirect) }
            origin.route("/") { _ in .ok("done") }
            let result = try await Self.piped("-T -", origin.url("/moved"), in: folder).wait()
            #expect(
                result.code == 26
                    && result.errors.contains(
                        "standard input: the body must be sent again, and this input can be read only once"),
                "\(result.errors)")
            #expect(!origin.requests.contains { $0.target == "/" && !$0.body.isEmpty })
        }
    }

    /// Pipes without a writer, and pipes whose writer is silent until then.
    @Test(
        "Other loads go on while pipes wait",
        arguments: [
            ("mkfifo 1 2 3 4 5", "", "for pipe in 1 2 3 4 5; do printf piped >$pipe; done"),
            (
                "mkfifo 1 2 3 4 5; exec 3<>1 4<>2 5<>3 6<>4 7<>5", "3>&- 4>&- 5>&- 6>&- 7>&-",
                "for pipe in 1 2 3 4 5; do printf piped >$pipe; done; exec 3>&- 4>&- 5>&- 6>&- 7>&-"
            ),
        ])
    func silentPipes(_ begin: String, _ closing: String, _ end: String) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("done") }
            origin.route("/slow") { _ in .ok(.chunks(["sl", .pause(.milliseconds(300)), "ow"])) }
            let urls = (1...5).map { "-T \($0) -o out\($0) \"$1/\($0)\"" }.joined(separator: " ")
            let script = """
                \(begin); "$0" -sS -Z \(urls) -o slow "$1/slow" \(closing) & load=$!
                for count in {1..6000}; do [ -e slow ] && break; sleep 0.01; done
                [ -e slow ] || echo held; \(end); wait $load
                """
            let base = String(origin.url("/").absoluteString.dropLast())
            let result = try await Running.command("/bin/bash", ["-c", script, Running.urlloadPath, base], in: folder)
            #expect(result.code == 0 && result.text.isEmpty, "\(result.text) \(result.errors)")
            #expect(origin.requests.filter { $0.method == .put }.count == 5)
            #expect(origin.requests.allSatisfy { $0.method != .put || $0.body == Array("piped".utf8) })
        }
    }

    @Test("The end of a load does not wait for endless input")
    func anEarlyEnd() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", readsBody: false, faults: [.init(.responseHead(), .close)]) { _ in .ok("") }
            let script =
                "exec 3< <(exec sleep 30); input=$!; \"$0\" -s -T - \"$1\" <&3; code=$?; kill -KILL $input; exit $code"
            let folder = try TemporaryFolder()
            let begun = ContinuousClock.now
            let result = try await Running.command(
                "/bin/bash", ["-c", script, Running.urlloadPath, origin.url().absoluteString], in: folder)
            #expect(result.code != 0 && begun.duration(to: .now) < .seconds(25), "\(result.errors)")
        }
    }
}
