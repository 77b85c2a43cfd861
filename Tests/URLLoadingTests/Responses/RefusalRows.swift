// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Broken answers, each with a reason of its own, in the end of a load and never in a trap.
@Suite(.timeLimit(.minutes(4)))
struct RefusalRows {
    struct Refusal: Sendable, CustomTestStringConvertible {
        let wire: [UInt8]
        let reason: LoadError.Reason
        let phase: LoadError.Phase
        var testDescription: String {
            "\(reason): \(String(decoding: wire.prefix(60), as: UTF8.self).debugDescription)"
        }

        // Before the head is complete a load waits for it; what breaks then breaks while waiting.
        init(_ wire: String, _ reason: LoadError.Reason, _ phase: LoadError.Phase = .waiting) {
            self.init(Array(wire.utf8), reason, phase)
        }
        init(_ wire: [UInt8], _ reason: LoadError.Reason, _ phase: LoadError.Phase = .waiting) {
            self.wire = wire
            self.reason = reason
            self.phase = phase
        }
        init(fields: String, _ reason: LoadError.Reason, _ phase: LoadError.Phase = .waiting) {
            self.init("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nbody", reason, phase)
        }
        init(chunks: String, _ reason: LoadError.Reason) {
            self.init("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)", reason, .receiving)
        }
    }

    static let ok = "HTTP/1.1 200 OK\r\n"

    static let brokenHeads: [Refusal] = [
        Refusal("", .connectionLost), Refusal("H", .truncated), Refusal("HTTP/1.1 200 OK\r\nA: b\r\n", .truncated),
        Refusal("SSH-2.0-OpenSSH_9.2\r\n", .notHTTP), Refusal("220 ftp ready\r\n", .notHTTP),
        Refusal("\r\n\(ok)\r\n", .notHTTP),
        Refusal("http/1.1 200 OK\r\n\r\n", .notHTTP), Refusal("ICY 200 OK\r\n\r\n", .notHTTP),
        Refusal([0x15, 3, 1, 0, 2, 2, 40], .notHTTP),
        Refusal("HTTP/2.0 200 OK\r\n\r\n", .unsupportedVersion),
        Refusal("HTTP/0.9 200 OK\r\n\r\n", .unsupportedVersion),
        Refusal("HTTP/1.x 200 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1  200 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 2000 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 20 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 099 OK\r\n\r\n", .malformedStatusLine), Refusal("HTTP/1.1\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 200 O\0K\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 200 OK\nA: b\r\n\r\n", .bareLineFeed), Refusal("\(ok)A: b\n\r\n", .bareLineFeed),
        Refusal("\(ok) A: b\r\n\r\n", .obsoleteFolding), Refusal("\(ok)A : b\r\n\r\n", .whitespaceBeforeColon),
        Refusal("\(ok)A\r\n\r\n", .malformedFieldName), Refusal("\(ok): b\r\n\r\n", .malformedFieldName),
        Refusal("\(ok)A(: b\r\n\r\n", .malformedFieldName), Refusal("\(ok)A: b\0c\r\n\r\n", .malformedFieldValue),
        Refusal("\(ok)A: b\rc\r\n\r\n", .malformedFieldValue),
        Refusal("\(ok)A: \u{1b}[31m\r\n\r\n", .malformedFieldValue),
        Refusal("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", .unexpectedUpgrade),
    ]

