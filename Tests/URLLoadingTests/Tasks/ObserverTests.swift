// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Observers of events: log, statistics, traces. And lines and bytes of a body.
@Suite(.timeLimit(.minutes(4)))
struct ObserverTests {
    final class Box<T: Sendable>: Sendable {
        private let values = Lock<[T]>([])
        func add(_ value: T) { values.withLock { $0.append(value) } }
        var all: [T] { values.withLock { $0 } }
    }

    @Test("a log has a line per load and no secrets")
    func log() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let lines = Box<String>()
            let session = Session(.default.with { $0.observers = [LoadLogger { lines.add($0) }] })
            _ = try await session.data(from: origin.url("/?token=secret"))
            let line = try #require(lines.all.first)
            #expect(
                line.contains("GET http://127.0.0.1") && line.contains(" 200 5 bytes in ") && !line.contains("secret"))
            session.invalidateAndCancel()
        }
    }

    @Test("the log line of a stored response says so, revalidated or not")
    func logOfStoredResponses() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/fresh") { _ in .ok("hello", headers: [.cacheControl: "max-age=60"]) }
            origin.route("/checked") { request in
                let fields: Headers = [.cacheControl: "no-cache", "ETag": "\"a\""]
                guard request.headers[.ifNoneMatch] == nil else { return .status(.notModified, headers: fields) }
                return .ok("hello", headers: fields)
            }
            let lines = Box<String>()
            let session = Session(
                .ephemeral.with {
                    $0.caching.store = ResponseCache(memoryCapacity: 1 << 20)
                    $0.observers = [LoadLogger { lines.add($0) }]
                })
            for path in ["/fresh", "/fresh", "/checked", "/checked"] {
                _ = try await session.data(from: origin.url(path))
            }
            #expect(lines.all.map { $0.contains(" 200 5 bytes from the cache in ") } == [false, true, false, true])
            session.invalidateAndCancel()
        }
    }

    @Test("statistics count loads of verbs and tasks")
    func statistics() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            origin.route("/to") { _ in .redirect("/") }
            let statistics = LoadStatistics()
            let session = Session(.default.with { $0.observers = [statistics] })
            _ = try await session.data(from: origin.url())
            let task = session.dataTask(from: origin.url("/to")).resumed()
            _ = try await task.value
            var upload = Request(url: origin.url(), method: .post)
            upload.body = .data(Data("12345678".utf8))
            try await session.load(upload) { _, body in for try await _ in body {} }
            await expectFailure(.badURL) { try await session.data(from: URL(string: "http:///")!) }
            // A loop over events that is left is no failure.
            origin.route("/events", faults: [.init(.responseBody(after: 12), .stall)]) { _ in
                .ok("data: a\n\ndata: b\n\n", headers: [.contentType: "text/event-stream"])
            }
            for try await _ in session.serverSentEvents(from: origin.url("/events")) { break }
            try await session.eventuallyLoads { $0 == 0 }
            let now = statistics.snapshot
            #expect("\(now)".hasPrefix("3 finished, 1 failed, 1 cancelled, 1 redirects, 8 bytes sent, "))
            #expect(now.responses == [2: 4] && now.failed == ["badURL": 1] && now.durations.values.reduce(0, +) == 5)
        }
    }

    @Test("a trace continues in the request, and each load is a span (W3C Trace Context §3.2)")
    func trace() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok(request.headers["traceparent"] ?? "none") }
            let spans = Box<LoadTracer.Span>()
            let session = Session(.default.with { $0.observers = [LoadTracer { spans.add($0) }] })
            let parent = try #require(
                TraceContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
            let task = session.dataTask(from: origin.url())
            TraceContext.$current.withValue(parent) { task.resume() }
            let sent = try await String(decoding: task.value, as: UTF8.self)
            let span = try #require(spans.all.first)
            #expect(sent == span.context.traceparent && span.parent == parent && span.context.traceID == parent.traceID)
            #expect(span.context.spanID != parent.spanID && span.status == .ok && span.error == nil)
            for bad in [
                "", "00-0-0-0", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                "00-" + String(repeating: "0", count: 32) + "-00f067aa0ba902b7-01",
                "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
                "00-4bf92f3577b34da6a3ce929d0e0e473+-00f067aa0ba902b7-01",
            ] {
                #expect(TraceContext(traceparent: bad) == nil, "\(bad)")
            }
        }
    }

    @Test("lines end with LF, CRLF or CR, wherever the chunks are cut", arguments: 1...9)
    func lines(_ size: Int) async throws {
        let text = "one\ntwo\r\n\r\nthree\rf\u{fc}nf\n\nlast"
        let pieces = stride(from: 0, to: text.utf8.count, by: size).map { start in
            Array(Array(text.utf8)[start..<min(start + size, text.utf8.count)])
        }
        let answer = ProtocolResponse.self
        var configuration = Configuration.default
        configuration.handlers = [
            HandlerTests.Stub { request, _ in
                answer.response(
                    Response(url: request.url),
                    body: AsyncStream { continuation in
                        for piece in pieces { continuation.yield(piece) }
                        continuation.finish()
                    })
            }
        ]
        let session = Session(configuration)
        let lines = try await session.load(Request(url: HandlerTests.url)) { _, body in
            try await body.lines.reduce(into: []) { $0.append($1) }
        }
        #expect(lines == ["one", "two", "", "three", "f\u{fc}nf", "", "last"])
        let bytes = try await session.load(Request(url: HandlerTests.url)) { _, body in
            try await body.bytes.reduce(into: []) { $0.append($1) }
        }
        #expect(bytes == Array(text.utf8))
        await expectFailure(.bodyTooLarge) {
            try await session.load(Request(url: HandlerTests.url)) { _, body in
                for try await _ in body.lines(upTo: 3) {}
            }
        }
    }
}
