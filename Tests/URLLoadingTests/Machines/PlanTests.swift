// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingWire

@testable import URLLoading

/// The plans as pure functions.
@Suite struct PlanTests {
    private func plan(
        _ code: Int, _ location: String?, from request: Request, followed: Int = 0, maximum: Int = 20
    ) throws -> RedirectPlan {
        var headers = Headers()
        headers[.location] = location
        let head = HTTPHead(status: try #require(Status(code)), version: .http11, headers: headers)
        return RedirectPlan.make(head, request, followed: followed, maximum: maximum)
    }

    private func next(_ code: Int, _ location: String, from request: Request) throws -> Request {
        guard case .follow(let next) = try plan(code, location, from: request) else { throw Unfollowed() }
        return next
    }
    private struct Unfollowed: Error {}

    /// RFC 9110 §15.4, including the usual change of POST to GET.
    static let methods: [(Int, Method, Method)] = [
        (301, .get, .get), (301, .head, .head), (301, .post, .get), (301, .put, .put), (301, .delete, .delete),
        (301, .patch, .patch),
        (302, .get, .get), (302, .head, .head), (302, .post, .get), (302, .put, .put), (302, .delete, .delete),
        (302, "PROPFIND", "PROPFIND"),
        (303, .get, .get), (303, .head, .head), (303, .post, .get), (303, .put, .get), (303, .delete, .get),
        (303, .patch, .get),
        (307, .get, .get), (307, .head, .head), (307, .post, .post), (307, .put, .put), (307, .patch, .patch),
        (308, .get, .get), (308, .head, .head), (308, .post, .post), (308, .put, .put), (308, .delete, .delete),
    ]

    @Test("the status decides on the method of a redirect (RFC 9110 15.4)", arguments: methods)
    func method(_ code: Int, _ method: Method, _ expected: Method) throws {
        var request = Request(
            url: try url("http://a.example/x"), method: method, headers: [.contentType: "x/y", .accept: "z"])
        if method != .get, method != .head { request.body = .data(Data([1])) }
        let next = try next(code, "/y", from: request)
        #expect(next.method == expected)
        #expect((next.body != nil) == (request.body != nil && expected == method))
        #expect(next.headers.contains(.contentType) == (expected == method))
        #expect(next.headers[.accept] == "z")
        #expect(next.url.absoluteString == "http://a.example/y")
    }

    /// RFC 3986 5.2 and RFC 9110 10.2.2.
    @Test(
        "a Location is resolved against the request's URL",
        arguments: [
            ("http://a.example/b/c?d#e", "f", "http://a.example/b/f#e"),
            ("http://a.example/b/c?d#e", "f#g", "http://a.example/b/f#g"),
            ("http://a.example/b/c?d", "../f", "http://a.example/f"),
            ("http://a.example/b/c", "/f?g", "http://a.example/f?g"),
            ("http://a.example/b/c?d", "?g", "http://a.example/b/c?g"),
            ("http://a.example/b", "//c.example/d", "http://c.example/d"),
            ("https://a.example/b", "//c.example/d", "https://c.example/d"),
            ("http://a.example/", "https://a.example:8443/x", "https://a.example:8443/x"),
            ("http://a.example", "x", "http://a.example/x"),
            ("http://a.example/", "/a b", "http://a.example/a%20b"),
            ("http://a.example/", "/\u{e4}", "http://a.example/%C3%A4"),
            ("http://a.example/#frag", "http://b.example/", "http://b.example/#frag"),
        ])
    func resolution(_ base: String, _ location: String, _ expected: String) throws {
        #expect(try next(302, location, from: Request(url: url(base))).url.absoluteString == expected)
    }

    @Test("a response without redirect is delivered; one beyond the limit is refused")
    func deliverOrRefuse() throws {
        let request = Request(url: try url("http://a.example/"))
        for code in [200, 201, 300, 304, 305, 306, 309, 399, 404] {
            guard case .deliver = try plan(code, "/x", from: request) else { throw Unexpectedly("\(code)") }
        }
        guard case .deliver = try plan(302, nil, from: request) else { throw Unexpectedly("no Location") }
        guard case .follow = try plan(302, "/x", from: request, followed: 19) else { throw Unexpectedly("19") }
        guard case .refuse(let many, _) = try plan(302, "/x", from: request, followed: 20) else {
            throw Unexpectedly("20")
        }
        #expect(many.reason == .tooManyRedirects && many.phase == .redirecting && many.party == .remote)
        guard case .refuse(let scheme, _) = try plan(302, "file:///x", from: request) else {
            throw Unexpectedly("file")
        }
        #expect(scheme.reason == .redirectRefused)
        guard case .refuse(let bad, _) = try plan(302, "http://[", from: request) else { throw Unexpectedly("[") }
        #expect(bad.reason == .badRedirect)
    }

    @Test(
        "credentials are sent only to the same scheme, host and port",
        arguments: [
            ("http://a.example/x", true), ("http://A.example:80/x", true), ("https://a.example/x", false),
            ("http://a.example:81/x", false),
            ("http://b.example/x", false), ("http://sub.a.example/x", false), ("http://a.example./x", false),
        ])
    func credentials(_ target: String, _ isKept: Bool) throws {
        let request = Request(
            url: try url("http://a.example/"),
            headers: [.authorization: "a", .cookie: "b", .proxyAuthorization: "c", "X-Own": "d"])
        let next = try next(307, target, from: request)
        for name in [FieldName.authorization, .cookie, .proxyAuthorization] {
            #expect(next.headers.contains(name) == isKept)
        }
        #expect(next.headers["X-Own"] == "d")
    }

    @Test("only an idempotent request that met a stale connection is sent again, once")
    func retry() throws {
        let lost = LoadError(.connectionLost, phase: .sending, party: .remote)
        let early = LoadError(.truncated, phase: .waiting, party: .remote)
        let target = try url("http://a.example/")
        for method in [Method.get, .head, .put, .delete, .options, .trace] {
            for error in [lost, early] {
                var plan = RetryPlan(Request(url: target, method: method))
                #expect(!plan.wantsFresh)
                #expect(plan.retry(after: error, isStale: true) == true)
                #expect(plan.wantsFresh)
                #expect(plan.retry(after: error, isStale: true) == false)
            }
            var plan = RetryPlan(Request(url: target, method: method))
            #expect(plan.retry(after: lost, isStale: false) == false)
            for reason in [
                LoadError.Reason.idleTimeout, .cancelled, .notHTTP, .resourceTimeout, .connectionRefused,
                .requestBodyFailed,
            ] {
                #expect(plan.retry(after: LoadError(reason, phase: .waiting, party: .remote), isStale: true) == false)
            }
            #expect(!plan.wantsFresh)
        }
        for method in [Method.post, .patch, .connect, "LOCK"] {
            var plan = RetryPlan(Request(url: target, method: method))
            #expect(plan.retry(after: lost, isStale: true) == false)
        }
    }
}

struct Unexpectedly: Error {
    let what: String
    init(_ what: String) { self.what = what }
}
