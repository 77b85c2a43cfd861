// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading
import URLLoadingTesting
import URLLoadingWire

/// The ports of the testing servers, as a driver passes them to its children: `plain=1,tls=2,…`.
struct ServerAddresses: Sendable, CustomStringConvertible {
    enum Kind: String, CaseIterable, Sendable {
        case plain, tls, h2
        /// Plain, with random faults.
        case faulty
        case ftp, proxy
    }
    private let ports: [Kind: UInt16]

    init(_ ports: [Kind: UInt16]) { self.ports = ports }

    init(_ text: String) throws {
        var ports: [Kind: UInt16] = [:]
        for part in text.split(separator: ",") {
            let sides = part.split(separator: "=").map(String.init)
            guard sides.count == 2, let kind = Kind(rawValue: sides[0]), let port = UInt16(sides[1]) else {
                throw AbuseFailure("\(part) is no server")
            }
            ports[kind] = port
        }
        guard ports.count == Kind.allCases.count else { throw AbuseFailure("a server is missing in \(text)") }
        self.ports = ports
    }

    var description: String { ports.map { "\($0.rawValue)=\($1)" }.sorted().joined(separator: ",") }

    func port(_ kind: Kind) -> UInt16 { ports[kind] ?? 0 }

    func url(_ path: String, _ kind: Kind = .plain) -> URL {
        let scheme =
            switch kind {
            case .plain, .faulty, .proxy: "http"
            case .tls, .h2: "https"
            case .ftp: "ftp"
            }
        return URL(string: "\(scheme)://127.0.0.1:\(port(kind))\(path)") ?? URL(filePath: "/nowhere")
    }
}

/// The servers of a driver. They record nothing that grows with the number of requests, except lines of ftp and
/// proxies.
final class AbuseServers: Sendable {
    let addresses: ServerAddresses
    /// The certificate of the authority that children trust, in PEM.
    let authority: [UInt8]
    private let plain: HTTPTestServer
    private let secure: HTTPTestServer
    private let faulty: HTTPTestServer
    private let shared: HTTP2TestServer
    private let files: FTPTestServer
    private let proxy: TestProxy

    init(seed: UInt64) throws {
        let root = try TestCertificateAuthority(commonName: "Abuse")
        let identity = try root.issue(.init(addresses: [[127, 0, 0, 1]]))
        authority = root.pem
        var setting = HTTPTestServer.Configuration()
        setting.recordedRequests = 0
        setting.recordedBodySize = 1024
        plain = try HTTPTestServer(setting)
        faulty = try HTTPTestServer(setting)
        setting.tls = .init(identity)
        secure = try HTTPTestServer(setting)
        var sharedSetting = HTTP2TestServer.Configuration(identity)
        sharedSetting.recordedRequests = 0
        shared = try HTTP2TestServer(sharedSetting)
        files = try FTPTestServer()
        proxy = try TestProxy()
        addresses = ServerAddresses([
            .plain: plain.port, .tls: secure.port, .h2: shared.port, .faulty: faulty.port, .ftp: files.port,
            .proxy: proxy.port,
        ])
        for server in [plain, secure, faulty] { Self.prepare(server) }
        for (path, handler) in Self.routes { shared.route(path, handler) }
        faulty.setSchedule(.init(seed: seed, probability: 0.3))
        files.put("small.txt", Data(repeating: 0x61, count: 1024))
        files.put("large.bin", Data(repeating: 0x62, count: 1 << 20))
    }

    func start() {
        for server in [plain, secure, faulty] { server.start() }
        shared.start()
        files.start()
        proxy.start()
    }

