// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingWire

@testable import URLLoading

/// Published signatures: RFC 9421 appendix B, the test suite of AWS Signature Version 4, and the examples of Amazon S3.
@Suite struct SigningVectorTests {
    // MARK: RFC 9421, appendix B.1

    static let edPrivate = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
        -----END PRIVATE KEY-----
        """
    static let edPublic = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=
        -----END PUBLIC KEY-----
        """
    static let p256Private = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIFKbhfNZfpDsW43+0+JjUr9K+bTeuxopu653+hBaXGA7oAoGCCqGSM49
        AwEHoUQDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lfw0EkjqF7xB4FivAxzic30tMM
        4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==
        -----END EC PRIVATE KEY-----
        """
    static let p256Public = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf
        w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==
        -----END PUBLIC KEY-----
        """
    /// Made for this test; the passphrase is `right`.
    static let encrypted = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiDTQC57ycGiQICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEELpPQ2lArUjPwEP2qBRdhnAEQCoY
        OM2V5vDxpm/ivZj/JBWgQEdO8AMx8oB4gDKgj4NHqVeiniVVvtv8NAdThf/Fq20r
        uXG6zua+Wu1phrGFnxg=
        -----END ENCRYPTED PRIVATE KEY-----
        """
    static let secret =
        "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="

    static let created = Date(timeIntervalSince1970: 1_618_884_473)

    /// The request of appendix B.2.
    static func request() throws -> SigningRequest {
        let url = try url("https://example.com/foo?param=Value&Pet=dog")
        let line = SigningRequest.Line(
            method: .post, url: url, authority: "example.com", target: "/foo?param=Value&Pet=dog")
        let body = SigningRequest.Body(length: 18, isRepeatable: true) { $0.hex(Array("{\"hello\": \"world\"}".utf8)) }
        return SigningRequest(
            line,
            headers: [
                .date: "Tue, 20 Apr 2021 02:07:55 GMT", .contentType: "application/json", .contentLength: "18",
            ], body: body, date: created)
    }

    private static func signer(_ key: SigningKey, _ keyID: String, _ components: [SignatureComponent], _ label: String)
        throws -> MessageSigner
    {
        var signer = try MessageSigner(key: key, keyID: keyID)
        (signer.components, signer.label) = (components, label)
        return signer
    }

    @Test("B.2.5, HMAC-SHA256, and B.2.6, Ed25519: the same fields to the byte") func deterministic() async throws {
        let secret = try #require(Base64.decode(Self.secret))
        let hmac = try Self.signer(
            .hmacSHA256(secret), "test-shared-secret", [.field(.date), .authority, .field(.contentType)], "sig-b25")
        let first = try await hmac.signature(of: Self.request()).headers
        #expect(
            first[.signatureInput]
                == "sig-b25=(\"date\" \"@authority\" \"content-type\");created=1618884473;keyid=\"test-shared-secret\"")
        #expect(first[.signature] == "sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:")
        let edwards = try Self.signer(
            SigningKey(pem: Self.edPrivate.utf8), "test-key-ed25519",
            [.field(.date), .method, .path, .authority, .field(.contentType), .field(.contentLength)], "sig-b26")
        let second = try await edwards.signature(of: Self.request()).headers
        #expect(
            second[.signatureInput]
                == "sig-b26=(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\")"
                + ";created=1618884473;keyid=\"test-key-ed25519\"")
        #expect(
            second[.signature]
                == "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:")
    }

    /// The response of appendix B.2.4.
    private static func response(_ change: (inout Headers) -> Void = { _ in }) throws -> Response {
        var headers: Headers = [
            .contentType: "application/json", .contentLength: "23",
            .contentDigest:
                "sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:",
            .signatureInput:
                "sig-b24=(\"@status\" \"content-type\" \"content-digest\" \"content-length\");created=1618884473;keyid=\"test-key-ecc-p256\"",
            .signature:
                "sig-b24=:wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw==:",
        ]
        change(&headers)
        return Response(
            url: try url("https://example.com/foo"), http: HTTPHead(status: .ok, headers: headers))
    }

    private static func verifier(_ covered: [SignatureComponent] = [.status, .field(.contentDigest)]) throws
        -> MessageVerifier
    {
        MessageVerifier(keys: ["test-key-ecc-p256": try SigningKey(pem: p256Public.utf8)], covering: covered)
    }

    @Test("B.2.4, ECDSA over P-256: the response is verified") func response() throws {
        let verified = try Self.verifier().verify(try Self.response(), at: Self.created)
        #expect(
            verified.label == "sig-b24" && verified.keyID == "test-key-ecc-p256" && verified.created == Self.created)
        #expect(verified.components == ["\"@status\"", "\"content-type\"", "\"content-digest\"", "\"content-length\""])
        var old = try Self.verifier()
        old.maximumAge = nil
        #expect(throws: Never.self) { try old.verify(try Self.response()) }
    }

    @Test("what is changed, old, unknown, uncovered or malformed in a signed response is refused") func refused() throws
    {
        func expect(
            _ words: String, _ verifier: MessageVerifier? = nil, at seconds: Double = 0,
            sourceLocation: SourceLocation = #_sourceLocation, _ change: (inout Headers) -> Void = { _ in }
        ) throws {
            let error = #expect(throws: LoadError.self, sourceLocation: sourceLocation) {
                try (verifier ?? Self.verifier()).verify(
                    try Self.response(change), at: Self.created.addingTimeInterval(seconds))
            }
            #expect(error?.reason == .badSignature, sourceLocation: sourceLocation)
            #expect(error?.detail?.contains(words) == true, "\(error?.detail ?? "")", sourceLocation: sourceLocation)
        }
        try expect("is wrong") { $0[.contentType] = "text/plain" }
        try expect("is wrong") { $0[.contentDigest] = $0[.contentDigest]?.replacing("mEW", with: "MEW") }
        try expect("is wrong") { $0[.signature] = "sig-b24=:AAAA:" }
        try expect("is wrong") { $0[.signatureInput] = $0[.signatureInput]?.replacing("473", with: "472") }
        try expect("neither sha-256 nor sha-512") { $0[.contentDigest] = "unknown=:AA==:" }
        try expect("no component \"content-type\"") { $0[.contentType] = nil }
        try expect("has no value") { $0[.signature] = "other=:AAAA:" }
        try expect("malformed") { $0[.signature] = "sig-b24=:" }
        try expect("malformed") { $0[.signatureInput] = "sig-b24=(" }
        try expect("not signed") { $0[.signature] = nil }
        try expect("not signed") { $0[.signatureInput] = nil }
        try expect("no signature is of a known key") { $0[.signatureInput] = "sig-b24=1" }
        try expect("no signature is of a known key", MessageVerifier(keys: [:], covering: []))
        try expect("does not cover \"date\"", try Self.verifier([.field(.date)]))
        try expect("does not cover \"@method\";req", try Self.verifier([.method.ofRequest]))
        try expect("too old", at: 301)
        try expect("of the future", at: -61)
        try expect("another algorithm") { $0[.signatureInput] = ($0[.signatureInput] ?? "") + ";alg=\"ed25519\"" }
        try expect("expired") { $0[.signatureInput] = ($0[.signatureInput] ?? "") + ";expires=1618884472" }
        // A time of another type is no missing one, and a covered member must be one that is compared.
        for bad in ["expires=\"x\"", "expires=1618884999.5", "expires"] {
            try expect("expires is not an integer") { $0[.signatureInput] = ($0[.signatureInput] ?? "") + ";\(bad)" }
        }
        try expect("created is not an integer") {
            $0[.signatureInput] = $0[.signatureInput]?.replacing("=1618884473", with: "=\"1618884473\"")
        }
        for parameter in ["key=\"md5\"", "key=\"sha-256\""] {
            try expect("neither sha-256 nor sha-512", try Self.verifier([.status])) {
                $0[.contentDigest] = "md5=:AA==:, sha-256=:AA==:, \($0[.contentDigest] ?? "")"
                $0[.signatureInput] = $0[.signatureInput]?.replacing(
                    "\"content-digest\"", with: "\"content-digest\";\(parameter)")
            }
        }
        try expect("neither sha-256 nor sha-512", try Self.verifier([.status])) {
            $0[.reprDigest] = "md5=:AA==:"
            $0[.signatureInput] = $0[.signatureInput]?.replacing("\"content-digest\"", with: "\"repr-digest\";sf")
        }
        let many = (0..<65).map { "\"f\($0)\"" }.joined(separator: " ")
        try expect("more than 64", try Self.verifier([])) {
            $0[.signatureInput] = "sig-b24=(\(many));created=1618884473;keyid=\"test-key-ecc-p256\""
        }
        // The ninth is not examined, though it is right.
        try expect("has no value") {
            let right = $0[.signatureInput] ?? ""
            $0[.signatureInput] = (0..<8).map { "a\($0)=();keyid=\"test-key-ecc-p256\", " }.joined() + right
        }
        var tagged = try Self.verifier()
        tagged.tag = "app"
        try expect("no signature is of a known key", tagged)
        // A key is used with its own algorithm: the public key is no secret of HMAC.
        let confused = MessageVerifier(
            keys: ["test-key-ecc-p256": .hmacSHA256(Self.p256Public.utf8)], covering: [.status])
        try expect("is wrong", confused)
    }

    @Test("durations without an end are no overflow") func durations() async throws {
        var verifier = try Self.verifier()
        for limit in [Duration.seconds(Int64.max), .seconds(Int64.max - 1), .seconds(1e19)] {
            (verifier.maximumAge, verifier.clockSkew) = (limit, limit)
            for date in [Self.created, .distantPast, .distantFuture] {
                #expect(throws: Never.self) { try verifier.verify(try Self.response(), at: date) }
            }
        }
        verifier.maximumAge = .seconds(Int64.min)
        #expect(throws: LoadError.self) { try verifier.verify(try Self.response(), at: Self.created) }
        var signer = try MessageSigner(key: .hmacSHA256([1]), keyID: nil)
        signer.lifetime = .seconds(1e19)
        let input = try await signer.signature(of: Self.request()).headers[.signatureInput]
        #expect(input?.contains(";expires=999999999999999") == true)
        #expect(
            [0, .infinity, -.infinity, .nan].map { Date(timeIntervalSince1970: $0).wholeSeconds }
                == [0, 999_999_999_999_999, 0, 999_999_999_999_999])
        for (length, chunk) in [(Int64.max, Int.max), (.max, 0), (.min, .min)] {
            let upload = Self.storage.streaming(
                Request(url: try url("https://a.test/"), method: .put), length: length, chunkSize: chunk
            ) { AsyncStream<[UInt8]> { $0.finish() } }
            #expect(
                upload.request.headers["X-Amz-Decoded-Content-Length"] == (length > 0 ? "4611686018427387904" : "0"))
        }
    }

    @Test("an empty secret neither signs nor verifies") func emptySecret() async throws {
        let key = SigningKey.hmacSHA256([])
        #expect(!key.canSign && key.description == "hmac-sha256 key" && key.key.sign([1]) == nil)
        await expectFailure(.cannotSign) { try MessageSigner(key: key, keyID: nil) }
        let code = try #require(MessageKey.hmac([], [1]))
        #expect(!key.key.verifies(code, of: [1]) && MessageKey(secret: [0]).verifies(code, of: [1]))
    }

    @Test("what each kind of key signs, its public key verifies; the signature names what is asked for") func kinds()
        async throws
    {
        let digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
        for (signing, verifying) in [
            (try SigningKey(pem: Self.edPrivate.utf8), try SigningKey(pem: Self.edPublic.utf8)),
            (try SigningKey(pem: Self.p256Private.utf8), try SigningKey(pem: Self.p256Public.utf8)),
            (.hmacSHA256([1, 2]), .hmacSHA256([1, 2])),
        ] {
            var signer = try MessageSigner(key: signing, keyID: "k")
            (signer.tag, signer.lifetime, signer.addsNonce) = ("app", .seconds(60), true)
            signer.namesAlgorithm = true
            let request = try Self.request()
            let signed = request.with(try await signer.signature(of: request))
            #expect(signed.headers[.contentDigest] == digest)
            let input = try #require(signed.headers[.signatureInput])
            #expect(
                input.hasPrefix(
                    "sig=(\"@method\" \"@target-uri\" \"content-type\" \"content-digest\")"
                        + ";created=1618884473;expires=1618884533;nonce=\""))
            #expect(input.hasSuffix("\";alg=\"\(signing.algorithm.rawValue)\";keyid=\"k\";tag=\"app\""))
            try expect(signed, isSignedWith: verifying)
            #expect(!verifying.canSign || signing.algorithm == .hmacSHA256)
        }
    }

    private func expect(_ request: SigningRequest, isSignedWith key: SigningKey) throws {
        let entries = try #require(StructuredField.dictionary(request.headers[.signatureInput] ?? ""))
        let signatures = try #require(StructuredField.byteSequences(request.headers[.signature] ?? ""))
        let entry = try #require(entries.last)
        guard case .list(let input) = entry.member else {
            Issue.record("no list")
            return
        }
        let base = try SignatureBase.make(input, of: SignatureMessage(request.components))
        #expect(key.key.verifies(try #require(signatures[entry.key]), of: Array(base.utf8)))
        #expect(!key.key.verifies(try #require(signatures[entry.key]), of: Array("x\(base)".utf8)))
    }

    @Test("a second signature covers the first; the same label twice is refused") func several() async throws {
        let request = try Self.request()
        var (first, second) = (
            try MessageSigner(key: .hmacSHA256([1]), keyID: "a"), try MessageSigner(key: .hmacSHA256([2]), keyID: "b")
        )
        first.label = "one"
        let once = request.with(try await first.signature(of: request))
        second.label = "two"
        second.components = [.field(.signature).member("one"), .field(.signatureInput).member("one")]
        let twice = once.with(try await second.signature(of: once))
        #expect(StructuredField.dictionary(twice.headers[.signatureInput] ?? "")?.map(\.key) == ["one", "two"])
        try expect(twice, isSignedWith: .hmacSHA256([2]))
        await expectFailure(.cannotSign) { try await first.signature(of: once) }
        // The caller's own fields: a label of one field alone, and what is no dictionary.
        for headers: Headers in [
            [.signature: "one=:AA==:"], [.signatureInput: "one=()"], [.signatureInput: "("], [.signature: "two=:"],
        ] {
            let other = request.with(RequestSignature(headers: headers))
            await expectFailure(.cannotSign, .local, .preparing, "\(headers)") { try await first.signature(of: other) }
        }
        await expectFailure(.cannotSign) {
            try await first.signature(of: request.with(RequestSignature(headers: [.cookie: "a=1", .cookie: "b=2"])))
        }
    }

    @Test("what cannot be signed is refused in words") func unsignable() async throws {
        await expectFailure(.cannotSign) { try MessageSigner(key: try SigningKey(pem: Self.edPublic.utf8), keyID: nil) }
        for text in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            await expectFailure(.cannotSign) { try SigningKey(pem: text.utf8) }
        }
        await expectFailure(.wrongPassphrase) { try SigningKey(pem: Self.encrypted.utf8) }
        await expectFailure(.wrongPassphrase) { try SigningKey(pem: Self.encrypted.utf8, passphrase: "wrong") }
        #expect(try SigningKey(pem: Self.encrypted.utf8, passphrase: "right").algorithm == .ed25519)
        for (label, components, keyID) in [
            ("Sig", nil, "k"), ("a b", nil, "k"), (" sig", nil, "k"), ("", nil, "k"), ("sig", [.field("Absent")], "k"),
            ("sig", [.method, .method], "k"), ("sig", [.status], "k"), ("sig", nil, "k\n"), ("sig", nil, "ü"),
        ] as [(String, [SignatureComponent]?, String)] {
            var signer = try MessageSigner(key: .hmacSHA256([1]), keyID: keyID)
            (signer.label, signer.components) = (label, components)
            await expectFailure(.cannotSign, .local, .preparing, "\(label)") {
                try await signer.signature(of: try Self.request())
            }
        }
    }

    // MARK: AWS

    private static func aws(
        _ method: Method, _ text: String, _ headers: Headers = [:], body: String? = nil, at seconds: Double
    ) throws -> SigningRequest {
        let url = try url(text)
        let target = try Target(text)
        let line = SigningRequest.Line(
            method: method, url: url, authority: String(decoding: target.hostField, as: UTF8.self),
            target: String(decoding: target.originForm, as: UTF8.self))
        let body = body.map { text in
            SigningRequest.Body(length: Int64(text.utf8.count), isRepeatable: true) { $0.hex(Array(text.utf8)) }
        }
        return SigningRequest(
            line, headers: headers, body: body ?? .none, date: Date(timeIntervalSince1970: seconds))
    }

    private static let token =
        "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUu"
        + "wthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQc"
        + "HNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/o"
        + "LxBA=="

    @Test(
        "The test suite of AWS Signature Version 4",
        arguments: [
            ("/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("/?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
            (
                "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"
            ),
            ("/?%E1%88%B4=bar", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
            ("//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
            ("/./example", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"),
            ("/example/..", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ])
    func suite(_ target: String, _ signature: String) async throws {
        let request = try Self.aws(.get, "https://example.amazonaws.com\(target)", at: 1_440_938_160)
        let headers = try await Self.suiteSigner().signature(of: request).headers
        #expect(headers["X-Amz-Date"] == "20150830T123600Z" && headers["X-Amz-Content-SHA256"] == nil)
        #expect(
            headers[.authorization]
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                + "SignedHeaders=host;x-amz-date, Signature=\(signature)")
    }

    private static func suiteSigner(_ token: String? = nil) -> AWSSigner {
        AWSSigner(
            credentials: AWSCredentials(
                accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", sessionToken: token),
            region: "us-east-1", service: "service")
    }

    @Test("The test suite's fields, bodies and session token") func suiteFields() async throws {
        func expect(
            _ method: Method, _ headers: Headers, body: String? = nil, token: String? = nil, names: String,
            _ signature: String
        ) async throws {
            let request = try Self.aws(method, "https://example.amazonaws.com/", headers, body: body, at: 1_440_938_160)
            let signed = try await Self.suiteSigner(token).signature(of: request).headers
            #expect(
                signed[.authorization]?.hasSuffix("SignedHeaders=\(names), Signature=\(signature)") == true,
                "\(signed[.authorization] ?? "")")
            #expect(signed["X-Amz-Security-Token"] == token)
        }
        // Fields of the connection's partners are not signed, and change nothing.
        try await expect(
            .post, [.accept: "a", .userAgent: "b", .acceptEncoding: "c", .cookie: "d", .contentLength: "0"],
            names: "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b")
        try await expect(
            .post, [.contentType: "application/x-www-form-urlencoded"], body: "Param1=value1",
            names: "content-type;host;x-amz-date",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a")
        try await expect(
            .get, ["My-Header1": " value1", "My-Header2": " \"a   b   c\""],
            names: "host;my-header1;my-header2;x-amz-date",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736")
        var repeated = Headers()
        for value in ["value4", "value1", "value3", "value2"] { repeated.append("My-Header1", value) }
        try await expect(
            .get, repeated, names: "host;my-header1;x-amz-date",
            "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01")
        try await expect(
            .post, [:], token: Self.token, names: "host;x-amz-date;x-amz-security-token",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead")
    }

    private static let storage = AWSSigner(
        credentials: AWSCredentials(
            accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        region: "us-east-1", service: "s3")

    @Test("The examples of Amazon S3") func storage() async throws {
        func expect(_ request: SigningRequest, _ names: String, _ signature: String) async throws {
            let signed = try await Self.storage.signature(of: request).headers
            #expect(
                signed[.authorization]
                    == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                    + "SignedHeaders=\(names), Signature=\(signature)")
        }
        let (host, start) = ("https://examplebucket.s3.amazonaws.com", 1_369_353_600.0)
        try await expect(
            Self.aws(.get, "\(host)/test.txt", [.range: "bytes=0-9"], at: start),
            "host;range;x-amz-content-sha256;x-amz-date",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
        try await expect(
            Self.aws(
                .put, "\(host)/test$file.text",
                [.date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"],
                body: "Welcome to Amazon S3.", at: start),
            "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
        try await expect(
            Self.aws(.get, "\(host)/?lifecycle", at: start), "host;x-amz-content-sha256;x-amz-date",
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
        try await expect(
            Self.aws(.get, "\(host)/?max-keys=2&prefix=J", at: start), "host;x-amz-content-sha256;x-amz-date",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
        let link = try await Self.storage.presigned(
            url("\(host)/test.txt"), expires: .seconds(86400), at: Date(timeIntervalSince1970: start))
        #expect(
            link.absoluteString
                == "\(host)/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
                + "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
                + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    }

    @Test("An unsigned payload is named; what the caller states of it is kept; what is there already is refused")
    func payloads() async throws {
        var signer = Self.suiteSigner()
        signer.payload = .unsigned
        let plain = try Self.aws(.put, "https://a.test/", body: "x", at: 0)
        #expect(try await signer.signature(of: plain).headers["X-Amz-Content-SHA256"] == "UNSIGNED-PAYLOAD")
        let stated = try Self.aws(.put, "https://a.test/", ["x-amz-content-sha256": "abc"], body: "x", at: 0)
        let signed = try await Self.storage.signature(of: stated).headers
        #expect(signed["X-Amz-Content-SHA256"] == nil)
        #expect(signed[.authorization]?.contains("host;x-amz-content-sha256;x-amz-date") == true)
        for name in ["X-Amz-Date", "x-amz-security-token"] as [FieldName] {
            let dated = try Self.aws(.get, "https://a.test/", [name: "x"], at: 0)
            await expectFailure(.cannotSign) { try await Self.suiteSigner("t").signature(of: dated) }
        }
        let tokened = try Self.aws(.get, "https://a.test/", ["x-amz-security-token": "t"], at: 0)
        let own = try await Self.suiteSigner().signature(of: tokened).headers
        #expect(own[.authorization]?.contains("host;x-amz-date;x-amz-security-token") == true)
        #expect(!own.contains("X-Amz-Security-Token"))
        let linked = try Self.aws(.get, "https://a.test/?X-Amz-Signature=abc", at: 0)
        await expectFailure(.cannotSign) { try await Self.suiteSigner().signature(of: linked) }
        for time in [Duration.zero, .milliseconds(999), .seconds(604_801), .seconds(1e19)] {
            await expectFailure(.cannotSign) {
                try await Self.storage.presigned(try url("https://a.test/"), expires: time)
            }
        }
        await expectFailure(.badURL) { try await Self.storage.presigned(try url("/a"), expires: .seconds(1)) }
    }

    @Test("The example of chunks that are signed one by one") func chunks() throws {
        let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
        let writer = AWSChunkWriter(AWSChunkForm(Self.storage, chunkSize: 65_536, nil), Self.chain(seed: seed))
        var length: Int64 = 0
        for (size, signature) in [
            (65_536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
            (1_024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
            (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        ] {
            let chunk = try writer.encode([UInt8](repeating: UInt8(ascii: "a"), count: size))
            let head = "\(String(size, radix: 16));chunk-signature=\(signature)\r\n"
            #expect(String(decoding: chunk.prefix(head.utf8.count), as: UTF8.self) == head)
            length += Int64(chunk.count)
        }
        #expect(length == 66_824 && AWSChunkForm(Self.storage, chunkSize: 65_536, nil).encodedLength(66_560) == length)
        var unsigned = Self.storage
        unsigned.payload = .unsigned
        for (signer, checksum) in [
            (Self.storage, nil), (Self.storage, .crc32), (Self.storage, .sha256), (unsigned, nil), (unsigned, .sha256),
        ] as [(AWSSigner, AWSSigner.Checksum?)] {
            for (count, size) in [(0, 8192), (1, 8192), (8192, 8192), (8193, 8192), (100_000, 8192)] {
                let form = AWSChunkForm(signer, chunkSize: size, checksum)
                let writer = AWSChunkWriter(form, form.isSigned ? Self.chain(seed: "") : nil)
                var (sum, rest) = (0, count)
                while rest > 0 {
                    let chunk = try writer.encode([UInt8](repeating: 0, count: min(rest, size)))
                    (sum, rest) = (sum + chunk.count, rest - min(rest, size))
                }
                sum += try writer.encode([]).count
                #expect(form.encodedLength(Int64(count)) == Int64(sum), "\(count) \(form.payload)")
            }
        }
    }

    private static func chain(seed: String) -> AWSChunkChain {
        AWSChunkChain(
            algorithm: "AWS4-HMAC-SHA256", time: "20130524T000000Z", scope: "20130524/us-east-1/s3/aws4_request",
            key: ["20130524", "us-east-1", "s3", "aws4_request"].reduce(
                Array("AWS4wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".utf8)
            ) { MessageKey.hmac($0, Array($1.utf8)) ?? [] }, previous: seed)
    }

    @Test("The example of chunks with a signed trailer") func trailer() throws {
        var chain = Self.chain(seed: "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e")
        for (size, signature) in [
            (65_536, "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2"),
            (1_024, "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7"),
            (0, "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"),
        ] {
            let made = try chain.sign([UInt8](repeating: UInt8(ascii: "a"), count: size))
            #expect(made == signature)
        }
        let last = try chain.sign(trailer: "x-amz-checksum-crc32c", "sOO8/Q==")
        #expect(last == "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435")
    }
}
