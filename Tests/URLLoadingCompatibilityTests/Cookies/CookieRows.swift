// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Checklist 104 to 110 in the classic API.
@Suite(.timeLimit(.minutes(4)))
struct CookieRows {
    private func cookie(_ name: String, _ domain: String = "example.org", _ more: [HTTPCookiePropertyKey: Any] = [:])
        throws -> HTTPCookie
    {
        let properties: [HTTPCookiePropertyKey: Any] = [.name: name, .value: "v", .domain: domain, .path: "/"]
        return try #require(HTTPCookie(properties: properties.merging(more) { $1 }))
    }

    /// Returns the received cookies in the body, and sets one.
    private func serve(_ origin: HTTPTestServer) {
        origin.route("/") { request in
            .ok(request.headers[.cookie] ?? "-", headers: [.setCookie: "seen=yes; Path=/"])
        }
    }

    private func text(_ result: Result3) -> String { String(decoding: result.data ?? Data(), as: UTF8.self) }

    @Test(
        "a session stores the cookies of servers and sends them; deleted cookies are not sent (checklist 104, 105, 107)"
    )
    func session() async throws {
        try await withHTTPTestServer(serving: serve) { origin in
            let configuration = URLSessionConfiguration.ephemeral
            let storage = try #require(configuration.httpCookieStorage)
            #expect(configuration.httpCookieStorage !== URLSessionConfiguration.ephemeral.httpCookieStorage)
            let session = URLSession(configuration: configuration)
            let first = await session.result(URLRequest(url: origin.url()))
            let second = await session.result(URLRequest(url: origin.url()))
            #expect(text(first) == "-" && text(second) == "seen=yes")
            var bare = URLRequest(url: origin.url())
            bare.httpShouldHandleCookies = false
            let third = await session.result(bare)
            #expect(text(third) == "-")
            for cookie in storage.cookies(for: origin.url()) ?? [] { storage.deleteCookie(cookie) }
            #expect(storage.cookies == [])
            storage.setCookie(try cookie("own", "127.0.0.1"))
            let fourth = await session.result(URLRequest(url: origin.url()))
            #expect(text(fourth) == "own=v")
            session.invalidateAndCancel()
        }
    }

    @Test("httpShouldSetCookies = false sends no cookies; without httpCookieStorage none are stored")
    func configured() async throws {
        try await withHTTPTestServer(serving: serve) { origin in
            let silent = URLSessionConfiguration.ephemeral
            silent.httpShouldSetCookies = false
            let session = URLSession(configuration: silent)
            _ = await session.result(URLRequest(url: origin.url()))
            let again = await session.result(URLRequest(url: origin.url()))
            #expect(text(again) == "-" && silent.httpCookieStorage?.cookies?.count == 1)
            session.invalidateAndCancel()

            let none = URLSessionConfiguration.ephemeral
            none.httpCookieStorage = nil
            let other = URLSession(configuration: none)
            _ = await other.result(URLRequest(url: origin.url()))
            let last = await other.result(URLRequest(url: origin.url()))
            #expect(text(last) == "-")
            other.invalidateAndCancel()
        }
    }

    @Test(
        "the storage's policy applies to every session without a policy of its own (checklist 105, 108)"
    )
    func policies() async throws {
        try await withHTTPTestServer(serving: serve) { origin in
            let storage = HTTPCookieStorage()
            let configuration = URLSessionConfiguration.ephemeral
            #expect(configuration.httpCookieAcceptPolicy == .onlyFromMainDocumentDomain)
            configuration.httpCookieStorage = storage
            let session = URLSession(configuration: configuration)
            configuration.httpCookieAcceptPolicy = .always
            let open = URLSession(configuration: configuration)
            var request = URLRequest(url: origin.url())
            request.mainDocumentURL = URL(string: "https://other.example/")
            _ = await session.result(request)
            #expect(storage.cookies == [], "of another site")
            storage.cookieAcceptPolicy = .never
            request.mainDocumentURL = nil
            _ = await session.result(request)
            #expect(storage.cookies == [])
            storage.setCookie(try cookie("own"))
            #expect(storage.cookies == [])
            _ = await open.result(request)
            #expect(storage.cookies?.map(\.name) == ["seen"])
            storage.removeCookies(since: .distantPast)
            storage.cookieAcceptPolicy = .always
            _ = await session.result(request)
            #expect(storage.cookies?.map(\.name) == ["seen"])
            session.invalidateAndCancel()
            open.invalidateAndCancel()
        }
    }

