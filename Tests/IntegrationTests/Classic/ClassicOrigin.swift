// SPDX-License-Identifier: Apache-2.0

// The server of the programs in Tests/ClassicPrograms.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

struct ClassicOrigin: Sendable {
    private let counts: Counter
    let origin: HTTPTestServer
    let other: HTTPTestServer

    private final class Counter: Sendable {
        private let counts = Lock<[String: Int]>([:])
        func add(_ what: String) { counts.withLock { $0[what, default: 0] += 1 } }
        subscript(what: String) -> Int { counts.withLock { $0[what, default: 0] } }
    }

    init() throws {
        let counts = Counter()
        self.counts = counts
        var configuration = HTTPTestServer.Configuration()
        configuration.recordedBodySize = 1 << 20
        origin = try HTTPTestServer(configuration)
        other = try HTTPTestServer()
        simple()
        oddities()
        images()
        origin.route("/file") { Self.file($0) }
        origin.route("/basic") { request in
            request.headers[.authorization] == "Basic " + Data("user:pass".utf8).base64EncodedString()
                ? .ok("welcome") : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"door\""])
        }
        origin.route("/no-realm") { request in
            request.headers[.authorization] == "Basic " + Data("user:pass".utf8).base64EncodedString()
                ? .ok("welcome") : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic"])
        }
        origin.route("/digest") { Self.digest($0) }
        origin.start()
        other.start()
    }

    func stop() async {
        await origin.stop()
        await other.stop()
    }

    private func simple() {
        origin.route("/text") { _ in .ok("hello", headers: [.contentType: "text/plain"]) }
        origin.route("/redirect") { _ in .redirect("/text") }
        origin.route("/cut") { _ in .ok(.declared(100, bytes: Array("half".utf8))) }
        origin.route("/silent", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
        origin.route("/echo") { .ok(.bytes($0.body)) }
        origin.route("/type") { .ok($0.headers[.contentType] ?? "none") }
        origin.route("/set-cookie") { _ in .ok("", headers: ["Set-Cookie": "taste=sweet; Path=/"]) }
        origin.route("/cookies") { .ok($0.headers["Cookie"] ?? "none") }
        let elsewhere = other.url("/secrets").absoluteString
        origin.route("/elsewhere") { _ in .redirect(elsewhere) }
        other.route("/secrets") { .ok($0.headers[.authorization] ?? "none") }
    }

    private func oddities() {
        origin.route("/damaged") { _ in
            .ok(.bytes(Array("not compressed".utf8)), headers: [.contentEncoding: "gzip"])
        }
        origin.route("/fields") { _ in
            .raw(["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nx-a: 2\r\n\r\nok"], then: .next)
        }
        origin.route("/framing") { request in
            let length = request.headers[.contentLength] ?? "-", coding = request.headers[.transferEncoding] ?? "-"
            return .ok("\(request.method) \(length) \(coding) \(request.bodyCount)")
        }
    }

    private func images() {
        let counts = counts
        let image = [UInt8](repeating: 0x2a, count: 20_000)
        origin.route("/image") { _ in
            counts.add("image")
            return .ok(.bytes(image), headers: ["Cache-Control": "max-age=60", "Content-Type": "image/png"])
        }
        origin.route("/tagged") { request in
            guard request.headers["If-None-Match"] == "\"1\"" else {
                return .ok(.bytes(image), headers: ["Cache-Control": "no-cache", "ETag": "\"1\""])
            }
            counts.add("not-modified")
            return .status(.notModified, headers: ["ETag": "\"1\""])
        }
        origin.route("/count/*") { request in .ok("\(counts[String(request.path.dropFirst("/count/".count))])") }
    }

    /// 1 MiB, each KiB with its own number; sent slowly from the start, at once from any other offset.
    private static func file(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        let bytes = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 / 1024) }
        let range = (request.headers["Range"] ?? "bytes=0-").dropFirst("bytes=".count)
        let start = range.split(separator: "-").first.flatMap { Int($0) } ?? 0
        guard start == 0 else {
            return .status(
                .partialContent,
                headers: ["ETag": "\"f\"", "Content-Range": "bytes \(start)-\(bytes.count - 1)/\(bytes.count)"],
                body: .bytes(Array(bytes[min(start, bytes.count)...])))
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Length: \(bytes.count)\r\nETag: \"f\"\r\nAccept-Ranges: bytes\r\n\r\n"
        let pieces = stride(from: 0, to: bytes.count, by: 1 << 14).flatMap { at -> [HTTPTestServer.Response.Piece] in
            [.bytes(Array(bytes[at..<(at + 1 << 14)])), .pause(.milliseconds(20))]
        }
        return .raw([.bytes(Array(head.utf8))] + pieces)
    }

    private static func digest(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        func md5(_ text: String) -> String { DigestHash.md5.hex(Array(text.utf8)) ?? "" }
        if let field = request.headers[.authorization], let given = AuthenticationChallenge.parse([field]).first,
            given.isOf("Digest")
        {
            let proof =
                md5("user:door:pass") + ":n1:\(given["nc"] ?? ""):\(given["cnonce"] ?? ""):auth:" + md5("GET:/digest")
            if given["response"] == md5(proof) { return .ok("welcome") }
        }
        return .status(.unauthorized, headers: [.wwwAuthenticate: "Digest realm=\"door\", nonce=\"n1\", qop=\"auth\""])
    }
}
