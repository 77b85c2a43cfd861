// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// The table of differences in docs/guides/command-line.md: the command line of each row is run by urlload, and by the
/// tool where it is installed; what is sent and what is left are as the row says.
@Suite(.timeLimit(.minutes(10)))
struct DifferenceTableTests {
    typealias Check = @Sendable (ToolOutcome) -> Bool

    /// What the tool does, and what urlload does; by the first column.
    struct Claim: Sendable {
        let theirs: Check
        let ours: Check
    }

    private static func sends(_ count: Int) -> Check { { $0.received.count == count } }
    private static func field(_ name: String, _ value: String?) -> Check {
        { $0.received.last?.headers[FieldName(name)] == value }
    }

    static let claims: [String: Claim] = [
        "redirects": Claim(theirs: sends(1), ours: { $0.received.count == 2 && $0.output == "plain text\n" }),
        "password (`-u`)": Claim(theirs: sends(1), ours: { $0.received.count == 2 && $0.output == "in\n" }),
        "coding": Claim(
            theirs: field("Accept-Encoding", nil),
            ours: { $0.received.last?.headers[.acceptEncoding]?.hasPrefix("gzip") == true }),
        "files": Claim(
            theirs: { $0.files["out.txt"]?.count == 100 },
            ours: { $0.files["out.txt"] == nil && $0.files["out.txt.part"]?.count == 100 }),
        "`-O`": Claim(
            theirs: { $0.files["file"] != nil && $0.files["name.txt"] == nil },
            ours: { $0.files["file"] != nil && $0.files["name.txt"] != nil }),
        "names of `-O`": Claim(
            theirs: { $0.files["a%20b.txt"] != nil }, ours: { $0.files["a b.txt"] != nil }),
        "`--trace`": Claim(
            theirs: { $0.code == 0 && !$0.errors.contains("> GET") },
            ours: { $0.code != 0 && $0.errors.contains("> GET") }),
        "`-T -`": Claim(
            theirs: field("Transfer-Encoding", "chunked"),
            ours: { $0.received.last?.headers[.contentLength] != nil }),
        "brackets in a query": Claim(
            theirs: { $0.received.last?.target.contains("[1]") == true },
            ours: { $0.received.last?.target.contains("%5B1%5D") == true }),
        "`-z DATE`": Claim(
            theirs: field("If-Modified-Since", nil),
            ours: field("If-Modified-Since", "Sun, 06 Nov 1994 00:00:00 GMT")),
        "`-z` and an error page": Claim(theirs: { $0.output.isEmpty }, ours: { $0.output == "gone\n" }),
        "`-H 'Host:'`": Claim(theirs: { $0.code != 2 }, ours: { $0.code == 2 && $0.received.isEmpty }),
        "`--header='Accept:'`": Claim(theirs: field("Accept", ""), ours: field("Accept", nil)),
        "`-X POST` and a redirect": Claim(
            theirs: { $0.received.last?.method == .post && $0.received.last?.bodyCount == 0 },
            ours: { $0.received.last?.method == .get }),
        "`--retry`": Claim(
            theirs: { $0.received.count == 2 && $0.output == "broken\nbroken\n" },
            ours: { $0.received.count == 2 && $0.output == "broken\n" }),
        "`--tr-encoding`": Claim(theirs: field("TE", "gzip"), ours: field("TE", nil)),
        "`-C -` with `-J`": Claim(
            theirs: { $0.code == 2 }, ours: { $0.code == 0 && $0.files["given.txt"] == "named\n" }),
        "several URLs": Claim(theirs: { $0.code == 0 }, ours: { $0.code == 7 }),
        "two lengths": Claim(theirs: { $0.output == "hell" }, ours: { $0.code == 8 && $0.output.isEmpty }),
        "a compressed body that is cut": Claim(theirs: { $0.code == 0 }, ours: { $0.code == 61 }),
        "a large head": Claim(theirs: { $0.code != 0 }, ours: { $0.code == 100 }),
        "User-Agent": Claim(
            theirs: { $0.received.last?.headers[.userAgent]?.hasPrefix("curl/") == true },
            ours: { $0.received.last?.headers[.userAgent]?.hasPrefix("urlload/") == true }),
        "a file that is not loaded": Claim(
            theirs: { $0.files["out.txt"] == "" }, ours: { $0.files["out.txt"] == nil }),
        "a file that cannot be written": Claim(theirs: { $0.code == 1 }, ours: { $0.code == 3 }),
        "a list that is not there (`-i`)": Claim(theirs: { $0.code == 0 }, ours: { $0.code == 3 }),
        "HTTP/0.9": Claim(
            theirs: { $0.code == 0 && $0.files["out.txt"] == "ancient\n" },
            ours: { $0.code == 7 && $0.files["out.txt"] == nil }),
        "a URL without a scheme": Claim(
            theirs: { $0.output == "http://name.test/" }, ours: { $0.output == "https://name.test/" }),
        "`-c` and a longer file": Claim(
            theirs: { $0.files["data.txt"]?.hasPrefix("line one") == true },
            ours: { $0.files["data.txt"] == "plain text\n" }),
        "`-nc` with `--trust-server-names`": Claim(
            theirs: { $0.received.count == 1 && $0.files["data.txt"]?.hasPrefix("line one") == true },
            ours: { $0.received.count == 2 && $0.files["data.txt"]?.hasPrefix("line one") == true }),
        "a POST whose connection is lost": Claim(theirs: { $0.received.count > 1 }, ours: sends(1)),
        "`--session NAME`": Claim(
            theirs: { $0.files.values.contains { $0.contains("X-One") } },
            ours: { !$0.files.values.contains { $0.contains("X-One") } }),
        "secrets of `-v`, `--offline`": Claim(
            theirs: { $0.output.contains("YWRhOnNlY3JldA==") },
            ours: { $0.output.contains("Authorization: Basic [hidden]") && $0.received.isEmpty }),
        "bodies of redirects (`-v`)": Claim(
            theirs: { $0.output.contains("look there") },
            ours: { $0.output.contains("302 Found") && !$0.output.contains("look there") }),
        "`-d` into a pipe": Claim(
            theirs: { $0.output == "named\n" }, ours: { $0.files["given.txt"] == "named\n" && $0.output.isEmpty }),
        "`-d` and an error page": Claim(
            theirs: { $0.code == 4 && $0.files["out.txt"] == "" },
            ours: { $0.code == 4 && $0.files["out.txt"] == nil }),
        "letters in JSON": Claim(
            theirs: { String(decoding: $0.received.last?.body ?? [], as: UTF8.self).contains("\\u00fc") },
            ours: { String(decoding: $0.received.last?.body ?? [], as: UTF8.self).contains("ü") }),
    ]