    @Test("a cookie's properties contain all keys, and create an equal cookie (checklist 106)")
    func properties() throws {
        let date = Date(timeIntervalSince1970: 4_000_000_000)
        let all: [HTTPCookiePropertyKey: Any] = [
            .name: "n", .value: "v", .domain: ".Example.org", .path: "/a", .version: "1", .secure: "TRUE",
            .expires: date,
            .comment: "why", .commentURL: "https://example.org/why", .port: "80,443",
            .sameSitePolicy: HTTPCookieStringPolicy.sameSiteLax,
        ]
        let cookie = try #require(HTTPCookie(properties: all))
        #expect(cookie.name == "n" && cookie.value == "v" && cookie.domain == ".example.org" && cookie.path == "/a")
        #expect(cookie.version == 1 && cookie.isSecure && cookie.expiresDate == date && !cookie.isSessionOnly)
        #expect(cookie.comment == "why" && cookie.commentURL?.path == "/why" && cookie.portList == [80, 443])
        #expect(cookie.sameSitePolicy == .sameSiteLax && !cookie.isHTTPOnly)
        let properties = try #require(cookie.properties)
        let again = HTTPCookie(properties: properties)
        #expect(again == cookie && again?.hash == cookie.hash)
        // A dictionary as programs archive cookies.
        var archived: [String: Any] = [:]
        for (key, value) in properties { archived[key.rawValue] = value }
        #expect(PropertyListSerialization.propertyList(archived, isValidFor: .binary))
        #expect(!"\(cookie)".contains("=v"))
    }

    @Test("invalid properties create no cookie (checklist 106)")
    func refused() throws {
        let needed: [HTTPCookiePropertyKey: Any] = [.name: "n", .value: "v", .domain: "a.example", .path: "/"]
        for key in [HTTPCookiePropertyKey.name, .value, .domain, .path] {
            #expect(HTTPCookie(properties: needed.filter { $0.key != key }) == nil)
        }
        #expect(HTTPCookie(properties: needed.merging([.value: "v\r\nX: y"]) { $1 }) == nil)
        let origin = needed.filter { $0.key != .domain }.merging([.originURL: "https://b.example/x"]) { $1 }
        #expect(HTTPCookie(properties: origin)?.domain == "b.example")
        let aged = try cookie("a", "a.example", [.maximumAge: "60"])
        #expect(!aged.isSessionOnly && (aged.expiresDate?.timeIntervalSinceNow ?? 0) > 50)
        let discarded = try cookie("a", "a.example", [.maximumAge: "60", .discard: "TRUE"])
        #expect(discarded.isSessionOnly && discarded.expiresDate == nil)
        let written = try cookie("a", "a.example", [.expires: "Wed, 09 Jun 2038 10:18:14 GMT"])
        #expect(written.expiresDate?.timeIntervalSince1970 == 2_159_691_494)
    }

