// SPDX-License-Identifier: Apache-2.0

// In this folder: the messages of NTLM

// The third NTLM message, which proves knowledge of the password: NTLMv2 only (MS-NLMP §2.2.1.3, §3.3.2). The caller
// supplies hash functions, random values and the time.

/// MD4 and MD5; each returns 16 bytes.
package struct NTLMHashes: Sendable {
    package let md4: @Sendable ([UInt8]) -> [UInt8]
    package let md5: @Sendable ([UInt8]) -> [UInt8]

    package init(md4: @escaping @Sendable ([UInt8]) -> [UInt8], md5: @escaping @Sendable ([UInt8]) -> [UInt8]) {
        self.md4 = md4
        self.md5 = md5
    }

    /// Computes HMAC-MD5 (RFC 2104).
    func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        var block = key.count > 64 ? md5(key) : key
        block += [UInt8](repeating: 0, count: 64 - block.count)
        return md5(block.map { $0 ^ 0x5C } + md5(block.map { $0 ^ 0x36 } + message))
    }
}

package struct NTLMAuthenticate {
    package let user: String
    /// The user's domain; empty for a user name that includes its own, as `ada@example.org`.
    package let domain: String
    package let password: String
    package let hashes: NTLMHashes

    /// - Parameter user: `DOMAIN\user`, `DOMAIN/user`, or a user name alone.
    package init(user: String, password: String, hashes: NTLMHashes) {
        let parts = user.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == "\\" || $0 == "/" }
        self.user = String(parts.last ?? "")
        domain = parts.count == 2 ? String(parts[0]) : ""
        self.password = password
        self.hashes = hashes
    }

    /// The values that are new for each authentication.
    package struct Parameters: Sendable {
        /// Eight random bytes.
        package var nonce: [UInt8]
        /// Tenths of microseconds since 1601; used unless the server states its time.
        package var time: UInt64
        /// The service name of the intended server, such as `HTTP/example.org`.
        package var service: String?
        /// The channel binding (RFC 5929 §4): `tls-server-end-point:` and a hash of the server's certificate; empty
        /// without TLS. `nil` leaves it out.
        package var channel: [UInt8]?

        package init(nonce: [UInt8], time: UInt64, service: String? = nil, channel: [UInt8]? = nil) {
            self.nonce = nonce
            self.time = time
            self.service = service
            self.channel = channel
        }
    }

    /// Returns the message; `nil` if user, domain or the server's target information are too long.
    package func bytes(_ challenge: NTLMChallenge, _ parameters: Parameters) -> [UInt8]? {
        // Windows allows names of a few hundred characters; a far longer one is a mistake.
        guard user.utf16.count <= 4096, domain.utf16.count <= 4096 else { return nil }
        let proof = proof(challenge, parameters)
        let message = { (code: [UInt8]) -> [UInt8]? in
            var writer = NTLMWriter(type: 3, fixedCount: 88)
            for part in [proof.short, proof.long, domain.ntlmBytes, user.ntlmBytes, [], []] {
                guard writer.fields(part) else { return nil }
            }
            writer.number(NTLMFlags.offered.intersection(challenge.flags).union([.unicode, .ntlm]).rawValue)
            writer.append(NTLMNegotiate.version)
            writer.append(code)
            return writer.bytes
        }
        let none = [UInt8](repeating: 0, count: 16)
        guard let plain = message(none) else { return nil }
        guard proof.isCovered else { return plain }
        return message(hashes.hmac(proof.key, NTLMNegotiate.bytes + challenge.bytes + plain))
    }

    struct Proof {
        /// LmChallengeResponse and NtChallengeResponse.
        var short: [UInt8]
        var long: [UInt8]
        /// SessionBaseKey.
        var key: [UInt8]
        /// True if a message integrity code covers all three messages.
        var isCovered: Bool
    }

    /// The NTOWFv2 key of the password (§3.3.2).
    var passwordKey: [UInt8] {
        hashes.hmac(hashes.md4(password.ntlmBytes), (user.ntlmUppercased + domain).ntlmBytes)
    }

    /// Computes the responses (ComputeResponse, §3.3.2), with the additions of §3.1.5.1.2 to the server's target
    /// information.
    func proof(_ challenge: NTLMChallenge, _ parameters: Parameters) -> Proof {
        var target = challenge.target
        let theirs = target[NTLMTargetInformation.timestamp]
        if theirs != nil { target.set(NTLMTargetInformation.flags, UInt32(2).littleEndianBytes) }
        if let channel = parameters.channel {
            target.set(
                NTLMTargetInformation.channelBindings,
                channel.isEmpty ? [UInt8](repeating: 0, count: 16) : hashes.md5(Self.bindings(channel)))
        }
        if let service = parameters.service { target.set(NTLMTargetInformation.targetName, service.ntlmBytes) }
        let time = theirs ?? parameters.time.littleEndianBytes
        let none = [UInt8](repeating: 0, count: 4)
        let key = passwordKey
        let temporary = [1, 1, 0, 0] + none + time + parameters.nonce + none + target.bytes + none
        let code = hashes.hmac(key, challenge.nonce + temporary)
        // §3.1.5.1.2: zeros replace the LM response if the server states its time.
        let short =
            theirs == nil
            ? hashes.hmac(key, challenge.nonce + parameters.nonce) + parameters.nonce
            : [UInt8](repeating: 0, count: 24)
        return Proof(short: short, long: code + temporary, key: hashes.hmac(key, code), isCovered: theirs != nil)
    }

    /// Returns the channel bindings structure of RFC 2744 §3.11 without addresses, which is then hashed.
    private static func bindings(_ data: [UInt8]) -> [UInt8] {
        [UInt8](repeating: 0, count: 16) + UInt32(truncatingIfNeeded: data.count).littleEndianBytes + data
    }
}