    static let brokenFraming: [Refusal] = [
        Refusal(fields: "Content-Length: 5\r\nContent-Length: 4", .conflictingContentLength),
        Refusal(fields: "Content-Length: 4, 5", .conflictingContentLength),
        Refusal(fields: "Content-Length:", .malformedContentLength),
        Refusal(fields: "Content-Length: -4", .malformedContentLength),
        Refusal(fields: "Content-Length: +4", .malformedContentLength),
        Refusal(fields: "Content-Length: 0x4", .malformedContentLength),
        Refusal(fields: "Content-Length: 4 4", .malformedContentLength),
        Refusal(fields: "Content-Length: 9223372036854775808", .malformedContentLength),
        Refusal(fields: "Content-Length: 4\r\nTransfer-Encoding: chunked", .transferEncodingWithContentLength),
        Refusal(fields: "Transfer-Encoding: gzip, chunked", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: chunked, identity", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", .unsupportedTransferEncoding),
        Refusal("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", .transferEncodingInOldVersion),
        Refusal(fields: "Content-Length: 5", .truncated, .receiving),
        Refusal(chunks: "", .truncated), Refusal(chunks: "5\r\nab", .truncated),
        Refusal(chunks: "2\r\nab\r\n0\r\n", .truncated),
        Refusal(chunks: "2\r\nab\r\n", .truncated), Refusal(chunks: "g\r\n", .malformedChunkSize),
        Refusal(chunks: "-1\r\na", .malformedChunkSize),
        Refusal(chunks: "\r\n", .malformedChunkSize), Refusal(chunks: "1 a\r\nb", .malformedChunkSize),
        Refusal(chunks: "1\na\r\n0\r\n\r\n", .bareLineFeed), Refusal(chunks: "1;x\na\r\n0\r\n\r\n", .bareLineFeed),
        Refusal(chunks: "8000000000000000\r\n", .chunkSizeOverflow),
        Refusal(chunks: "00000000000000001\r\n", .chunkSizeOverflow),
        Refusal(chunks: "1\r\nab\r\n", .malformedChunkEnd),
        Refusal(chunks: "0\r\nA : b\r\n\r\n", .whitespaceBeforeColon),
        Refusal(chunks: "0\r\nA: \0\r\n\r\n", .malformedFieldValue),
    ]