    @Test("cookies are parsed from fields, including several in one, and formatted into a field (checklist 106)")
    func fields() throws {
        let url = try url("http://www.example.com/a/b")
        let text =
            "a=1; Expires=Wed, 09 Jun 2038 10:18:14 GMT; Path=/; Secure, b=x,y; Domain=.example.com,c=3; HttpOnly"
        let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["set-cookie": text, "Other": "d=4"], for: url)
        #expect(cookies.map(\.name) == ["a", "b", "c"] && cookies.map(\.value) == ["1", "x,y", "3"])
        #expect(cookies.map(\.domain) == ["www.example.com", ".example.com", "www.example.com"])
        #expect(cookies.map(\.path) == ["/", "/a", "/a"] && cookies[0].isSecure && cookies[2].isHTTPOnly)
        #expect(
            HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": "a=1; domain=other.example"], for: url) == [])
        #expect(HTTPCookie.requestHeaderFields(with: cookies) == ["Cookie": "a=1; b=x,y; c=3"])
        #expect(HTTPCookie.requestHeaderFields(with: []) == [:])
    }

    @Test(
        "storing for a URL accepts only its cookies; all are sorted, removed and listed (checklist 107)"
    )
    func storage() async throws {
        let storage = HTTPCookieStorage()
        let (own, below, other) = (
            try cookie("own", "www.example.org"), try cookie("below", ".example.org"), try cookie("other", "b.example")
        )
        let secure = try cookie("secure", "www.example.org", [.secure: "TRUE"])
        let url = try url("http://www.example.org/")
        storage.setCookies([own, below, other, secure], for: url, mainDocumentURL: nil)
        #expect(Set((storage.cookies(for: url) ?? []).map(\.name)) == ["own", "below"])
        storage.setCookies(
            [try cookie("third", "www.example.org")], for: url, mainDocumentURL: URL(string: "http://x.example/"))
        #expect(storage.cookies?.count == 2)
        let sorted = storage.sortedCookies(using: [NSSortDescriptor(keyPath: \HTTPCookie.name, ascending: false)])
        #expect(sorted.map(\.name) == ["own", "below"])
        let session = URLSession(configuration: .ephemeral)
        let task = session.dataTask(with: url)
        let got = Box<[String]>()
        storage.getCookiesFor(task) { got.add(($0 ?? []).map(\.name).sorted()) }
        #expect(got.all == [["below", "own"]])
        storage.storeCookies([try cookie("task", "www.example.org")], for: task)
        #expect(storage.cookies?.count == 3)
        storage.removeCookies(since: .distantFuture)
        #expect(storage.cookies?.count == 3)
        storage.removeCookies(since: .distantPast)
        #expect(storage.cookies == [])
        session.invalidateAndCancel()
    }

    @Test("a change of cookies or policy posts a notification, also if a session made it (checklist 109)")
    func notifications() async throws {
        try await withHTTPTestServer(serving: serve) { origin in
            let storage = HTTPCookieStorage()
            let cookies = Counter()
            let policies = Counter()
            let tokens = [
                NotificationCenter.default.addObserver(
                    forName: .NSHTTPCookieManagerCookiesChanged, object: storage, queue: nil
                ) { _ in cookies.add() },
                NotificationCenter.default.addObserver(
                    forName: .NSHTTPCookieManagerAcceptPolicyChanged, object: storage, queue: nil
                ) { _ in policies.add() },
            ]
            storage.setCookie(try cookie("a"))
            await cookies.reaches(1)
            storage.cookieAcceptPolicy = .onlyFromMainDocumentDomain
            await policies.reaches(1)
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpCookieStorage = storage
            let session = URLSession(configuration: configuration)
            _ = await session.result(URLRequest(url: origin.url()))
            await cookies.reaches(2)
            for token in tokens { NotificationCenter.default.removeObserver(token) }
            session.invalidateAndCancel()
        }
    }

    @Test("there is one shared storage, and one for each group identifier (checklist 110)")
    func shared() {
        #expect(HTTPCookieStorage.shared === HTTPCookieStorage.shared)
        #expect(URLSessionConfiguration.default.httpCookieStorage === HTTPCookieStorage.shared)
        let group = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "url-loading-tests.group")
        #expect(group !== HTTPCookieStorage.shared)
        #expect(group === HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "url-loading-tests.group"))
    }

    @Test("Max-Age has precedence over Expires in a cookie's properties (RFC 6265 §5.3)")
    func maximumAge() throws {
        func expiry(_ age: Any?, _ expires: Any?) throws -> Double? {
            var properties: [HTTPCookiePropertyKey: Any] = [.name: "a", .value: "b", .path: "/", .domain: "a.example"]
            properties[.maximumAge] = age
            properties[.expires] = expires
            return try #require(HTTPCookie(properties: properties)).expiresDate?.timeIntervalSinceNow.rounded()
        }
        let later = Date(timeIntervalSinceNow: 9000)
        #expect(try expiry("100", later) == 100 && expiry(100, later) == 100)
        #expect(try expiry("100", "Wed, 09 Jun 2100 10:18:14 GMT") == 100)
        #expect(try expiry("0", later) ?? 1 <= 0 && expiry("-1", later) ?? 1 <= 0)
        // A Max-Age that is no number is ignored (RFC 6265 §5.2.2).
        #expect(try expiry("soon", later) == 9000 && expiry("", later) == 9000 && expiry("nan", later) == 9000)
        #expect(try expiry(nil, later) == 9000 && expiry("100", nil) == 100 && expiry(nil, nil) == nil)
    }
}
