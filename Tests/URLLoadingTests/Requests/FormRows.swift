// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Multipart forms (RFC 7578), and security 71.
@Suite(.timeLimit(.minutes(4)))
struct FormRows {
    @Test("a form with values and files arrives byte for byte, with its length")
    func form() async throws {
        let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        let file = try TemporaryFile(content, name: "engine.png")
        let empty = try TemporaryFile(Data(), name: "empty.txt")
        let large = Data(repeating: 0x61, count: 100_000)
        var form = MultipartForm()
        form.append(name: "title", value: "Nötes")
        form.append(name: "", value: "")
        form.append(name: "raw", data: Data([0, 13, 10, 45, 45]))
        form.append(name: "large", data: large, fileName: "a.json")
        form.append(name: "picture", file: file.url)
        form.append(name: "picture", file: empty.url, fileName: "q\"uo\nted", contentType: "text/plain; charset=utf-8")
        form.append(name: "li\rne", value: "end")
        #expect(form.count == 7)
        let body = try RequestBody.multipart(form)
        let type = try #require(body.contentType)
        let boundary = try #require(type.split(separator: "=").last.map { String($0) })
        #expect(type == "multipart/form-data; boundary=\(boundary)" && boundary.utf8.count == 32)
        var expected = Data()
        func part(_ fields: String, _ content: Data) {
            expected +=
                Data("--\(boundary)\r\nContent-Disposition: form-data; \(fields)\r\n\r\n".utf8) + content
                + Data("\r\n".utf8)
        }
        part("name=\"title\"", Data("Nötes".utf8))
        part("name=\"\"", Data())
        part("name=\"raw\"\r\nContent-Type: application/octet-stream", Data([0, 13, 10, 45, 45]))
        part("name=\"large\"; filename=\"a.json\"\r\nContent-Type: application/json", large)
        part("name=\"picture\"; filename=\"engine.png\"\r\nContent-Type: image/png", content)
        part("name=\"picture\"; filename=\"q%22uo%0Ated\"\r\nContent-Type: text/plain; charset=utf-8", Data())
        part("name=\"li%0D%0Ane\"", Data("end".utf8))
        expected += Data("--\(boundary)--\r\n".utf8)
        var setting = HTTPTestServer.Configuration()
        setting.recordedBodySize = 1 << 20
        try await withHTTPTestServer(setting) { origin in
            origin.route("/") { _ in .redirect("/next", status: .temporaryRedirect) }
            origin.route("/next") { _ in .ok("") }
            try await withSession(.ephemeral) { session in
                _ = try await session.data(for: Request(url: origin.url(), method: .post, body: body))
                // A redirect sends the same body again, with the same boundary.
                #expect(origin.requests.count == 2)
                for request in origin.requests {
                    #expect(Data(request.body) == expected)
                    #expect(request.headers[.contentLength] == "\(expected.count)")
                    #expect(!request.headers.contains(.transferEncoding))
                    #expect(request.headers[.contentType] == type)
                }
            }
        }
        let collected = try await body.collect(upTo: expected.count)
        #expect(collected == expected)
    }

    @Test("a form without fields has only the closing delimiter")
    func emptyForm() async throws {
        let body = try RequestBody.multipart(MultipartForm())
        let text = String(decoding: try await body.collect(upTo: 100), as: UTF8.self)
        #expect(text.hasPrefix("--") && text.hasSuffix("--\r\n") && text.utf8.count == 38)
    }

    @Test("boundaries are distinct and have 128 bits (security 71)")
    func boundaries() throws {
        let types = try (0..<1000).map { _ in try #require(try RequestBody.multipart(MultipartForm()).contentType) }
        #expect(Set(types).count == 1000)
        // Every position takes every digit, so the boundary contains neither counter nor clock.
        let places = (0..<32).map { place in Set(types.map { Array($0.utf8.suffix(32))[place] }) }
        #expect(places.allSatisfy { $0.count == 16 })
    }

    @Test(
        "names and types that would inject fields are refused",
        arguments: ["\0", "\u{1}", "\u{7F}", "a\u{1B}b"])
    func injection(_ text: String) async throws {
        var named = MultipartForm()
        var filed = MultipartForm()
        var typed = MultipartForm()
        var broken = MultipartForm()
        named.append(name: text, value: "v")
        filed.append(name: "n", data: Data(), fileName: text)
        typed.append(name: "n", data: Data(), contentType: "text/plain\(text)")
        broken.append(name: "n", data: Data(), contentType: "text/plain\r\nX: y")
        for form in [named, filed, typed, broken] {
            await expectFailure(.malformedFieldValue, .local, .preparing) { try RequestBody.multipart(form) }
        }
    }

    @Test("a missing file is reported before any byte is sent")
    func missingFile() async throws {
        var form = MultipartForm()
        form.append(name: "f", file: URL(filePath: "/nonexistent/file"))
        try await withHTTPTestServer { origin in
            try await withSession(.ephemeral) { session in
                let request = Request(url: origin.url(), method: .post, body: try .multipart(form))
                await expectFailure(.fileNotFound) { try await session.data(for: request) }
                #expect(origin.counts.accepted == 0)
            }
        }
    }
}
