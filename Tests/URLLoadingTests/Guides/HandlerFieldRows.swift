// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The tables of docs/guides/handlers.md, "Which fields a handler sees", read from the guide and compared with what a
/// handler and the server behind it get.
@Suite(.timeLimit(.minutes(4)))
struct HandlerFieldRows {
    /// Notes the fields of the requests that it forwards.
    private struct Witness: ProtocolHandler {
        let seen = Watched<[Headers]>([])
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            seen.append(request.headers)
            return try await client.next.load(request)
        }
    }

    /// Requests that have all the fields of the tables between them.
    enum Use: CaseIterable, Sendable {
        case put, stream, revalidation, reload, login, download, upload, socket, events

        /// The field that the program sets to provoke another.
        var given: Set<FieldName> { self == .put ? [.te] : [] }

        func run(_ session: Session, _ origin: HTTPTestServer) async throws {
            switch self {
            case .put:
                var request = Request(url: origin.url("/in"), method: .put, body: .data(Data("body".utf8)))
                request.headers[.expect] = "100-continue"
                request.headers[.te] = "trailers"
                _ = try await session.data(for: request)
            case .stream:
                let body = RequestBody.stream {
                    AsyncStream {
                        $0.yield(Array("body".utf8))
                        $0.finish()
                    }
                }
                _ = try await session.data(for: Request(url: origin.url("/in"), method: .put, body: body))
            case .revalidation:
                for path in ["/tagged", "/tagged", "/dated", "/dated"] {
                    _ = try await session.data(from: origin.url(path))
                }
            case .reload:
                var request = Request(url: origin.url("/in"))
                request.cachePolicy = .reloadIgnoringCaches
                _ = try await session.data(for: request)
            case .login:
                var decisions = Decisions()
                decisions.challenge = Decision { _ in .use(Credential(user: "ada", password: "s3cret")) }
                for path in ["/cookie", "/locked"] {
                    _ = try await session.data(for: Request(url: origin.url(path)), decisions: decisions)
                }
            case .download:
                let place = temporaryURL("whole")
                defer { try? FileManager.default.removeItem(at: place) }
                let error = await failure(.truncated) {
                    try await session.download(Request(url: origin.url("/file")), to: place)
                }
                let token = try #require(error?.resumeToken)
                _ = try await session.download(resuming: token, to: place)
            case .upload:
                var options = UploadOptions()
                options.initialDelay = .zero
                let request = Request(url: origin.url("/files"), method: .post)
                _ = try await session.uploadResumably(request, from: .data(Data(count: 100_000)), options: options)
            case .socket:
                var options = WebSocketOptions()
                options.compression = .deflate()
                let socket = session.webSocketTask(origin.url("/socket"), protocols: ["chat"], options: options)
                    .resumed()
                _ = try await socket.echo(of: .text("hello"))
                _ = await socket.close()
            case .events:
                var count = 0
                for try await _ in session.serverSentEvents(from: origin.url("/events")) {
                    count += 1
                    if count == 2 { break }
                }
            }
        }
    }

    private static let content = [UInt8](repeating: 0x2a, count: 400_000)

    private static func serve(_ origin: HTTPTestServer) {
        origin.route("/in") { _ in .ok("in") }
        origin.route("/tagged") { _ in .ok("one", headers: [.etag: "\"1\"", .cacheControl: "no-cache"]) }
        origin.route("/dated") { _ in
            .ok("one", headers: [.lastModified: "Wed, 09 Jun 2010 10:18:14 GMT", .cacheControl: "no-cache"])
        }
        origin.route("/cookie") { _ in .ok("", headers: ["Set-Cookie": "taste=sweet; Path=/"]) }
        origin.route("/locked") { request in
            guard request.headers[.authorization] == nil else { return .ok("in") }
            return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=r"])
        }
        origin.route("/file") { request in
            let isWhole = request.headers[.range] == nil
            // Everything but the last quarter at first, and then from there.
            let first = isWhole ? 0 : 300_000
            let status =
                isWhole
                ? "200 OK"
                : "206 Partial Content\r\nContent-Range: bytes \(first)-\(content.count - 1)/\(content.count)"
            let head = "HTTP/1.1 \(status)\r\nETag: \"one\"\r\nContent-Length: \(content.count - first)\r\n\r\n"
            let part = isWhole ? content[..<300_000] : content[300_000...]
            return .raw([.bytes(Array(head.utf8)), .bytes(Array(part))], then: .close)
        }
        origin.webSocket("/socket", .compressedEcho)
        origin.route("/events") { _ in
            .ok("retry: 1\nid: 7\ndata: one\n\n", headers: [.contentType: "text/event-stream"])
        }
    }

    /// The names in the first column of one of the guide's tables.
    private static func names(_ heading: String) throws -> Set<FieldName> {
        let guide = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../docs/guides/handlers.md")
        let text = String(decoding: try Data(contentsOf: guide), as: UTF8.self)
        var names: Set<FieldName> = []
        var isInside = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("| \(heading) |") {
                isInside = true
            } else if isInside {
                guard line.hasPrefix("|") else { break }
                guard let cell = line.split(separator: "|").first, !cell.hasPrefix("-") else { continue }
                for name in cell.split(separator: ",") { names.insert(FieldName(name.filter { $0 != " " })) }
            }
        }
        return names
    }

    @Test("the guide names the fields that no handler sees, and those of the library that a handler sees")
    func tables() async throws {
        let unseen = try Self.names("Fields that no handler sees")
        let seen = try Self.names("Fields that a handler sees")
        var (allAdded, allGiven): (Set<FieldName>, Set<FieldName>) = ([], [])
        try await withHTTPTestServer { origin in
            Self.serve(origin)
            let uploads = ResumableUploadServer()
            uploads.serve("/files", on: origin)
            uploads.inject(.init(.received(50_000), .reset))
            for use in Use.allCases {
                let witness = Witness()
                let before = origin.requests.count
                let configuration = Configuration.ephemeral.with {
                    $0.handlers = [witness]
                    $0.headers = ["X-Session": "1"]
                    if use == .revalidation { $0.caching.store = ResponseCache(memoryCapacity: 1 << 20) }
                    $0.observers = [LoadTracer { _ in }]
                }
                try await withSession(configuration) { try await use.run($0, origin) }
                let sent = Set(origin.requests.dropFirst(before).flatMap { $0.headers.map(\.name) })
                let noted = Set(witness.seen.value.flatMap { $0.map(\.name) })
                let added = sent.subtracting(noted).subtracting(["X-Session"])
                let given = noted.subtracting(use.given)
                #expect(added.isSubset(of: unseen), "\(use): \(added.subtracting(unseen))")
                #expect(given.isSubset(of: seen), "\(use): \(given.subtracting(seen))")
                #expect(!noted.contains("X-Session"), "\(use)")
                allAdded.formUnion(added)
                allGiven.formUnion(given)
            }
        }
        // One goes to proxies, and the other is of HTTP/2 and HTTP/3.
        let elsewhere: Set<FieldName> = [.proxyAuthorization, "Priority"]
        #expect(elsewhere.isSubset(of: unseen))
        #expect(allAdded == unseen.subtracting(elsewhere))
        #expect(allGiven == seen)
    }
}
