// The third message, the proof that the password is known: NTLMv2 and nothing older (MS-NLMP §2.2.1.3, §3.3.2). What
// hashes, what is random and what time it is comes from outside.

/// MD4 and MD5, as 16 bytes each.
package struct NTLMHashes: Sendable {
    package let md4: @Sendable ([UInt8]) -> [UInt8]
    package let md5: @Sendable ([UInt8]) -> [UInt8]

    package init(md4: @escaping @Sendable ([UInt8]) -> [UInt8], md5: @escaping @Sendable ([UInt8]) -> [UInt8]) {
        self.md4 = md4
        self.md5 = md5
    }

    /// HMAC-MD5 (RFC 2104).
    func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        var block = key.count > 64 ? md5(key) : key
        block += [UInt8](repeating: 0, count: 64 - block.count)
        return md5(block.map { $0 ^ 0x5C } + md5(block.map { $0 ^ 0x36 } + message))
    }
}

package struct NTLMAuthenticate {
    package let user: String
    /// Empty for a user who says his own, as `ada@example.org`.
    package let domain: String
    package let password: String
    package let hashes: NTLMHashes

    /// - Parameter user: `DOMAIN\user`, `DOMAIN/user`, or a user alone.
    package init(user: String, password: String, hashes: NTLMHashes) {
        let parts = user.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == "\\" || $0 == "/" }
        self.user = String(parts.last ?? "")
        domain = parts.count == 2 ? String(parts[0]) : ""
        self.password = password
        self.hashes = hashes
    }

    /// What is new for each proof.
    package struct Circumstances: Sendable {
        /// Eight random bytes.
        package var nonce: [UInt8]
        /// Tenths of microseconds since 1601; where the server says his time, that counts.
        package var time: UInt64
        /// Who we think that we speak to, such as `HTTP/example.org`.
        package var service: String?
        /// RFC 5929 §4: `tls-server-end-point:` and a hash of the server's certificate; empty without TLS. `nil` says nothing.
        package var channel: [UInt8]?

        package init(nonce: [UInt8], time: UInt64, service: String? = nil, channel: [UInt8]? = nil) {
            self.nonce = nonce
            self.time = time
            self.service = service
            self.channel = channel
        }
    }

    /// The message; `nil` if user, domain or what the server says are too long for it.
    package func bytes(_ challenge: NTLMChallenge, _ circumstances: Circumstances) -> [UInt8]? {
        // Names may have a few hundred characters in Windows; what is far longer is a mistake.
        guard user.utf16.count <= 4096, domain.utf16.count <= 4096 else { return nil }
        let proof = proof(challenge, circumstances)
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
        /// All three messages are covered by a code.
        var isCovered: Bool
    }

    /// §3.3.2: NTOWFv2.
    var passwordKey: [UInt8] {
        hashes.hmac(hashes.md4(password.ntlmBytes), (user.ntlmUppercased + domain).ntlmBytes)
    }

    /// §3.3.2: ComputeResponse, with what §3.1.5.1.2 adds to what the server says.
    func proof(_ challenge: NTLMChallenge, _ circumstances: Circumstances) -> Proof {
        var target = challenge.target
        let theirs = target[NTLMTargetInformation.timestamp]
        if theirs != nil { target.set(NTLMTargetInformation.flags, UInt32(2).littleEndianBytes) }
        if let channel = circumstances.channel {
            target.set(
                NTLMTargetInformation.channelBindings,
                channel.isEmpty ? [UInt8](repeating: 0, count: 16) : hashes.md5(Self.bindings(channel)))
        }
        if let service = circumstances.service { target.set(NTLMTargetInformation.targetName, service.ntlmBytes) }
        let time = theirs ?? circumstances.time.littleEndianBytes
        let none = [UInt8](repeating: 0, count: 4)
        let key = passwordKey
        let temporary = [1, 1, 0, 0] + none + time + circumstances.nonce + none + target.bytes + none
        let code = hashes.hmac(key, challenge.nonce + temporary)
        // §3.1.5.1.2: nothing in its place where the server says his time.
        let short =
            theirs == nil
            ? hashes.hmac(key, challenge.nonce + circumstances.nonce) + circumstances.nonce
            : [UInt8](repeating: 0, count: 24)
        return Proof(short: short, long: code + temporary, key: hashes.hmac(key, code), isCovered: theirs != nil)
    }

    /// RFC 2744 §3.11, with no addresses: what is hashed of a channel.
    private static func bindings(_ data: [UInt8]) -> [UInt8] {
        [UInt8](repeating: 0, count: 16) + UInt32(truncatingIfNeeded: data.count).littleEndianBytes + data
    }
}
