// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The cache between a signature and what it proves: bodies with digests, and responses to signed requests.
@Suite(.timeLimit(.minutes(4))) struct SignedCacheRows {
    private static func stated(_ bytes: [UInt8]) -> String {
        "sha-256=" + StructuredField.text(BodyDigest.sha256(bytes))
    }

    /// The fields of a response whose signature covers the status and a digest of its content.
    private static func signed(_ content: [UInt8], _ change: (inout Headers) -> Void = { _ in }) throws -> Headers {
        var headers: Headers = [.contentDigest: stated(content), .cacheControl: "max-age=60"]
        let input = StructuredField.InnerList(
            [StructuredField.Item(.string("@status")), StructuredField.Item(.string("content-digest"))],
            [.init("created", .integer(Date.now.wholeSeconds)), .init("keyid", .string("k"))])
        let base = try SignatureBase.make(input, of: SignatureMessage(status: 200, headers, answering: nil))
        headers[.signatureInput] = StructuredField.text([StructuredField.Entry("sig", .list(input))])
        headers[.signature] = "sig=\(StructuredField.text(SigningRows.key.key.sign(Array(base.utf8)) ?? []))"
        change(&headers)
        return headers
    }

    private static var verifying: Decisions {
        let verifier = MessageVerifier(keys: ["k": SigningRows.key], covering: [.status, .field(.contentDigest)])
        var decisions = Decisions()
        decisions.response = Decision { response in
            try verifier.verify(response)
            return .allow
        }
        return decisions
    }

    /// The part of an answer to `request` that its range asks for; the whole without one.
    private static func part(_ body: [UInt8], _ headers: Headers, _ request: HTTPTestServer.RecordedRequest)
        -> HTTPTestServer.Response
    {
        guard case .from(let first)? = request.headers[.range].flatMap({ ByteRange.parse($0) })?.first else {
            return .ok(.bytes(body), headers: headers)
        }
        var headers = headers
        headers[.contentRange] = "bytes \(first)-\(body.count - 1)/\(body.count)"
        return .status(.partialContent, headers: headers, body: .bytes(Array(body[Int(first)...])))
    }

    private func begin(_ rig: CacheRig, _ path: String) async {
        _ = try? await rig.session.load(Request(url: rig.origin.url(path))) { _, body in
            for try await chunk in body where chunk.count > 0 { break }
        }
    }

    @Test("the beginning of a body with a digest is not completed: the digest was compared with neither part")
    func beginnings() async throws {
        let (right, forged) = ([UInt8](repeating: 1, count: 200_000), [UInt8](repeating: 2, count: 200_000))
        try await withCacheRig(decisions: Self.verifying) { rig in
            // A party on the way adds a tag to the head, and forges the body.
            let head = try Self.signed(right) { $0[.etag] = "\"x\"" }
            rig.origin.route("/") { request in
                var fields = head
                if request.headers.contains(.range) { fields[.contentDigest] = nil }
                return Self.part(forged, fields, request)
            }
            await begin(rig, "/")
            await expectFailure(.digestMismatch) { try await rig.session.data(from: rig.origin.url()) }
            #expect(rig.origin.requests.allSatisfy { !$0.headers.contains(.range) })
        }
        // Nor is a first part.
        try await withCacheRig { rig in
            rig.origin.route("/part") { request in
                Self.part(
                    right, [.etag: "\"x\"", .cacheControl: "max-age=60", .contentDigest: Self.stated(right)], request)
            }
            _ = try await rig.session.data(
                for: Request(url: rig.origin.url("/part"), headers: [.range: "bytes=0-"]))
            #expect(rig.cache.memoryUsage == 0)
        }
    }

    @Test("a later answer gives the stored response no digest and no signature", arguments: [304, 206, 200])
    func updates(_ status: Int) async throws {
        let (right, forged) = ([UInt8](repeating: 1, count: 200_000), [UInt8](repeating: 2, count: 200_000))
        let code = try #require(Status(status))
        try await withCacheRig { rig in
            let plain: Headers = [.etag: "\"x\"", .cacheControl: "max-age=60"]
            rig.origin.route("/") { Self.part(forged, plain, $0) }
            if code == .partialContent { await begin(rig, "/") } else { _ = try await rig.get() }
            let proven = try Self.signed(right) { $0[.etag] = "\"x\"" }
            rig.origin.route("/") { request in
                switch code {
                case .partialContent:
                    // The digest is that of the content of this message, and right.
                    var fields = proven
                    fields[.contentDigest] = Self.stated(Array(forged[Int(Self.first(request))...]))
                    return Self.part(forged, fields, request)
                case .notModified: return .status(.notModified, headers: proven)
                default: return .ok(.bytes(right), headers: proven)
                }
            }
            var request = Request(url: rig.origin.url())
            if code == .ok { request.method = .head }
            if code != .partialContent { request.cachePolicy = .revalidate }
            _ = try await rig.session.data(for: request)
            (request.method, request.cachePolicy) = (.get, .onlyIfCached)
            let (data, response) = try await rig.session.data(for: request)
            #expect([UInt8](data) == forged && rig.requests == 2)
            for name in [FieldName.contentDigest, .signature, .signatureInput] {
                #expect(response.http?.headers.contains(name) == false, "\(name)")
            }
        }
    }

    private static func first(_ request: HTTPTestServer.RecordedRequest) -> Int64 {
        guard case .from(let first)? = request.headers[.range].flatMap({ ByteRange.parse($0) })?.first else { return 0 }
        return first
    }

    @Test("a part of a stored response does not state the digest of the whole content") func parts() async throws {
        try await withCacheRig { rig in
            let content = Array("0123456789".utf8)
            rig.origin.route("/") { _ in
                .ok(
                    .bytes(content),
                    headers: [
                        .contentDigest: Self.stated(content), .reprDigest: Self.stated(content),
                        .cacheControl: "max-age=60",
                    ])
            }
            _ = try await rig.get()
            let (data, response) = try await rig.session.data(
                for: Request(url: rig.origin.url(), headers: [.range: "bytes=2-4"]))
            #expect(data == Data("234".utf8) && rig.requests == 1)
            #expect(response.http?.headers.contains(.contentDigest) == false)
            #expect(response.http?.headers[.reprDigest] == Self.stated(content))
        }
    }

    @Test("a covered member proves the body, whatever other digests are stated") func members() async throws {
        let forged = Array("forged".utf8)
        var running = DigestHash.Running(.sha512)
        forged.withUnsafeBytes { running.update($0) }
        let strong = StructuredField.text(running.finishBytes() ?? [])
        let verifier = MessageVerifier(
            keys: ["k": SigningRows.key], covering: [.field(.contentDigest).member("sha-256")])
        var decisions = Decisions()
        decisions.response = Decision { response in
            try verifier.verify(response)
            return .allow
        }
        let digest = Self.stated(Array("right".utf8))
        let input = StructuredField.InnerList(
            [StructuredField.Item(.string("content-digest"), [.init("key", .string("sha-256"))])],
            [.init("created", .integer(Date.now.wholeSeconds)), .init("keyid", .string("k"))])
        let base = try SignatureBase.make(
            input, of: SignatureMessage(status: 200, [.contentDigest: digest], answering: nil))
        let headers: Headers = [
            .contentDigest: "\(digest), sha-512=\(strong)",
            .signatureInput: StructuredField.text([StructuredField.Entry("sig", .list(input))]) ?? "",
            .signature: "sig=\(StructuredField.text(SigningRows.key.key.sign(Array(base.utf8)) ?? []))",
        ]
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes(forged), headers: headers) }
            try await withSession(.ephemeral, decisions: decisions) { session in
                await expectFailure(.digestMismatch) { try await session.data(from: origin.url()) }
            }
        }
    }

    @Test("what is refreshed in the background is signed as the load was") func refreshes() async throws {
        let notary = SigningRows.Notary()
        try await withCacheRig { rig in
            rig.origin.route("/") { request in
                request.headers.contains("Proof")
                    ? .ok("a", headers: [.cacheControl: "max-age=1, stale-while-revalidate=60"])
                    : .status(.forbidden, headers: [.cacheControl: "max-age=60"])
            }
            let (request, decisions) = (Request(url: rig.origin.url()), notary.decisions)
            for count in 1...3 {
                let (data, _) = try await rig.session.data(for: request, decisions: decisions)
                #expect(data == Data("a".utf8))
                try await rig.origin.wait { $0.answered == count }
                try await rig.session.eventuallyLoads { $0 == 0 }
                rig.clock.advance(10)
            }
            #expect(SigningRows.proofs(rig.origin.requests) == ["1", "2", "3"])
        }
    }

    @Test(
        "a response to an unsigned request is not that to a signed one if it varies by fields of signatures",
        arguments: [
            ("Authorization", true), ("Accept, signature-input", true), ("X-Amz-Date", true), ("SIGNATURE", true),
            ("Accept", false),
        ])
    func varying(_ names: String, _ isOther: Bool) async throws {
        let notary = SigningRows.Notary()
        try await withCacheRig { rig in
            let counter = Counter()
            rig.origin.route("/") { _ in
                .ok(counter.next("a"), headers: [.cacheControl: "max-age=60", .vary: names])
            }
            try await rig.expect("/", "200 a1 -", requests: 1)
            let (request, decisions) = (Request(url: rig.origin.url()), notary.decisions)
            for _ in 1...2 {
                let (data, _) = try await rig.session.data(for: request, decisions: decisions)
                #expect(data == Data((isOther ? "a2" : "a1").utf8))
            }
            try await rig.expect("/", "200 a1 0", requests: isOther ? 2 : 1)
        }
    }
}

extension BodyDigest {
    fileprivate static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var running = DigestHash.Running(.sha256)
        bytes.withUnsafeBytes { running.update($0) }
        return running.finishBytes() ?? []
    }
}
