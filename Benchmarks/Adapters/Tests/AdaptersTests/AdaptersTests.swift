// SPDX-License-Identifier: Apache-2.0

import CoreMetrics
import FoundationEssentials
import HTTPTypes
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import Synchronization
import Testing
import Tracing
import URLLoading
import URLLoadingTesting

@testable import Adapters

/// The adapters of docs/guides/other-packages.md, with the back ends in memory of the packages that they connect.
@Suite(.timeLimit(.minutes(2)))
struct AdaptersTests {
    /// `/` answers 200; `/away` redirects there; `/busy` answers 503 once; `/private` asks for a password; others 404.
    private static func route(_ origin: HTTPTestServer) {
        origin.route("/") { _ in .ok("here") }
        origin.route("/away") { _ in .redirect("/?token=hush") }
        let visits = Visits()
        origin.route("/busy") { _ in visits.count() == 1 ? .status(.serviceUnavailable) : .ok("free") }
        origin.route("/private") { request in
            guard request.headers[.authorization] == nil else { return .ok("let in") }
            return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"here\""])
        }
    }

    private final class Visits: Sendable {
        private let number = Atomic(0)
        func count() -> Int { number.wrappingAdd(1, ordering: .relaxed).newValue }
    }

    private static var decisions: Decisions {
        var decisions = Decisions()
        decisions.challenge = Decision { _ in .use(Credential(user: "ada", password: "s3cret")) }
        return decisions
    }

    private static func configuration(_ observer: any LoadObserver) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.observers = [observer]
        var policy = RetryPolicy()
        policy.statuses = RetryPolicy.transientStatuses
        policy.backoff = .constant(.zero)
        configuration.retries.policy = policy
        return configuration
    }

    /// A URL with a secret in its userinfo and in its query.
    private static func secret(_ origin: HTTPTestServer, _ path: String) throws -> URL {
        try #require(URL(string: "http://ada:s3cret@127.0.0.1:\(origin.port)\(path)?token=hush&page=2"))
    }

    @Test("an entry is written for each load, with its attributes and without secrets")
    func logs() async throws {
        try await withHTTPTestServer { origin in
            Self.route(origin)
            let handler = InMemoryLogHandler()
            let session = Session(Self.configuration(LoadLog(Logger(label: "loads") { _ in handler })))
            _ = try await session.data(from: try Self.secret(origin, "/"))
            _ = try await session.data(from: origin.url("/none"))
            _ = try? await session.data(from: try #require(URL(string: "http://127.0.0.1:1/")))
            let entries = handler.entries.filter { $0.level != .notice }
            #expect(entries.map(\.level) == [.info, .info, .error])
            let first = try #require(entries.first)
            #expect(
                first.metadata["http.request.method"] == "GET" && first.metadata["http.response.status_code"] == "200")
            #expect(first.metadata["server.port"] == "\(origin.port)" && first.metadata["error.type"] == nil)
            #expect(
                first.metadata["url.full"] == "http://127.0.0.1:\(origin.port)/?token=(removed)&page=2"
                    && first.metadata["network.protocol.version"] == "1.1")
            #expect(entries.map { $0.metadata["error.type"] } == [nil, "404", "connectionRefused"])
            #expect(!"\(handler.entries)".contains("hush") && !"\(handler.entries)".contains("s3cret"))
        }
    }

    @Test("each exchange is a value of the histograms, in seconds, with the dimensions of the conventions")
    func metrics() async throws {
        try await withHTTPTestServer { origin in
            Self.route(origin)
            let factory = TestMetrics()
            let session = Session(Self.configuration(RequestDurations(factory: factory)))
            _ = try await session.data(from: origin.url("/away"))
            _ = try await session.data(for: Request(url: origin.url("/none"), method: "BREW"))
            _ = try? await session.data(for: Self.once("http://127.0.0.1:1/"))
            let common = [
                ("http.request.method", "GET"), ("server.address", "127.0.0.1"), ("server.port", "\(origin.port)"),
            ]
            for (status, count) in [("302", 1), ("200", 1)] {
                let dimensions = common + [("http.response.status_code", status), ("network.protocol.version", "1.1")]
                let values = try factory.expectRecorder("http.client.request.duration", dimensions).values
                #expect(values.count == count && values.allSatisfy { $0 > 0 && $0 < 60 })
                let size = try factory.expectRecorder("http.client.response.body.size", dimensions).lastValue
                #expect(size == (status == "200" ? 4 : 0))
            }
            let recorders = factory.recorders(label: "http.client.request.duration")
            let errors = recorders.compactMap { recorder in
                recorder.dimensions.first { $0.0 == "error.type" }.map { type in
                    "\(recorder.dimensions.first { $0.0 == "http.request.method" }?.1 ?? "-") \(type.1)"
                }
            }
            #expect(errors.sorted() == ["GET connectionRefused", "_OTHER 404"])
        }
    }

    private static func once(_ text: String) throws -> Request {
        var request = Request(url: try #require(URL(string: text)))
        request.retryPolicy = .never
        return request
    }

    @Test("a load is a span below the caller's, with the events on its way, and each request carries its context")
    func spans() async throws {
        try await withHTTPTestServer { origin in
            Self.route(origin)
            let tracer = InMemoryTracer()
            let session = Session(Self.configuration(LoadSpans()), decisions: Self.decisions)
            try await withTracer(tracer) {
                try await withSpan("work") { _ in
                    for path in ["/away", "/busy", "/private", "/none"] {
                        _ = try await session.data(from: origin.url(path))
                    }
                    _ = try? await session.data(for: Self.once("http://127.0.0.1:1/"))
                    // In a task of its own, which has the task-local values of the caller.
                    let task = session.dataTask(from: origin.url("/"))
                    task.resume()
                    _ = try await task.value
                }
            }
            #expect(tracer.activeSpans.isEmpty)
            let spans = tracer.finishedSpans
            let work = try #require(spans.last)
            #expect(spans.count == 7 && spans.dropLast().allSatisfy { $0.parentSpanID == work.spanID })
            #expect(spans.dropLast().allSatisfy { $0.operationName == "GET" && $0.kind == .client })
            #expect(spans.map { $0.events.map(\.name) }.prefix(3) == [["redirect"], ["retry"], ["challenge"]])
            let statuses = spans.dropLast().map { $0.attributes.get("http.response.status_code") }
            #expect(statuses == [.int64(200), .int64(200), .int64(200), .int64(404), nil, .int64(200)])
            let errors = spans.dropLast().map { $0.attributes.get("error.type") }
            #expect(errors == [nil, nil, nil, "404", "connectionRefused", nil])
            #expect(spans.dropLast().map { $0.status?.code } == [nil, nil, nil, .error, .error, nil])
            #expect(spans[0].attributes.get("url.full") == .string(origin.url("/away").absoluteString))
            #expect(
                spans[0].events[0].attributes.get("url.full")
                    == .string(origin.url().absoluteString + "?token=(removed)"))
            #expect(spans[0].attributes.get("http.request.resend_count") == .int64(1))
            #expect(spans[4].errors.count == 1 && spans[0].errors.isEmpty)
            // Both requests of the redirect, and both of the retry, carry the identifier of their load's span.
            let sent = origin.requests.map { $0.headers[FieldName(InMemoryTracer.spanIDKey)] }
            let ids = spans.map { Optional($0.spanID) }
            #expect(sent == [ids[0], ids[0], ids[1], ids[1], ids[2], ids[2], ids[3], ids[5]])
        }
    }

    @Test("a field that the caller has set is not replaced")
    func callersContext() async throws {
        try await withHTTPTestServer { origin in
            Self.route(origin)
            let session = Session(Self.configuration(LoadSpans()))
            let name = FieldName(InMemoryTracer.spanIDKey)
            try await withTracer(InMemoryTracer()) {
                _ = try await session.data(for: Request(url: origin.url(), headers: [name: "mine"]))
            }
            #expect(origin.requests.map { $0.headers[name] } == ["mine"])
        }
    }

    @Test("requests and responses of swift-http-types are converted both ways")
    func types() throws {
        let fields: Headers = [.accept: "text/plain", "X-Twice": "a", "X-Twice": "b"]
        for text in [
            "http://example.org/", "https://example.org:8443/a%20b/c?d=e%26f", "http://[::1]:7/x",
            "https://xn--bcher-kva.example/",
        ] {
            let request = Request(url: try #require(URL(string: text)), method: .put, headers: fields)
            let converted = try #require(HTTPRequest(request))
            #expect(converted.method == .put && converted.headerFields[values: .accept] == ["text/plain"])
            let back = try #require(Request(converted))
            #expect(back.url.absoluteString == text && back.method == .put && back.headers == fields)
        }
        let userinfo = try #require(URL(string: "http://ada:s3cret@example.org?q#fragment"))
        let converted = try #require(HTTPRequest(Request(url: userinfo)))
        #expect(converted.authority == "example.org" && converted.path == "/?q")
        #expect(HTTPRequest(Request(url: try #require(URL(string: "file:///a")))) == nil)
        #expect(HTTPRequest(Request(url: userinfo, method: "NO TOKEN")) == nil)
        #expect(Request(HTTPRequest(method: .options, scheme: nil, authority: nil, path: "*")) == nil)
        for path in ["@other.example/", ".other.example/", "", "*"] {
            #expect(Request(HTTPRequest(method: .get, scheme: "https", authority: "example.org", path: path)) == nil)
        }
        #expect(Request(HTTPRequest(method: .get, scheme: "https", authority: "a@other.example", path: "/")) == nil)

        let head = HTTPHead(status: .notFound, headers: fields)
        let response = HTTPResponse(head)
        #expect(response.status == .notFound && response.headerFields.count == 3)
        let back = try #require(HTTPHead(response))
        #expect(back.status == .notFound && back.headers == fields)
        #expect(HTTPHead(HTTPResponse(status: .init(code: 42))) == nil)
        #expect(HTTPFields(["no token": "a", "Token": "b"]).map(\.value) == ["b"])
    }
}
