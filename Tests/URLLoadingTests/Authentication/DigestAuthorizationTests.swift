// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingWire

/// RFC 7616 §3.9, with the hashes that loads use.
@Suite struct DigestAuthorizationTests {
    private static func hash(_ kind: DigestChallenge.Hash, _ bytes: [UInt8]) -> String {
        let hash: DigestHash =
            switch kind {
            case .md5: .md5
            case .sha256: .sha256
            case .sha512_256: .sha512_256
            }
        return hash.hex(bytes) ?? ""
    }

    private func answer(
        _ text: String, user: String = "Mufasa", password: String = "Circle of Life", method: String = "GET",
        target: String = "/dir/index.html", cnonce: String, count: UInt32 = 1, body: [UInt8]? = []
    ) throws -> [String: String] {
        let challenge = try #require(AuthenticationChallenge.parse([text]).first.flatMap { DigestChallenge($0) })
        let authorization = DigestAuthorization(
            challenge, user: user, password: password, cnonce: cnonce, count: count, hash: Self.hash)
        let value = try #require(authorization.value(method: method, target: Array(target.utf8), body: body))
        let parsed = try #require(AuthenticationChallenge.parse([value]).first)
        return Dictionary(uniqueKeysWithValues: parsed.parameters.map { ($0.name, $0.value) })
    }

    private let example =
        "realm=\"http-auth@example.org\", qop=\"auth, auth-int\", "
        + "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "
        + "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
    private let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"

    @Test func `§3.9.1: MD5 and SHA-256`() throws {
        let md5 = try answer("Digest \(example), algorithm=MD5", cnonce: cnonce)
        #expect(md5["response"] == "8ca523f5e9506fed4657c9700eebdbec")
        #expect(
            md5["uri"] == "/dir/index.html" && md5["nc"] == "00000001" && md5["qop"] == "auth"
                && md5["username"] == "Mufasa")
        #expect(md5["opaque"] == "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS")
        let sha = try answer("Digest \(example), algorithm=SHA-256", cnonce: cnonce)
        #expect(sha["response"] == "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1")
    }

    /// With the values of erratum 4897: the hash in the RFC is that of SHA-512 cut short, not of SHA-512/256.
    @Test func `§3.9.2: SHA-512-256, the name hashed`() throws {
        let text =
            "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, "
            + "nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", "
            + "opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\", charset=UTF-8, userhash=true"
        let answer = try answer(
            text, user: "J\u{E4}s\u{F8}n Doe", password: "Secret, or not?", target: "/doe.json",
            cnonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v")
        #expect(answer["username"] == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
        #expect(answer["response"] == "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5")
        #expect(answer["userhash"] == "true")
    }

    @Test func `RFC 2069, and -sess`() throws {
        let old = try answer("Digest realm=r, nonce=n", user: "u", password: "p", target: "/", cnonce: "c")
        let first = Self.hash(.md5, Array("u:r:p".utf8))
        let second = Self.hash(.md5, Array("GET:/".utf8))
        #expect(old["response"] == Self.hash(.md5, Array("\(first):n:\(second)".utf8)))
        #expect(old["qop"] == nil && old["nc"] == nil && old["cnonce"] == nil)
        let session = try answer(
            "Digest realm=r, nonce=n, qop=auth, algorithm=MD5-sess", user: "u", password: "p", target: "/", cnonce: "c",
            count: 0x1F)
        let key = Self.hash(.md5, Array("\(first):n:c".utf8))
        #expect(session["response"] == Self.hash(.md5, Array("\(key):n:0000001f:c:auth:\(second)".utf8)))
        #expect(session["algorithm"] == "MD5-sess")
    }

    @Test func `auth-int proves the body, and needs it`() throws {
        let text = "Digest realm=r, nonce=n, qop=\"auth-int\", algorithm=SHA-256"
        let answer = try answer(
            text, user: "u", password: "p", method: "POST", target: "/x?y", cnonce: "c", body: Array("hello".utf8))
        let first = Self.hash(.sha256, Array("u:r:p".utf8))
        let second = Self.hash(.sha256, Array("POST:/x?y:\(Self.hash(.sha256, Array("hello".utf8)))".utf8))
        #expect(answer["response"] == Self.hash(.sha256, Array("\(first):n:00000001:c:auth-int:\(second)".utf8)))
        let challenge = try #require(AuthenticationChallenge.parse([text]).first.flatMap { DigestChallenge($0) })
        let unknown = DigestAuthorization(challenge, user: "u", password: "p", cnonce: "c", count: 1, hash: Self.hash)
        #expect(unknown.value(method: "POST", target: Array("/".utf8), body: nil) == nil)
    }

    @Test func `quotes, names beyond ASCII, control characters`() throws {
        let answer = try answer(
            "Digest realm=\"a\\\"b\", nonce=n, qop=auth", user: "x\\\"y", password: "p", target: "/", cnonce: "c")
        #expect(answer["realm"] == "a\"b" && answer["username"] == "x\\\"y")
        let challenge = try #require(
            AuthenticationChallenge.parse(["Digest realm=r, nonce=n, qop=auth"]).first.flatMap { DigestChallenge($0) })
        let beyond = DigestAuthorization(
            challenge, user: "J\u{E4} n", password: "p", cnonce: "c", count: 1, hash: Self.hash)
        #expect(
            beyond.value(method: "GET", target: [0x2F], body: nil)?.contains("username*=UTF-8''J%C3%A4%20n,") == true)
        let evil = DigestAuthorization(
            challenge, user: "a\r\nX: y", password: "p", cnonce: "c", count: 1, hash: Self.hash)
        #expect(evil.value(method: "GET", target: [0x2F], body: nil) == nil)
    }

    @Test(arguments: [
        "Digest realm=r", "Digest nonce=n", "Digest realm=r, nonce=n, algorithm=SHA-1",
        "Digest realm=r, nonce=n, qop=\"new\"",
        "Digest realm=r, nonce=n, algorithm=MD5-sess", "Basic realm=r, nonce=n",
    ]) func `an unknown algorithm is not answered (security 66)`(text: String) {
        #expect(AuthenticationChallenge.parse([text]).first.flatMap { DigestChallenge($0) } == nil)
    }

    @Test func `an unknown parameter beside known ones is ignored`() throws {
        let challenge = try #require(
            AuthenticationChallenge.parse([
                "Digest realm=r, nonce=n, qop=\"new, AUTH\", algorithm=sha-256, "
                    + "stale=TRUE, domain=\"/a http://b/\", later=1"
            ]).first
                .flatMap { DigestChallenge($0) })
        #expect(
            challenge.protections == [.auth] && challenge.hash == .sha256 && challenge.isStale
                && challenge.domain == ["/a", "http://b/"])
    }
}
