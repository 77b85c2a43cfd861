// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO

@testable import URLLoadingWire

/// MS-NLMP §4.2.4, and what must be refused: security 64.
@Suite struct NTLMVectorTests {
    static func bytes(_ text: String) -> [UInt8] {
        let digits = text.filter { !$0.isWhitespace }
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(digits.dropFirst($0).prefix(2), radix: 16) }
    }

    /// §4.2.4.3.
    static let challenge = bytes(
        """
        4e544c4d53535000 02000000 0c000c0038000000 33828ae2 0123456789abcdef 0000000000000000
        2400240044000000 060070170000000f
        530065007200760065007200
        02000c0044006f006d00610069006e00 01000c00530065007200760065007200 00000000
        """)

    static func hashes() throws -> NTLMHashes {
        let digest = try #require(LegacyDigest.shared)
        return NTLMHashes(md4: { digest.md4($0) }, md5: { digest.md5($0) })
    }

    @Test("the digests are those of the published vectors") func hashing() throws {
        // RFC 1320 §A.5, RFC 1321 §A.5, RFC 2202 §2.
        let hashes = try Self.hashes()
        #expect(hashes.md4(Array("abc".utf8)) == Self.bytes("a448017aaf21d8525fc10ae87aa6729d"))
        #expect(hashes.md5(Array("abc".utf8)) == Self.bytes("900150983cd24fb0d6963f7d28e17f72"))
        #expect(
            hashes.hmac(Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
                == Self.bytes("750c783e6ab0b503eaa86e310a5db738"))
        #expect(
            hashes.hmac(
                [UInt8](repeating: 0xAA, count: 80),
                Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8))
                == Self.bytes("6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"))
        #expect(LegacyDigest(provider: "nothing-of-this-name") == nil)
    }

    @Test("an NTLMv2 response is that of the published vector") func version2() throws {
        let challenge = try #require(NTLMChallenge(Self.challenge))
        let talk = NTLMAuthenticate(user: "Domain\\User", password: "Password", hashes: try Self.hashes())
        #expect(talk.user == "User" && talk.domain == "Domain")
        #expect(talk.passwordKey == Self.bytes("0c868a403bfd7a93a3001ef22ef02e3f"))
        let proof = talk.proof(challenge, .init(nonce: [UInt8](repeating: 0xAA, count: 8), time: 0))
        #expect(proof.short == Self.bytes("86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa"))
        #expect(proof.long.prefix(16) == Self.bytes("68cd0ab851e51c96aabc927bebef6a1c")[...])
        #expect(proof.key == Self.bytes("8de40ccadbc14a82f15cb0ad0de95ca3"))
        #expect(!proof.isCovered)
    }

    @Test func `a server that states the time gets a code over all messages`() throws {
        // The same, and a timestamp in front.
        let information = Self.bytes(
            "0700080000010203040506070 2000c0044006f006d00610069006e00 00000000".replacing(" ", with: ""))
        let message =
            Array(Self.challenge[..<40])
            + Self.bytes("\(Self.hex(UInt8(information.count)))00\(Self.hex(UInt8(information.count)))0044000000")
            + Array(Self.challenge[48..<68]) + information
        let challenge = try #require(NTLMChallenge(message))
        let hashes = try Self.hashes()
        let talk = NTLMAuthenticate(user: "ada@example.org", password: "pässword", hashes: hashes)
        #expect(talk.user == "ada@example.org" && talk.domain.isEmpty)
        let said = try #require(
            talk.bytes(challenge, .init(nonce: [1, 2, 3, 4, 5, 6, 7, 8], time: 9, service: "HTTP/a.test", channel: [])))
        let reader = NTLMReader(bytes: said)
        #expect(
            reader.number32(at: 8) == 3 && reader.payload(12) == [UInt8](repeating: 0, count: 24)
                && reader.payload(36) == "ada@example.org".ntlmBytes)
        let long = try #require(reader.payload(20))
        let target = try #require(NTLMTargetInformation(Array(long.dropFirst(16 + 28).dropLast(4))))
        #expect(
            target[6] == [2, 0, 0, 0] && target[9] == "HTTP/a.test".ntlmBytes
                && target[10] == [UInt8](repeating: 0, count: 16))
        // The server's time, not ours.
        #expect(Array(long[24..<32]) == Self.bytes("0001020304050607"))
        let key = hashes.hmac(talk.passwordKey, Array(long.prefix(16)))
        let blank = Array(said[..<72]) + [UInt8](repeating: 0, count: 16) + said[88...]
        #expect(reader.slice(72, 16) == hashes.hmac(key, NTLMNegotiate.bytes + message + blank))
    }

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

    @Test
    func `lengths and offsets that lead out of the message, cut at every byte, flipped at every bit (security 64)`()
        throws
    {
        let talk = NTLMAuthenticate(user: "u", password: "p", hashes: try Self.hashes())
        for count in 0..<Self.challenge.count {
            guard let challenge = NTLMChallenge(Array(Self.challenge[..<count])) else { continue }
            _ = talk.bytes(challenge, .init(nonce: [], time: 0))
        }
        for place in Self.challenge.indices {
            for bit in 0..<8 {
                var bytes = Self.challenge
                bytes[place] ^= 1 << bit
                if let challenge = NTLMChallenge(bytes) { _ = talk.bytes(challenge, .init(nonce: [], time: 0)) }
            }
        }
        // CVE-2018-16890: an offset at the end of what a number can say.
        for text in ["ffff ffff f0ffffff", "2400 2400 ffffffff", "2500 2500 44000000"] {
            #expect(
                NTLMChallenge(Array(Self.challenge[..<40]) + Self.bytes(text) + Array(Self.challenge[48...])) == nil)
        }
        #expect(NTLMChallenge([]) == nil && NTLMChallenge(NTLMNegotiate.bytes) == nil)
        var plain = Self.challenge
        plain[20] = 0x32
        #expect(NTLMChallenge(plain) == nil)
        // Without what it says of itself, as the oldest.
        #expect(NTLMChallenge(Array(Self.challenge[..<32]) + Self.challenge[68...]) == nil)
    }

    @Test func `names too long to be encoded are refused (security 64)`() throws {
        let challenge = try #require(NTLMChallenge(Self.challenge))
        let hashes = try Self.hashes()
        for user in [String(repeating: "u", count: 5000), String(repeating: "d", count: 70_000) + "\\u"] {
            #expect(
                NTLMAuthenticate(user: user, password: "p", hashes: hashes).bytes(challenge, .init(nonce: [], time: 0))
                    == nil)
        }
        #expect("straße ǆ".ntlmUppercased == "STRAßE Ǆ")
    }

    @Test("base64 is decoded strictly") func base64() {
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
        for text in ["A", "AA", "AAA", "A===", "====", "AA=A", "AAA*", "AAAA====", "=AAA"] {
            #expect(Base64.decode(text) == nil, "\(text)")
        }
        #expect(Base64.decode("") == [])
    }
}
