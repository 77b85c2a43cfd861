// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingCompatibility

/// Values as used by programs written for Apple's classes or for FoundationNetworking.
@Suite(.timeLimit(.minutes(2)))
struct LegacyValueTests {
    // MARK: Requests

    @Test("a request created from a relative URL has the absolute URL")
    func relative() throws {
        let base = try url("http://a.example/dir/")
        let relative = try #require(URL(string: "page?x=1", relativeTo: base))
        let request = URLRequest(url: relative)
        #expect(request.url?.baseURL == nil && request.url?.relativeString == "http://a.example/dir/page?x=1")
        #expect(request == URLRequest(url: try url("http://a.example/dir/page?x=1")))
        #expect(
            NSURLRequest(url: relative).url?.baseURL == nil && NSMutableURLRequest(url: relative).url?.baseURL == nil)
    }

    @Test("a field that is set again keeps the spelling of its name; standard fields get their usual spelling")
    func names() throws {
        var request = URLRequest(url: try url("http://a.example/"))
        request.setValue("1", forHTTPHeaderField: "Accept")
        request.setValue("2", forHTTPHeaderField: "accept")
        request.setValue("3", forHTTPHeaderField: "X-Trace-ID")
        request.setValue("4", forHTTPHeaderField: "x-trace-id")
        request.setValue("5", forHTTPHeaderField: "content-TYPE")
        request.addValue("6", forHTTPHeaderField: "ACCEPT")
        let expected = ["Accept": "2,6", "X-Trace-ID": "4", "Content-Type": "5"]
        #expect(request.allHTTPHeaderFields == expected)
        request.allHTTPHeaderFields = ["accept": "7", "DNT": "8"]
        #expect(request.allHTTPHeaderFields == ["accept": "7", "DNT": "8"])
        request.setValue("9", forHTTPHeaderField: "Accept")
        #expect(request.allHTTPHeaderFields == ["Accept": "9", "DNT": "8"])
        request.setValue(nil, forHTTPHeaderField: "ACCEPT")
        #expect(request.allHTTPHeaderFields == ["DNT": "8"])
        let mutable = NSMutableURLRequest(url: try url("http://a.example/"))
        mutable.setValue("1", forHTTPHeaderField: "Accept")
        mutable.setValue("2", forHTTPHeaderField: "accept")
        #expect(mutable.allHTTPHeaderFields == ["Accept": "2"])
    }

    @Test("a POST with an empty body gets no Content-Type; one with bytes is declared as a form", arguments: [0, 1])
    func emptyBody(_ count: Int) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.headers["Content-Type"] ?? "-") \($0.headers["Content-Length"] ?? "-")") }
            let session = URLSession(configuration: .ephemeral)
            var post = URLRequest(url: origin.url())
            post.httpMethod = "POST"
            let body = Data(count: count)
            let expected = count == 0 ? "- 0" : "application/x-www-form-urlencoded 1"
            let (uploaded, _) = try await session.upload(for: post, from: body)
            post.httpBody = body
            let (posted, _) = try await session.data(for: post)
            #expect(String(decoding: posted, as: UTF8.self) == expected && uploaded == posted)
            session.invalidateAndCancel()
        }
    }

    // MARK: Media types

    @Test(
        "an invalid media type parameter leaves type and charset unchanged",
        arguments: [
            ("text/html; charset", "text/html", nil), ("text/html;charset=utf-8;foo", "text/html", "utf-8"),
            ("text/html; =x; charset=Latin1", "text/html", "latin1"),
            ("text/html; a b; charset=utf-8", "text/html", "utf-8"),
            ("text/html; charset=\"utf-8", "text/html", "utf-8"), ("text", nil, nil),
        ] as [(String, String?, String?)])
    func mediaTypes(_ field: String, _ type: String?, _ charset: String?) throws {
        let response = try #require(
            HTTPURLResponse(
                url: url("http://a.example/"), statusCode: 200, httpVersion: nil, headerFields: ["Content-Type": field])
        )
        #expect(response.mimeType == type && response.textEncodingName == charset)
    }

    @Test(
        "an invalid media type parameter of a data URL leaves type and charset unchanged",
        arguments: ["data:text/html;charset,hi", "data:text/html;charset;base64,aGk="])
    func dataURL(_ text: String) async throws {
        let session = URLSession(configuration: .ephemeral)
        let result = await session.result(URLRequest(url: try url(text)))
        #expect(result.data == Data("hi".utf8) && result.response?.mimeType == "text/html")
        session.invalidateAndCancel()
    }

    // MARK: The cache

    private func entry(_ url: URL, _ fields: [String: String], _ text: String = "text") throws -> CachedURLResponse {
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
        return CachedURLResponse(response: response, data: Data(text.utf8))
    }

    @Test(
        "a stored response is returned equal to the original, with and without a stated length",
        arguments: [
            [:], ["Content-Type": "text/plain"], ["Content-Length": "4"], ["Content-Length": "9"],
        ])
    func equality(_ fields: [String: String]) throws {
        let folder = temporaryURL("equal")
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = try URLLoadingCompatibilityTests.url("http://a.example/x")
        let entry = try entry(url, fields)
        for cache in [
            URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil),
            URLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: folder),
        ] {
            cache.storeCachedResponse(entry, for: URLRequest(url: url))
            let found = try #require(cache.cachedResponse(for: URLRequest(url: url)))
            #expect(found == entry && found.response.expectedContentLength == entry.response.expectedContentLength)
        }
    }

    @Test("removing a stored response does not restore the response that it had replaced")
    func replaced() throws {
        let folder = temporaryURL("replaced")
        defer { try? FileManager.default.removeItem(at: folder) }
        let request = URLRequest(url: try url("http://a.example/x"))
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 16 << 20, directory: folder)
        cache.storeCachedResponse(try entry(try url("http://a.example/x"), [:], "old"), for: request)
        // Waits until the write is done.
        _ = cache.currentDiskUsage
        cache.core.flush()
        let between = Date()
        cache.storeCachedResponse(try entry(try url("http://a.example/x"), [:], "new"), for: request)
        cache.removeCachedResponses(since: between)
        #expect(cache.cachedResponse(for: request) == nil)
        cache.core.flush()
        #expect(cache.cachedResponse(for: request) == nil)
    }

    // MARK: Cookies

    @Test("the properties of a cookie may be substrings")
    func substrings() throws {
        let parts = "theme=dark=example.org=/=TRUE=60=1".split(separator: "=")
        let cookie = try #require(
            HTTPCookie(properties: [
                .name: parts[0], .value: parts[1], .domain: parts[2], .path: parts[3], .secure: parts[4],
                .maximumAge: parts[5],
                .version: parts[6],
            ]))
        #expect(
            cookie.name == "theme" && cookie.value == "dark" && cookie.domain == "example.org" && cookie.path == "/")
        #expect(cookie.isSecure && cookie.expiresDate != nil && cookie.version == 1)
        let origin = "http://example.org/"[...]
        #expect(
            HTTPCookie(properties: [.name: "a", .value: "b", .originURL: origin, .path: "/"])?.domain == "example.org")
        let date = "Wed, 09 Jun 2100 10:18:14 GMT"[...]
        let dated = HTTPCookie(properties: [
            .name: "a", .value: "b", .domain: "example.org", .path: "/", .expires: date,
        ])
        #expect(dated?.expiresDate == Date(timeIntervalSince1970: 4_116_219_494))
    }

    @Test(
        "joined Set-Cookie fields are split, whatever follows the comma",
        arguments: [
            "a=1; Path=/x,b=2", "a=1; Path=/x, b=2", "a=1; Path=/x,\nb=2", "a=1; Path=/x,\n\tb=2",
            "a=1; Path=/x,\r\nb=2",
            "a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT; Path=/x,\nb=2",
        ])
    func joined(_ field: String) throws {
        let cookies = HTTPCookie.cookies(
            withResponseHeaderFields: ["Set-Cookie": field], for: try url("http://example.org/"))
        #expect(cookies.map { "\($0.name)=\($0.value) \($0.path)" } == ["a=1 /x", "b=2 /"])
    }
}
