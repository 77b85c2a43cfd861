// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

@testable import urlload

struct ReportPageTests {
    private func page(_ rows: [Waterfall.Row], _ details: RequestDetails = RequestDetails()) -> String {
        ReportPage.make(Waterfall(rows: rows)) { _ in details }
    }

    private func row(_ url: String = "https://a.test/", _ load: Int = 0) -> Waterfall.Row {
        Waterfall.Row(
            .get, url, status: .ok, connection: 1, protocolName: "h2", marks: [.redirect],
            spans: [
                .init(.queued, from: .zero, to: .milliseconds(10)),
                .init(.receiving, from: .milliseconds(10), to: .milliseconds(20)),
            ],
            requestHeaders: ["Accept": "*/*"], responseHeaders: ["X-<b>": "</td><script>alert(1)</script>"], load: load)
    }

    /// Elements that are opened and not closed, or the other way round; what HTML lets stand alone counts for nothing.
    private func unbalanced(_ page: String) -> [String] {
        var open: [String] = []
        for match in page.matches(of: /<(\/?)([a-z][a-z0-9]*)((?:[^<>"]|"[^"]*")*)>/) {
            let name = String(match.output.2)
            if ["meta", "br"].contains(name) { continue }
            if match.output.1.isEmpty {
                open.append(name)
            } else if open.popLast() != name {
                return open + ["/" + name]
            }
        }
        return open
    }

    @Test("a page is whole, names its requests and their times, and may load nothing")
    func whole() {
        let page = page([row("https://a.test/one"), row("https://a.test/two", 1)])
        #expect(unbalanced(page).isEmpty, "\(unbalanced(page))")
        #expect(page.hasPrefix("<!DOCTYPE html>") && page.contains("<title>2 requests in 20 ms</title>"))
        #expect(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""))
        #expect(page.contains("aria-label=\"queued 10 ms, receiving 10 ms\""))
        #expect(page.contains("connection 1 h2") && page.contains("<span class=\"mark redirect\">"))
        #expect(page.contains("Slowest: <a href=\"#r0-0\">") && page.contains("id=\"r0-0\""))
        for forbidden in ["<script", "src=", "href=\"http", "url(", "@import", "<link"] {
            #expect(!page.contains(forbidden), "\(forbidden)")
        }
    }

    @Test("nothing that came from a server is markup")
    func escaping() {
        var details = RequestDetails()
        details.cache = "<i>\"&'"
        details.body = BodyPreview("</pre><script>\u{1}\r\n\t</script>".utf8, total: 26)
        let page = page([row("https://a.test/\"><img onerror=x>")], details)
        #expect(unbalanced(page).isEmpty, "\(unbalanced(page))")
        #expect(
            page.contains("&lt;i&gt;&quot;&amp;&#39;") && page.contains("&lt;/pre&gt;&lt;script&gt;\u{FFFD}\n\t&lt;"))
        #expect(!page.contains("<script") && !page.contains("<img") && !page.contains("<i>"))
        #expect(HTML.escaped("a\nb\u{7F}\u{FFFE}\u{1FFFF}é") == "a\u{FFFD}b\u{FFFD}\u{FFFD}\u{FFFD}é")
    }

    @Test("a body is shown by its beginning, as text, and otherwise counted")
    func previews() {
        let long = BodyPreview(Array(repeating: UInt8(ascii: "x"), count: 5000), total: 5000)
        #expect(long.isCut && long.text?.count == BodyPreview.most)
        #expect(BodyPreview([0, 1, 2], total: 3).text == nil)
        #expect(BodyPreview([0xFF, 0xFE], total: 2).text == nil)
        // The character that the limit cuts is left out.
        for offset in 0..<4 {
            let text = String(repeating: "a", count: BodyPreview.most - offset) + "🙂🙂"
            let cut = BodyPreview(text.utf8, total: Int64(text.utf8.count))
            #expect(cut.text?.drop { $0 == "a" } == "", "\(offset)")
        }
        var streamed = BodyPreview()
        for piece in [Array("one ".utf8), Array("two".utf8)] { piece.withUnsafeBytes { streamed.add($0) } }
        #expect(streamed.text == "one two" && streamed.total == 7 && !streamed.isCut)
        var details = RequestDetails()
        details.body = BodyPreview([0, 1, 2], total: 3)
        #expect(page([row()], details).contains("<h3>Body, 3 bytes</h3>\n<p>The body is not text.</p>"))
    }

    @Test(
        "secrets of a body are hidden by their names",
        arguments: [
            (#"{"access_token": "s3cret", "a": 1}"#, #"{"access_token": (removed), "a": 1}"#),
            (#"{"password" :"s3\"cret","b":[1]}"#, #"{"password" :(removed),"b":[1]}"#),
            (#"{"pin":1234}"#, #"{"pin":(removed)}"#),
            (#"{"tokens":["s3cret",{"a":"]s3cret"}],"b":2}"#, #"{"tokens":(removed),"b":2}"#),
            (#"{"headers":{"Authorization":"Basic s3cret"}}"#, #"{"headers":{"Authorization":(removed)}}"#),
            (#"{"token":"s3cre"#, #"{"token":(removed)"#),
            ("user=ada&password=s3cret&b=1", "user=ada&password=(removed)&b=1"),
            ("<a href=\"/?token=s3cret\">", "<a href=\"/?token=(removed)\">"),
            (
                #"<input type="hidden" name="csrf_token" value="s3cret">"#,
                #"<input type="hidden" name="csrf_token" value=(removed)>"#
            ),
            (#"<input value='s3cret' name=token>"#, #"<input value=(removed) name=token>"#),
            (#"<input name="q" value="kept">"#, #"<input name="q" value="kept">"#),
            (#"{"name": "kept", "text": "a \"token\": b"}"#, #"{"name": "kept", "text": "a \"token\": b"}"#),
            ("", ""), ("\"", "\""), ("=", "="), ("token=", "token="),
        ])
    func secrets(_ body: String, _ shown: String) { #expect(SecretText.hidden(inBody: body) == shown) }

    @Test("an archive of a browser: redirects, challenges, retries, the cache, bodies and connections")
    func archive() throws {
        func entry(
            _ url: String, _ status: Int, at milliseconds: Int, _ more: String = "", redirect: String = "",
            connection: String = "443"
        ) -> String {
            """
            {"startedDateTime":"2026-01-01T00:00:00.\(milliseconds)Z","time":10,"connection":"\(connection)",
            "request":{"method":"GET","url":"\(url)","headers":[{"name":"Cookie","value":"s3cret"}]},
            "response":{"status":\(status),"redirectURL":"\(redirect)","httpVersion":"h2","bodySize":5\(more)},
            "timings":{"blocked":2,"dns":-1,"connect":3,"ssl":1,"send":1,"wait":2,"receive":1}}
            """
        }
        let cached =
            #","_fromCache":"disk","content":{"size":9,"mimeType":"text/plain","text":"aGVsbG8=","encoding":"base64"}"#
        let entries = [
            entry("https://ada:s3cret@a.test/", 302, at: 100, redirect: "/next"),
            entry("https://a.test/next", 401, at: 110),
            entry("https://a.test/next", 503, at: 120), entry("https://a.test/next", 200, at: 130),
            entry("https://a.test/cached", 200, at: 140, cached, connection: ""),
        ]
        let json = "{\"log\":{\"entries\":[\(entries.joined(separator: ","))]}}"
        let file = try JSONDecoder().decode(HARFile.self, from: Data(json.utf8))
        let waterfall = file.waterfall
        #expect(waterfall.rows.map(\.marks) == [[], [.redirect], [.challenge], [.retry], [.cache]])
        #expect(waterfall.rows.map(\.connection) == [1, 1, 1, 1, nil])
        #expect(
            waterfall.rows[0].spans.map(\.stage) == [.queued, .connect, .tls, .sending, .waiting, .receiving]
                && waterfall.rows[0].duration == .milliseconds(9))
        let page = ReportPage.make(waterfall, details: file.details)
        #expect(page.contains("hello") && page.contains("came from the cache: disk") && !page.contains("s3cret"))
        #expect(unbalanced(page).isEmpty)
    }
}