    struct Row: Sendable, CustomTestStringConvertible {
        let what: String
        let line: String
        var testDescription: String { what }

        /// The rows between the heads of the section and of the next one.
        static func all() -> [Row] {
            let place = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../../docs/guides/command-line.md")
            let text = (try? String(contentsOf: place, encoding: .utf8)) ?? ""
            let section = text.components(separatedBy: "## Where urlload is different").dropFirst().first ?? ""
            return section.components(separatedBy: "\n## ")[0].split(separator: "\n")
                .filter { $0.hasPrefix("| ") && !$0.hasPrefix("| what |") }.map { row in
                    let cells = row.dropFirst(2).components(separatedBy: " | ")
                    return Row(what: cells[0], line: cells.count > 1 ? cells[1].filter { $0 != "`" } : "")
                }
        }
    }

    @Test(arguments: Row.all())
    func `A row of the table says what is sent and left`(_ row: Row) async throws {
        let claim = try #require(Self.claims[row.what], "the test has no claim for \(row.what)")
        let words = row.line.split(separator: " ", maxSplits: 1).map(String.init)
        try #require(words.count == 2, "no command line: \(row.line)")
        let line = ToolLine(text: words[1], reason: nil)
        try await withHTTPTestServer { origin in
            origin.route("/*") { try await OtherToolOrigin.answer($0) }
            if OtherToolTests.has(words[0]) {
                let theirs = try await ToolOutcome(line, "/usr/bin/\(words[0])", [], origin)
                #expect(claim.theirs(theirs), "\(words[0]): \(theirs)")
            }
            let grammar = words[0] == "curl" ? [] : [words[0]]
            let ours = try await ToolOutcome(line, Running.urlloadPath, grammar, origin)
            #expect(claim.ours(ours), "urlload: \(ours)")
        }
    }

    @Test func `Each claim has a row`() {
        #expect(Set(Row.all().map(\.what)) == Set(Self.claims.keys))
    }
}
