// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// A server of aioquic: `Tests/Servers/quic.py`.
enum QUICServer {
    static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path
    static let modules = package + "/.build/test-packages-http3/modules"
    static let isHere =
        access("/usr/bin/python3", X_OK) == 0 && FileManager.default.fileExists(atPath: modules + "/aioquic")

    /// Passes the port, and the certificate of the server's authority.
    static func with(_ options: [String] = [], _ use: (UInt16, [UInt8]) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue()
        let (certificate, key) = (folder.path + "/own.pem", folder.path + "/own.key")
        try Data(identity.certificatePEM).write(to: URL(fileURLWithPath: certificate))
        try Data(identity.keyPEM).write(to: URL(fileURLWithPath: key))
        let server = try Running(
            "/usr/bin/python3", ["-I", package + "/Tests/Servers/quic.py", modules, certificate, key] + options)
        let result: Result<Void, any Error>
        do {
            try await server.eventuallyText { $0.hasSuffix("\n") }
            let port = try #require(UInt16(server.text.trimmingCharacters(in: .newlines)))
            try await use(port, authority.pem)
            result = .success(())
        } catch { result = .failure(error) }
        server.send(SIGTERM)
        _ = try await server.wait()
        try result.get()
    }
}

@Suite(
    .enabled(if: QUICServer.isHere, "There is no aioquic: script/setup --tests --http3 installs it"),
    .timeLimit(.minutes(4)))
struct HTTP3PeerTests {
    @Test("GETs of aioquic, one after the other and at once", arguments: [[], ["retry"]])
    func get(options: [String]) async throws {
        try await QUICServer.with(options) { port, roots in
            let link = try HTTP3Link(port: port, roots: roots)
            try await link.connect()
            #expect(try link.tls.negotiated().applicationProtocol == "h3")
            for size in [0, 1, 100_000] {
                let stream = try link.submit("GET", "/\(size)")
                try await link.finish(stream)
                #expect(link.response(stream)?.status == .ok)
                #expect(link.response(stream)?.headers["server"] == "aioquic")
                #expect(link.body[stream] ?? [] == (0..<size).map { UInt8($0 % 251) })
            }
            let streams = try (0..<50).map { try link.submit("GET", "/\(1_000 + $0)") }
            for (index, stream) in streams.enumerated() {
                try await link.finish(stream)
                #expect(link.body[stream]?.count == 1_000 + index)
            }
        }
    }

    @Test("A body of 2 MB to aioquic and back")
    func post() async throws {
        try await QUICServer.with { port, roots in
            let link = try HTTP3Link(port: port, roots: roots)
            try await link.connect()
            let stream = try link.submit("POST", "/", hasBody: true)
            let bytes = (0..<2_000_000).map { UInt8($0 % 249) }
            bytes.withUnsafeBytes { link.endpoint.send($0, on: stream) }
            try link.endpoint.endSending(on: stream)
            try await link.finish(stream)
            #expect(link.body[stream] == bytes)
        }
    }

    @Test("A certificate of aioquic that no root vouches for fails the handshake")
    func trust() async throws {
        try await QUICServer.with { port, _ in
            let other = try TestCertificateAuthority(commonName: "Another root")
            let link = try HTTP3Link(port: port, roots: other.pem)
            try await link.connect()
            #expect(link.endpoint.isOver)
            #expect(!link.events.contains(.ready))
        }
    }
}

#endif
