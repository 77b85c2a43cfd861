// SPDX-License-Identifier: Apache-2.0

// `urlload --retry` as a process.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct RetryCommandTests {
    @Test(
        "--retry retries, prints messages, and delivers the last response",
        arguments: [
            (["--retry", "2"], 3, "3", 0), (["--retry", "1"], 2, "2", 0), (["--retry", "1", "-f"], 2, "", 22),
            ([], 1, "1", 0),
            (["-s", "--retry", "2"], 3, "3", 0), (["--retry", "2", "-d", "x"], 3, "3", 0),
        ] as [([String], Int, String, Int32)])
    func statuses(_ options: [String], _ count: Int, _ output: String, _ code: Int32) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { [weak origin] _ in
                let number = origin?.requests.count ?? 0
                return .status(number < 3 ? .serviceUnavailable : .ok, body: .bytes(Array("\(number)".utf8)))
            }
            let result = try await Running.urlload(options + ["--retry-delay", "0.001", origin.url().absoluteString])
            #expect(result.code == code && result.text == output, "\(result.errors)")
            #expect(origin.requests.count == count)
            let notes = result.errors.split(separator: "\n").count { $0.contains(": attempt ") }
            #expect(notes == (options.contains("-s") ? 0 : count - 1), "\(result.errors)")
        }
    }

    @Test(
        "A response that breaks the rules of HTTP is retried only with --retry-all-errors",
        arguments: [([], 1, 1), (["--retry-all-errors"], 2, 0)] as [([String], Int, Int32)])
    func violation(_ options: [String], _ count: Int, _ code: Int32) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { [weak origin] _ in
                let number = origin?.requests.count ?? 0
                return number < 2 ? .raw(["HTTP/1.1 abc OK\r\n\r\n"]) : .ok("two")
            }
            let words = ["--retry", "2", "--retry-delay", "0.001"] + options + [origin.url().absoluteString]
            let result = try await Running.urlload(words)
            #expect(result.code == code && result.text == (code == 0 ? "two" : ""), "\(result.errors)")
            #expect(origin.requests.count == count)
        }
    }

    @Test(
        "A refused connection is retried only with --retry-connrefused",
        arguments: [(["--retry", "2"], 0), (["--retry", "2", "--retry-connrefused"], 2)])
    func refusal(_ options: [String], _ count: Int) async throws {
        let result = try await Running.urlload(options + ["--retry-delay", "0.001", "http://127.0.0.1:1/"])
        #expect(result.code == 7)
        #expect(result.errors.split(separator: "\n").count { $0.contains(": attempt ") } == count, "\(result.errors)")
    }
}
