// SPDX-License-Identifier: Apache-2.0

// `urlload -F` and `--sse` as a process, with a server in this one.

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(5)))
struct CommandEventTests {
    private static let type: Headers = [.contentType: "text/event-stream"]

    @Test("Events are printed until the server ends the reconnections")
    func events() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                guard request.headers["Last-Event-ID"] == nil else { return .status(.noContent) }
                return .ok("retry: 0\nid: 1\nevent: a\ndata: x\ndata: y\n\ndata: z\n\n", headers: Self.type)
            }
            let url = origin.url().absoluteString
            let blocks = try await Running.urlload(["--sse", url])
            #expect(blocks.code == 0 && blocks.errors.isEmpty, "\(blocks.errors)")
            #expect(blocks.text == "event: a\nid: 1\ndata: x\ndata: y\n\nid: 1\ndata: z\n\n")
            let lines = try await Running.urlload(["--sse", "--summary", "json", url])
            #expect(
                lines.text == #"{"type":"a","data":"x\ny","lastEventID":"1"}"# + "\n"
                    + #"{"type":"message","data":"z","lastEventID":"1"}"# + "\n")
        }
    }

    @Test(
        "A response that is not an event stream has an exit code",
        arguments: [("/404", 22), ("/html", 8), ("/silent", 28)] as [(String, Int32)])
    func refused(_ path: String, _ code: Int32) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/html") { _ in .ok("<p>", headers: [.contentType: "text/html"]) }
            origin.route("/silent", faults: [.init(.responseHead(after: 0), .stall)]) { _ in .ok("") }
            let limit = code == 28 ? ["-m", "1"] : []
            let result = try await Running.urlload(["--sse"] + limit + [origin.url(path).absoluteString])
            #expect(
                result.code == code && result.output.isEmpty && result.errors.hasPrefix("urlload: "), "\(result.errors)"
            )
        }
    }

    @Test("An interrupt ends an event stream")
    func interrupted() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 9), .stall)]) { _ in
                .ok("data: a\n\ndata: b\n\n", headers: Self.type)
            }
            let running = try Running(Running.urlloadPath, ["--sse", origin.url().absoluteString])
            try await origin.wait { $0.stalled == 1 }
            running.send(SIGINT)
            let result = try await running.wait()
            #expect(result.code == 130)
            #expect(result.text == "" || result.text == "data: a\n\n")
        }
    }

    @Test("A form with a file arrives")
    func form() async throws {
        let folder = try TemporaryFolder()
        try Data("content".utf8).write(to: URL(filePath: folder.path + "/a;b.txt"))
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok(.bytes(request.body)) }
            let result = try await Running.urlload(
                ["-F", "t=1", "-F", "f=@\"a;b.txt\";type=x/y", "-F", "s=<-", origin.url().absoluteString], input: "in",
                in: folder)
            #expect(result.code == 0, "\(result.errors)")
            let boundary = try #require(result.text.split(separator: "\r\n").first)
            let parts = [
                "name=\"t\"\r\n\r\n1", "name=\"f\"; filename=\"a;b.txt\"\r\nContent-Type: x/y\r\n\r\ncontent",
                "name=\"s\"\r\n\r\nin",
            ]
            #expect(
                result.text == parts.map { "\(boundary)\r\nContent-Disposition: form-data; \($0)\r\n" }.joined()
                    + "\(boundary)--\r\n")
            #expect(origin.requests.first?.headers[.contentLength] == "\(result.output.count)")
            let missing = try await Running.urlload(["-F", "f=@/no/such/file", origin.url().absoluteString])
            #expect(missing.code == 26 && missing.errors.contains("/no/such/file"))
        }
    }
}
