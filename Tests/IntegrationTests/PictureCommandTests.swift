// SPDX-License-Identifier: Apache-2.0

// `--waterfall`, `--report`, `har`, `top` and the heads of `-D`: as a process.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct PictureCommandTests {
    @Test("a report has the waterfall, heads, bodies, certificates and the cache's reasons, and no secret")
    func report() async throws {
        let authority = try TestCertificateAuthority(commonName: "Report root")
        let identity = try authority.issue(.init(names: ["localhost"]))
        let tls = HTTPTestServer.TLS(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
        try await withHTTPTestServer(.init(tls: tls)) { origin in
            origin.route("/moved") { _ in .redirect("/page?token=s3cret") }
            origin.route("/page") { _ in
                .ok(
                    "{\"title\": \"<b>\", \"access_token\": \"s3cret\"}",
                    headers: [.contentType: "application/json", .cacheControl: "max-age=60", .setCookie: "a=s3cret"])
            }
            let folder = try TemporaryFolder()
            try Data(authority.pem).write(to: URL(filePath: folder.path + "/root.pem"))
            let moved = origin.url("/moved").absoluteString
            for name in ["first", "second"] {
                let result = try await Running.urlload(
                    [
                        "-s", "--cacert", "root.pem", "--cache", "pages", "--waterfall", "--report", "\(name).html",
                        "-o", "body.json", moved,
                    ], in: folder)
                #expect(result.code == 0 && result.errors.contains("slowest: "), "\(result.errors)")
            }
            let first = String(decoding: try folder.bytes("first.html"), as: UTF8.self)
            #expect(first.contains("<title>2 requests in ") && first.contains("mark redirect"))
            #expect(first.contains("&quot;title&quot;: &quot;&lt;b&gt;&quot;, &quot;access_token&quot;: (removed)"))
            #expect(first.contains("Certificates of localhost") && first.contains("Report root"))
            #expect(first.contains("<h3>Cache</h3>"))
            let second = String(decoding: try folder.bytes("second.html"), as: UTF8.self)
            #expect(second.contains("mark cache"))
            for page in [first, second] { #expect(!page.contains("s3cret") && !page.contains("<script")) }
        }
    }

    @Test("an archive becomes the same picture")
    func archive() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            origin.route("/next") { _ in .ok("hello") }
            let folder = try TemporaryFolder()
            let loaded = try await Running.urlload(
                ["-s", "--har", "a.har", "-o", "body", origin.url().absoluteString], in: folder)
            #expect(loaded.code == 0)
            let drawn = try await Running.urlload(["har", "a.har"], in: folder)
            #expect(
                drawn.code == 0 && drawn.text.contains("connection 1 HTTP/1.1") && drawn.text.contains("→ 200 /next"))
            #expect(!drawn.text.contains("\u{1B}"))
            #expect(try await Running.urlload(["har", "--report", "out.html", "a.har"], in: folder).code == 0)
            #expect(try !folder.bytes("out.html").isEmpty)
            #expect(try await Running.urlload(["har", "body"], in: folder).code == 26)
        }
    }

    @Test("-D has the heads of interim responses, refusals and redirects in their order, and so has -i")
    func heads() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/door") { request in
                request.headers[.authorization] == nil
                    ? .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=x"])
                    : HTTPTestServer.Response.redirect("/in").after(.init(.earlyHints, headers: ["Link": "</a>"]))
            }
            origin.route("/in") { _ in .ok("in") }
            let folder = try TemporaryFolder()
            let url = origin.url("/door").absoluteString
            for words in [["-D", "heads", "-o", "body"], ["-i"]] {
                let result = try await Running.urlload(["-s", "-u", "ada:pw"] + words + [url], in: folder)
                #expect(result.code == 0)
                let heads = words.count > 1 ? String(decoding: try folder.bytes("heads"), as: UTF8.self) : result.text
                let statuses = heads.split(separator: "\r\n").filter { $0.hasPrefix("HTTP/1.1 ") }
                #expect(statuses.map { $0.split(separator: " ")[1] } == ["401", "103", "302", "200"], "\(heads)")
                #expect(words.count > 1 || heads.hasSuffix("\r\n\r\nin"))
            }
        }
    }

    @Test("wget's -O joins the bodies of several URLs, without those that failed")
    func joined() async throws {
        try await withHTTPTestServer { origin in
            for name in ["a", "b"] { origin.route("/\(name)") { _ in .ok("\(name) ") } }
            let folder = try TemporaryFolder()
            try Data("old".utf8).write(to: URL(filePath: folder.path + "/out"))
            let urls = ["/missing", "/a", "/missing", "/b", "/a"].map { origin.url($0).absoluteString }
            let result = try await Running.urlload(["wget", "-q", "-O", "out"] + urls, in: folder)
            #expect(result.code == 8)
            #expect(try folder.bytes("out") == Array("a b a ".utf8))
        }
    }

    @Test("wget's -e robots=off is granted; httpie's -q writes nothing but the file")
    func wgetAndHTTPie() async throws {
        try await withHTTPTestServer(answering: "body") { origin in
            let url = origin.url().absoluteString
            let folder = try TemporaryFolder()
            let robots = try await Running.urlload(["wget", "-e", "robots=off", "-qO-", url], in: folder)
            #expect(robots.code == 0 && robots.text == "body")
            #expect(try await Running.urlload(["wget", "-e", "quota=1", url], in: folder).code == 2)
            let quiet = try await Running.urlload(["http", "-q", url], in: folder)
            #expect(quiet.code == 0 && quiet.text.isEmpty && quiet.errors.isEmpty)
            #expect(try await Running.urlload(["http", "-q", "-o", "out", url], in: folder).text.isEmpty)
            #expect(try folder.bytes("out") == Array("body".utf8))
        }
    }

    @Test("urlload top shows a session of this process")
    func top() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let folder = try TemporaryFolder()
            let path = folder.path + "/top"
            try await withSession(.ephemeral) { session in
                try session.exposeStatistics(at: path)
                _ = try await session.data(from: origin.url())
                let shown = try await Running.urlload(["top", "--once", path])
                #expect(shown.code == 0 && shown.text.contains("1 finished") && shown.text.contains("http://127.0.0.1"))
                let json = try await Running.urlload(["top", "--once", "--json", path])
                #expect(json.text.split(separator: "\n").count == 2 && json.text.contains("\"finished\":1"))
            }
            let gone = try await Running.urlload(["top", path])
            #expect(gone.code == 7 && gone.errors.contains("no program listens here"))
            #expect(try await Running.urlload(["top"]).code == 2)
        }
    }
}