    private static func prepare(_ server: HTTPTestServer) {
        for (path, handler) in routes { server.route(path, handler) }
        server.route("/stalled", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
        server.route("/stalled-body", faults: [.init(.responseBody(after: 100), .stall)]) { _ in
            .ok(.repeated(count: 100_000))
        }
        server.route("/cut", faults: [.init(.responseBody(after: 100), .cut)]) { _ in .ok(.repeated(count: 100_000)) }
        server.route("/reset", faults: [.init(.responseBody(after: 100), .reset)]) { _ in
            .ok(.repeated(count: 100_000))
        }
        server.route("/garbage", faults: [.init(.responseHead(after: 0), .garbage())]) { _ in .ok("x") }
        server.route("/refused", readsBody: false) { _ in .status(.contentTooLarge) }
        server.webSocket("/echo", .echo)
        server.webSocket("/deflate", .compressedEcho)
        server.webSocket("/chatter") { socket in
            for number in 1...20 { try await socket.send(.text("message \(number)")) }
            try await socket.close(WebSocketClose(.goingAway))
        }
        server.webSocket("/silent") { socket in try await socket.stall() }
    }

    /// The routes that both versions of HTTP serve.
    private static let routes: [(String, HTTPTestServer.Handler)] = [
        ("/small", { _ in .ok(.bytes(small)) }),
        ("/empty", { _ in .status(.noContent) }),
        ("/medium", { _ in .ok(.repeated(count: 100_000)) }),
        ("/large", { _ in .ok(.repeated(count: 1 << 19)) }),
        ("/endless", { _ in .ok(.repeated(count: .max, chunked: true)) }),
        (
            "/slow",
            { _ in .ok(.chunks(["one\n", .pause(.milliseconds(2)), "two\n", .pause(.milliseconds(2)), "three"])) }
        ),
        ("/chunked", { _ in .ok(.chunks(["one", "two", "three"], trailers: ["Checksum": "3"])) }),
        ("/gzip", { _ in .ok(.bytes(zipped), headers: [.contentEncoding: "gzip"]) }),
        ("/not-gzip", { _ in .ok(.bytes(small), headers: [.contentEncoding: "gzip"]) }),
        ("/cached", { _ in .ok(.bytes(small), headers: [.cacheControl: "max-age=600"]) }),
        (
            "/cookie",
            { _ in .ok("sweet", headers: [.setCookie: "a=\(Int.random(in: 0..<9)); Max-Age=600; Path=/"]) }
        ),
        ("/hop", { _ in .redirect("/small") }),
        ("/hops", { _ in .redirect("/hop", status: .temporaryRedirect) }),
        ("/loop", { _ in .redirect("/loop") }),
        ("/missing", { _ in .status(.notFound, body: .bytes(small)) }),
        ("/interim", { _ in .ok("x").after(.init(.earlyHints), .init(.processing)) }),
        (
            "/login",
            { request in
                request.headers[.authorization] == nil
                    ? .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"abuse\""], body: .bytes(small))
                    : .ok("welcome")
            }
        ),
        ("/sink", { request in .ok("\(request.bodyCount)") }),
        ("/events", { _ in .ok(.bytes(events), headers: [.contentType: "text/event-stream"]) }),
        ("/file", { request in part(request) }),
    ]

    private static let small = [UInt8](repeating: 0x61, count: 1024)
    private static let events = Array(String(repeating: "id: 1\ndata: something\n\n", count: 10).utf8)
    private static let zipped =
        Array(Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJ11FITCotTuXKGOWMVA4AkDaIuAgCAAA=") ?? Data())

    /// A file of 300,000 bytes that can be resumed.
    private static func part(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        let size = 300_000
        let range = request.headers["Range"] ?? ""
        guard let first = Int(range.dropFirst("bytes=".count).prefix { $0 != "-" }), first > 0, first < size else {
            return .ok(.repeated(count: Int64(size)), headers: ["ETag": "\"1\"", "Accept-Ranges": "bytes"])
        }
        return .status(
            .partialContent, headers: ["ETag": "\"1\"", "Content-Range": "bytes \(first)-\(size - 1)/\(size)"],
            body: .repeated(count: Int64(size - first)))
    }
}
