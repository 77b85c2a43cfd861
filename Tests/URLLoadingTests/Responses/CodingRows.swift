// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Content codings on each path by which a body reaches a program.
@Suite(.timeLimit(.minutes(4)))
struct CodingRows {
    static let text = Array("data: one\ndata: two\n\n".utf8)
    static let coded = Compressed.gzip(text)

    @Test("Without an Accept of its own, a session sends none, also after a redirect") func noAccept() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/end") }
            origin.route("/end") { _ in .ok("") }
            try await withSession(Configuration.ephemeral.with { $0.accept = nil }) { session in
                _ = try await session.data(from: origin.url())
                #expect(origin.requests.count == 2 && origin.requests.allSatisfy { !$0.headers.contains(.accept) })
                _ = try await session.data(for: Request(url: origin.url("/end"), headers: [.accept: "text/html"]))
                #expect(origin.requests.last?.headers[.accept] == "text/html")
            }
            try await withSession(.ephemeral) { session in
                _ = try await session.data(from: origin.url("/end"))
                #expect(origin.requests.last?.headers[.accept] == "*/*")
            }
        }
    }

    /// An origin that encodes every body, regardless of the request.
    static func with(
        _ headers: Headers = [:], _ change: (inout Configuration) -> Void = { _ in },
        _ use: (HTTPTestServer, Session) async throws -> Void
    ) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                var fields: Headers = [
                    .contentEncoding: "gzip", .contentType: "text/event-stream", .etag: "\"1\"",
                    "Accept-Ranges": "bytes",
                ]
                for field in headers { fields[field.name] = field.value }
                guard request.headers[.range] == "bytes=2-5" else { return .ok(.bytes(coded), headers: fields) }
                fields[.contentRange] = "bytes 2-5/\(coded.count)"
                return .status(.partialContent, headers: fields, body: .bytes(Array(coded[2...5])))
            }
            var configuration = Configuration.ephemeral
            change(&configuration)
            let session = Session(configuration)
            try await use(origin, session)
            await expectEmpty(session)
        }
    }

    enum ReadingCall: String, CaseIterable, Sendable {
        case data, load, bytes, lines, value, body, upload, becomeDownload

        func get(_ session: Session, _ request: Request) async throws -> [UInt8] {
            switch self {
            case .data: return [UInt8](try await session.data(for: request).0)
            case .upload: return [UInt8](try await session.upload(request, from: .data(Data())).0)
            case .load:
                return [UInt8](try await session.load(request) { _, body in try await body.collect(upTo: 1 << 20) })
            case .bytes:
                return try await session.load(request) { _, body in
                    var all: [UInt8] = []
                    for try await byte in body.bytes { all.append(byte) }
                    return all
                }
            case .lines:
                let lines = try await session.load(request) { _, body in
                    var all: [String] = []
                    for try await line in body.lines { all.append(line) }
                    return all
                }
                return lines.flatMap { Array($0.utf8) + [10] }
            case .value:
                let task = session.dataTask(request).resumed()
                return [UInt8](try await task.value)
            case .body:
                let task = session.dataTask(request).resumed()
                var all: [UInt8] = []
                for try await chunk in try await task.body { all += [UInt8](chunk) }
                return all
            case .becomeDownload:
                var decisions = Decisions()
                decisions.response = Decision { _ in .becomeDownload(DownloadOptions()) }
                let task = session.dataTask(request, decisions: decisions)
                let events = task.events
                task.resume()
                for await event in events {
                    guard case .becameDownload(let download) = event else { continue }
                    let file = try await download.value
                    #expect(download.resumeToken == nil)
                    return [UInt8](try file.content(upTo: 1 << 20))
                }
                return []
            }
        }
    }

    @Test(
        "a body is decoded on every path if the session requested its coding, and on none if the caller did",
        arguments: ReadingCall.allCases)
    func ways(_ call: ReadingCall) async throws {
        try await Self.with { origin, session in
            try await expect({ try await call.get(session, Request(url: origin.url())) }, Self.text)
            guard call != .lines else { return }
            let own = Request(url: origin.url(), headers: [.acceptEncoding: "gzip"])
            try await expect({ try await call.get(session, own) }, Self.coded)
        }
    }

    @Test("server-sent events are read from a coded body")
    func events() async throws {
        try await Self.with { origin, session in
            var reconnection = ServerSentEvents.Reconnection()
            reconnection.maximumAttempts = 0
            var heard: [String] = []
            let events = session.serverSentEvents(for: Request(url: origin.url()), reconnection: reconnection)
            for try await event in events { heard.append(event.data) }
            #expect(heard == ["one\ntwo"])
        }
    }

    @Test("a download encoded without a request for it is decoded, and provides no token")
    func downloads() async throws {
        try await Self.with { origin, session in
            try await session.download(Request(url: origin.url())) { file in
                let content = try file.content(upTo: 1 << 20)
                #expect([UInt8](content) == Self.text)
            }
            #expect(origin.requests.last?.headers[.acceptEncoding] == "identity")
            let explicit = Request(url: origin.url(), headers: [.acceptEncoding: "identity"])
            try await session.download(explicit) { file in
                let content = try file.content(upTo: 1 << 20)
                #expect([UInt8](content) == Self.text)
            }
            // A request that names a coding receives the encoded bytes.
            let coded = Request(url: origin.url(), headers: [.acceptEncoding: "gzip"])
            try await session.download(coded) { file in
                let content = try file.content(upTo: 1 << 20)
                #expect([UInt8](content) == Self.coded)
            }
        }
    }

    @Test("an interrupted download whose body is decoded provides no token")
    func noToken() async throws {
        try await withHTTPTestServer { origin in
            let long = Compressed.gzip([UInt8](repeating: 65, count: 500_000))
            origin.route("/", faults: [.init(.responseBody(after: 200_000), .stall)]) { _ in
                .ok(.bytes(long), headers: [.contentEncoding: "gzip", .etag: "\"1\""])
            }
            let session = Session(.ephemeral)
            let task = session.downloadTask(Request(url: origin.url())).resumed()
            try await task.received(100_000)
            #expect(task.resumeToken == nil)
            #expect(await task.cancelProducingResumeToken() == nil)
            await expectEmpty(session)
        }
    }

    @Test("a part of an encoded body stays encoded; a full response in its place is decoded in a download")
    func ranges() async throws {
        try await Self.with { origin, session in
            var request = Request(url: origin.url(), headers: [.range: "bytes=2-5"])
            try await session.download(request) { file in
                let content = try file.content(upTo: 100)
                #expect([UInt8](content) == Array(Self.coded[2...5]))
            }
            request.headers[.range] = "bytes=9999-"
            try await session.download(request) { file in
                let content = try file.content(upTo: 100)
                #expect([UInt8](content) == Self.text)
            }
            let data = try await session.data(for: request).0
            #expect([UInt8](data) == Self.coded)
        }
    }

    @Test("a cache entry is served only to loads that want it as it is stored")
    func cached() async throws {
        try await Self.with([.cacheControl: "max-age=60"]) { origin, session in
            let url = origin.url()
            func get(_ decoding: Request.ContentDecoding, _ headers: Headers = [:]) async throws -> [UInt8] {
                var request = Request(url: url, headers: headers)
                request.contentDecoding = decoding
                return [UInt8](try await session.data(for: request).0)
            }
            try await expect({ try await get(.always, [.acceptEncoding: "gzip"]) }, Self.text)
            try await expect({ try await get(.always) }, Self.text)
            try await expect({ try await get(.ifOffered) }, Self.text)
            #expect(origin.counts.requests == 1)
            try await expect({ try await get(.never) }, Self.coded)
            #expect(origin.counts.requests == 2)
            try await expect({ try await get(.ifOffered, [.acceptEncoding: "gzip"]) }, Self.coded)
            #expect(origin.counts.requests == 2)
            // Parts exist only of bodies stored as they were sent.
            try await expect({ try await get(.always, [.range: "bytes=2-5"]) }, Array(Self.coded[2...5]))
            #expect(origin.counts.requests == 2)
            try await expect({ try await get(.always) }, Self.text)
            #expect(origin.counts.requests == 3)
        }
    }

    /// Responds with an encoded body.
    private struct Coder: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { request.url.scheme == "coded" }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            let head = HTTPHead(status: .ok, headers: [.contentEncoding: "gzip"])
            return .response(Response(url: request.url, http: head), data: Data(CodingRows.coded))
        }
    }

    @Test("the response of a handler is passed on unchanged")
    func handled() async throws {
        try await withSession(.ephemeral.with { $0.handlers = [Coder()] }) { session in
            let data = try await session.data(from: try url("coded:x")).0
            #expect([UInt8](data) == Self.coded)
        }
    }
}
