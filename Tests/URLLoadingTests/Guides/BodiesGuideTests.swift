// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/bodies.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct BodiesGuideTests {
    private struct Order: Codable, Sendable, Equatable { var count: Int }

    @Test("every kind of body arrives")
    func sending() async throws {
        let file = try TemporaryFile(Data("png".utf8), name: "a.png")
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok(.bytes(request.body)) }
            let session = Session()
            let url = origin.url()
            let image = Data([1, 2])
            let order = Order(count: 1)
            var bodies: [RequestBody] = [.data(image), .file(file.url), .form([("name", "Ada"), ("born", "1815")])]
            bodies.append(try .json(order))

            let picture = file.url
            let bytes = Data([3])
            var form = MultipartForm()
            form.append(name: "title", value: "Notes")
            form.append(name: "picture", file: picture)
            form.append(name: "raw", data: bytes, fileName: "raw.bin", contentType: "application/x-raw")
            bodies.append(try .multipart(form))

            for body in bodies {
                let (data, _) = try await session.data(for: Request(url: url, method: .post, body: body))
                let sent = try await body.collect(upTo: 10_000)
                #expect(data == sent)
            }
            #expect(
                origin.requests.map { $0.headers[.contentType] ?? "" }.prefix(4) == [
                    "application/octet-stream", "image/png", "application/x-www-form-urlencoded", "application/json",
                ])
            await expectEmpty(session)
        }
    }

    @Test("streams have trailers, demanded bodies a decision, and careful ones a 100")
    func streams() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok(.bytes(request.body)) }
            let session = Session()
            let (lines, give) = AsyncStream<String>.makeStream()
            give.yield("one")
            give.finish()
            var request = Request(url: origin.url(), method: .post)
            request.body = .stream(trailers: { ["Checksum": "9"] }) { lines.map { Array(($0 + "\n").utf8) } }
            try await session.expect(request, "one\n")
            #expect(origin.requests.last?.trailers["Checksum"] == "9")

            var decisions = Decisions()
            decisions.bodyProvider = Decision { demand in .data(Data("\(demand.cause)".utf8)) }
            request.body = .provided
            request.headers[.expect] = "100-continue"
            let (data, response) = try await session.data(for: request, decisions: decisions)
            try response.requireSuccess()
            #expect(String(decoding: data, as: UTF8.self) == "first")
            await expectEmpty(session)
        }
    }

    @Test("answers are decoded, and taken apart")
    func receiving() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/order") { _ in .ok(#"{"count":7}"#) }
            origin.route("/camera") { _ in
                .ok(
                    "--f\r\nContent-Type: image/jpeg\r\n\r\nJPG1\r\n--f\r\n\r\nJPG2\r\n",
                    headers: [.contentType: "multipart/x-mixed-replace; boundary=f"])
            }
            let session = Session()
            let order = try await session.load(Request(url: origin.url("/order"))) { response, body in
                try response.requireSuccess()
                return try await body.decode(Order.self)
            }
            #expect(order == Order(count: 7))
            let (data, _) = try await session.data(from: origin.url("/order"))
            #expect(try data.decode(Order.self) == order)

            var shown: [String] = []
            func show(_ frame: Data, _ type: MediaType?) {
                shown.append("\(frame.count) \(type.map { "\($0)" } ?? "-")")
            }
            try await session.load(Request(url: origin.url("/camera"))) { response, body in
                for try await part in try body.parts(of: response) {
                    let frame = try await part.body.collect(upTo: 1 << 20)
                    show(frame, part.response.mediaType)
                }
            }
            #expect(shown == ["4 image/jpeg", "4 -"])
            await expectEmpty(session)
        }
    }

    @Test("events come from one body, or from one connection after the other")
    func events() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                guard request.headers["Last-Event-ID"] == nil else { return .status(.noContent) }
                return .ok("retry: 0\nid: 1\ndata: a\n\n", headers: [.contentType: "text/event-stream"])
            }
            let session = Session()
            let request = Request(url: origin.url())
            var seen: [String] = []
            var reconnection = ServerSentEvents.Reconnection.default
            reconnection.delayBounds = .milliseconds(2)...(.seconds(30))
            reconnection.maximumAttempts = 5
            let events = session.serverSentEvents(for: request, reconnection: reconnection)
            for try await event in events { seen.append("\(event.type) \(event.data)") }
            try await session.load(request) { response, body in
                try response.requireSuccess()
                for try await event in body.serverSentEvents { seen.append(event.data) }
            }
            #expect(seen == ["message a", "a"])
            await expectEmpty(session)
        }
    }
}
