// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

/// Content codings, and security 48 and 49: decompression bombs and damaged data.
@Suite(.timeLimit(.minutes(4)))
struct DecodingRows {
    static let text = [UInt8]((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 / 7) })

    private func withAnswer(
        _ bytes: [UInt8], coding: String, _ configuration: Configuration = .ephemeral,
        _ use: nonisolated(nonsending) (Session, URL) async throws -> Void
    ) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes(bytes), headers: [.contentEncoding: coding]) }
            try await withSession(configuration) { try await use($0, origin.url()) }
            try await origin.wait { $0.open == 0 }
        }
    }

    /// An uncompressed meta-block, and the empty last one (RFC 7932 9.2); up to 64 KiB.
    static func brotli(_ bytes: [UInt8]) -> [UInt8] {
        let head = UInt32(bytes.count - 1) << 4 | 1 << 20
        return [UInt8(truncatingIfNeeded: head), UInt8(truncatingIfNeeded: head >> 8), UInt8(head >> 16)] + bytes + [3]
    }

    /// A frame with one raw block (RFC 8878 3.1.1); up to 128 KiB.
    static func zstd(_ bytes: [UInt8]) -> [UInt8] {
        let head = UInt32(bytes.count) << 3 | 1
        return [0x28, 0xB5, 0x2F, 0xFD, 0, 0x58]
            + [UInt8(truncatingIfNeeded: head), UInt8(truncatingIfNeeded: head >> 8), UInt8(head >> 16)] + bytes
    }

    @Test(
        "codings are decoded",
        arguments: [
            "gzip", "x-gzip", "GZIP", "deflate", "br", "zstd", "identity", "gzip, gzip", "identity, gzip", "gzip, br",
            "br, zstd",
        ])
    func decoded(_ coding: String) async throws {
        let bytes =
            switch coding {
            case "deflate": Compressed.zlib(Self.text)
            case "br": Self.brotli(Self.text)
            case "zstd": Self.zstd(Self.text)
            case "gzip, br": Self.brotli(Compressed.gzip(Self.text))
            case "br, zstd": Self.zstd(Self.brotli(Self.text))
            case "identity": Self.text
            case "gzip, gzip": Compressed.gzip(Compressed.gzip(Self.text))
            default: Compressed.gzip(Self.text)
            }
        try await withAnswer(bytes, coding: coding) { session, url in
            let (data, response) = try await session.data(from: url)
            #expect(data == Data(Self.text))
            #expect(response.expectedLength == (coding == "identity" ? Int64(Self.text.count) : nil))
            let streamed = try await session.load(Request(url: url)) { _, body in
                var all = Data()
                for try await chunk in body { all.append(chunk) }
                return all
            }
            #expect(streamed == Data(Self.text))
        }
    }

    @Test("a caller that sets Accept-Encoding gets the bytes as they were sent")
    func raw() async throws {
        let bytes = Compressed.gzip(Self.text)
        try await withAnswer(bytes, coding: "gzip") { session, url in
            let (data, response) = try await session.data(for: Request(url: url, headers: [.acceptEncoding: "gzip"]))
            #expect(data == Data(bytes))
            #expect(response.expectedLength == Int64(bytes.count))
        }
        var configuration = Configuration.ephemeral
        configuration.acceptEncoding = nil
        try await withAnswer(bytes, coding: "gzip", configuration) { session, url in
            let (data, _) = try await session.data(from: url)
            #expect(data == Data(bytes))
        }
        try await withAnswer(bytes, coding: "compress") { session, url in
            let (data, _) = try await session.data(from: url)
            #expect(data == Data(bytes))
        }
    }

    @Test("a decoded response leaves its connection usable, and an empty one is empty")
    func reuse() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/chunked") { _ in
                .ok(
                    .chunks(
                        Compressed.gzip(Self.text).map { .bytes([$0]) }.prefix(200) + [
                            .bytes(Array(Compressed.gzip(Self.text).dropFirst(200)))
                        ]), headers: [.contentEncoding: "gzip"])
            }
            origin.route("/empty") { _ in .ok(.none, headers: [.contentEncoding: "gzip"]) }
            try await withSession(.ephemeral) { session in
                for _ in 1...3 {
                    let (data, _) = try await session.data(from: origin.url("/chunked"))
                    #expect(data == Data(Self.text))
                    try await session.expect(origin.url("/empty"), "")
                    try await session.expect(Request(url: origin.url("/chunked"), method: .head), "")
                }
            }
            #expect(origin.counts.accepted == 1)
            #expect(origin.requests.first?.headers[.acceptEncoding] == "gzip, deflate, br, zstd")
        }
    }

    struct Damage: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        init(_ name: String, _ bytes: [UInt8]) {
            testDescription = name
            self.bytes = bytes
        }
        /// The whole content with one bit changed; the position counts from its end.
        init(_ name: String, flipping place: Int) {
            var bytes = Compressed.gzip(text)
            bytes[bytes.count - place] ^= 1
            self.init(name, bytes)
        }
    }

    static let head: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]

    static let damaged: [Damage] = [
        Damage("no gzip", Array("not gzip at all".utf8)), Damage("half a magic", [0x1F]),
        Damage("no member", [0x1F, 0x8B]),
        Damage("cut in the head", Array(Compressed.gzip(text).prefix(7))), Damage("cut behind it", head),
        Damage("cut in the middle", Array(Compressed.gzip(text).prefix(1000))),
        Damage("cut in the trailer", Array(Compressed.gzip(text).dropLast(3))),
        Damage("wrong checksum", flipping: 8), Damage("wrong size", flipping: 1), Damage("wrong byte", flipping: 100),
        Damage("impossible block", head + [7]), Damage("distance too far", head + [0x63, 0xFF, 0xFF, 0xFF]),
        Damage("reserved flags", [0x1F, 0x8B, 8, 0xE0] + Compressed.gzip(text).dropFirst(4)),
        Damage("another method", [0x1F, 0x8B, 7] + Compressed.gzip(text).dropFirst(3)),
    ]

    @Test("damaged content is an error and no crash (security 49)", arguments: damaged)
    func damage(_ damage: Damage) async throws {
        let name = damage.testDescription
        try await withAnswer(damage.bytes, coding: "gzip") { session, url in
            await expectFailure(.contentDecodingFailed, .remote, .decoding, name) { try await session.data(from: url) }
            await expectFailure(.contentDecodingFailed, .remote, .decoding, name) {
                try await session.load(Request(url: url)) { _, body in for try await _ in body {} }
            }
        }
    }

    @Test("more than five layers are refused (security 48)")
    func layers() async throws {
        try await withAnswer(Self.text, coding: String(repeating: "gzip, ", count: 5) + "gzip") { session, url in
            await expectFailure(.contentDecodingFailed, .remote, .decoding) { try await session.data(from: url) }
        }
    }

    @Test("a decompression bomb is refused by its ratio, its size, or the limit for collected bodies (security 48)")
    func bombs() async throws {
        let single = Compressed.gzip([UInt8](repeating: 0, count: 5 << 20), period: 1)
        let double = Compressed.gzip(single, period: 13)
        #expect(double.count < single.count / 50)
        try await withAnswer(double, coding: "gzip, gzip") { session, url in
            await expectFailure(.contentTooLarge, .remote, .decoding, "layered") { try await session.data(from: url) }
        }
        // A single legitimate layer passes, unless the session's limit is lower.
        try await withAnswer(single, coding: "gzip") { session, url in
            let (data, _) = try await session.data(from: url)
            #expect(data.count == 5 << 20)
        }
        var configuration = Configuration.ephemeral
        configuration.limits.decompressionRatio = 100
        try await withAnswer(single, coding: "gzip", configuration) { session, url in
            await expectFailure(.contentTooLarge, .remote, .decoding, "ratio") { try await session.data(from: url) }
        }
        configuration = .ephemeral
        configuration.limits.decompressedSize = 1 << 20
        try await withAnswer(single, coding: "gzip", configuration) { session, url in
            await expectFailure(.contentTooLarge, .remote, .decoding, "size") { try await session.data(from: url) }
        }
        configuration = .ephemeral
        configuration.limits.collectedBodySize = 1 << 20
        try await withAnswer(single, coding: "gzip", configuration) { session, url in
            await expectFailure(.bodyTooLarge, .local, nil, "collected") { try await session.data(from: url) }
        }
    }
}