    static let overLimits: [Refusal] = [
        Refusal("\(ok)A: \(String(repeating: "x", count: 70_000))\r\n\r\n", .headTooLarge),
        Refusal(ok + String(repeating: "A: b\r\n", count: 1_100) + "\r\n", .tooManyFields),
        Refusal("HTTP/1.1 200 \(String(repeating: "x", count: 70_000))", .headTooLarge),
        Refusal(String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 17), .tooManyInformational),
        Refusal(chunks: "1;\(String(repeating: "x", count: 17_000))\r\na\r\n", .chunkExtensionsTooLarge),
        Refusal(
            chunks: String(repeating: "1;\(String(repeating: "x", count: 50))\r\na\r\n", count: 600),
            .chunkExtensionsTooLarge),
        Refusal(chunks: "0\r\nA: \(String(repeating: "x", count: 17_000))\r\n\r\n", .trailersTooLarge),
        Refusal(chunks: "0\r\n" + String(repeating: "A: b\r\n", count: 1_100) + "\r\n", .tooManyFields),
    ]

    private func check(_ refusal: Refusal) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/whole") { _ in .raw([.bytes(refusal.wire)]) }
            origin.route("/halves") { _ in
                let middle = refusal.wire.count / 2
                return .raw([
                    .bytes(Array(refusal.wire[..<middle])), .pause(.microseconds(300)),
                    .bytes(Array(refusal.wire[middle...])),
                ])
            }
            try await withSession(Configuration.ephemeral.with { $0.strictness = .strict }) { session in
                for path in ["/whole", "/halves"] {
                    let error = await failure(refusal.reason, .remote, refusal.phase, path) {
                        try await session.data(from: origin.url(path))
                    }
                    #expect(error?.url == origin.url(path))
                    await expectFailure(refusal.reason, .remote, refusal.phase, "streamed") {
                        try await session.load(Request(url: origin.url(path))) { _, body in for try await _ in body {} }
                    }
                }
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a broken head has its own reason", arguments: brokenHeads) func head(_ refusal: Refusal) async throws {
        try await check(refusal)
    }

    @Test("ambiguous framing is refused (security 45)", arguments: brokenFraming)
    func framing(_ refusal: Refusal) async throws { try await check(refusal) }

    @Test("the memory that a peer can occupy is limited (security 47)", arguments: overLimits)
    func limit(_ refusal: Refusal) async throws { try await check(refusal) }

    @Test("the session sets the limits (security 47)")
    func ownLimits() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/head") { _ in .ok("", headers: ["A": String(repeating: "x", count: 300)]) }
            origin.route("/fields") { _ in .ok("", headers: ["A": "1", "B": "2", "C": "3"]) }
            origin.route("/hints") { _ in .ok("").after(.init(.earlyHints), .init(.earlyHints)) }
            origin.route("/trailers") { _ in .ok(.chunks(["a"], trailers: ["A": String(repeating: "x", count: 60)])) }
            origin.route("/body") { _ in .ok("12345") }
            var configuration = Configuration.ephemeral
            configuration.limits.headSize = 200
            configuration.limits.fieldCount = 3
            configuration.limits.informationalCount = 1
            configuration.limits.trailerSize = 50
            configuration.limits.collectedBodySize = 4
            try await withSession(configuration) { session in
                let expected: [(String, LoadError.Reason, LoadError.Party, String?)] = [
                    ("/head", .headTooLarge, .remote, "headSize"), ("/fields", .tooManyFields, .remote, "fieldCount"),
                    ("/hints", .tooManyInformational, .remote, "informationalCount"),
                    ("/trailers", .trailersTooLarge, .remote, "trailerSize"), ("/body", .bodyTooLarge, .local, nil),
                ]
                for (path, reason, party, setting) in expected {
                    let error = await failure(reason, party, nil, path) {
                        try await session.data(from: origin.url(path))
                    }
                    guard let error, let setting else { continue }
                    #expect("\(error)".hasSuffix("); limits.\(setting) allows more"), "\(error)")
                }
            }
        }
    }

    @Test("the error of a violation has a sentence, and a place that counts from the start of the body")
    func sentences() async throws {
        try await withHTTPTestServer { origin in
            let head = Self.ok + "Transfer-Encoding: chunked\r\n\r\n"
            origin.route("/chunks") { _ in .raw([.bytes(Array("\(head)5\r\nhello\r\nzz\r\n".utf8))]) }
            origin.route("/cut") { _ in .raw([.bytes(Array("\(head)5\r\nhel".utf8))]) }
            try await withSession(.ephemeral) { session in
                for (path, reason, words) in [
                    (
                        "/chunks", .malformedChunkSize,
                        "a chunk does not begin with a valid size in hexadecimal digits, at byte 10 of the body "
                            + "(RFC 9112 7.1)"
                    ), ("/cut", .truncated, "the connection ended before the message was complete (RFC 9112 8)"),
                ] as [(String, LoadError.Reason, String)] {
                    let error = await failure(reason, .remote, .receiving, path) {
                        try await session.data(from: origin.url(path))
                    }
                    #expect(
                        error.map { "\($0)" }
                            == "\(reason) (receiving, \(origin.url(path).absoluteString)): \(words)")
                }
            }
        }
    }

    @Test("unusual but harmless responses are accepted")
    func accepted() async throws {
        try await withHTTPTestServer { origin in
            let answers = [
                "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 \r\nContent-Length: 2, 2\r\n\r\nok",
                "HTTP/1.0 200 OK\r\n\r\nok", "HTTP/1.9 200 OK\r\ncontent-length:2\r\n\r\nok",
                "\(Self.ok)Transfer-Encoding: Chunked\r\n\r\n2 \r\nok\r\n0\r\nA: b\r\n\r\n",
                "\(Self.ok)A: b\r\n c\r\nContent-Length: 2\r\n\r\nok",
                "\(Self.ok)Transfer-Encoding: chunked\r\n\r\n002;a=b\r\nok\r\n000\r\n\r\n",
                "HTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 100 \r\n\r\n\(Self.ok)Content-Length: 2\r\n\r\nok",
            ]
            for (index, answer) in answers.enumerated() {
                origin.route("/\(index)") { _ in .raw([.bytes(Array(answer.utf8))]) }
            }
            try await withSession(.ephemeral) { session in
                for index in answers.indices { try await session.expect(origin.url("/\(index)"), "ok") }
            }
        }
    }
}
