// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The output of `urlload` for coded bodies, and its exit code when it cannot connect.
@Suite(.timeLimit(.minutes(4)))
struct CodingCommandTests {
    /// `printf 'what is in it' | gzip -n`
    private static let coded: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x2B, 0xCF, 0x48, 0x2C, 0x51, 0xC8, 0x2C, 0x56,
        0xC8, 0xCC, 0x53, 0xC8, 0x2C, 0x01, 0x00, 0x26, 0x0A, 0xED, 0x8B, 0x0D, 0x00, 0x00, 0x00,
    ]
    private static let text = Array("what is in it".utf8)

    @Test("A file keeps the bytes as they were sent, unless --compressed is given")
    func files() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/a") { _ in .ok(.bytes(Self.coded), headers: [.contentEncoding: "gzip"]) }
            let target = origin.url("/a").absoluteString
            let cases = [
                (["-o", "a"], false), (["-O"], false), (["-C", "-o", "a"], false), (["--compressed", "-O"], true),
                (["-C", "--compressed", "-O"], true),
            ]
            for (options, decodes) in cases {
                let folder = try TemporaryFolder()
                let result = try await Running.urlload(options + [target], in: folder)
                #expect(result.code == 0, "\(result.errors)")
                let content = try folder.bytes("a")
                #expect(content == (decodes ? Self.text : Self.coded), "\(options)")
            }
            let shown = try await Running.urlload([target])
            #expect(shown.output == Self.text)
            let raw = try await Running.urlload(["--no-compressed", target])
            #expect(raw.output == Self.coded)
        }
    }

    @Test("--connect-timeout ends an attempt with exit code 28 and a message")
    func connectTimeout() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in
            origin.inject(.init(.handshake, .stall))
            let result = try await Running.urlload(["--connect-timeout", "0.2", origin.url().absoluteString])
            #expect(result.code == 28)
            let sentence = "connecting took longer than --connect-timeout (connectTimeout, securing)"
            #expect(result.errors.contains("\(sentence): no connection within 0.2 seconds"))
            #expect(result.errors.contains(origin.url().absoluteString))
        }
    }

    @Test("The message about a failed WebSocket contains its URL")
    func webSocket() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(.forbidden) }
            let target = "ws://\(origin.url().host() ?? ""):\(origin.port)/"
            let result = try await Running.urlload(["ws", "--wait=60", target])
            let words = "urlload: \(target): the server refused to open a WebSocket: 403"
            #expect(result.errors.contains(words), "\(result.errors)")
        }
    }
}
