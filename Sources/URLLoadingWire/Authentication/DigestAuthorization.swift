// SPDX-License-Identifier: Apache-2.0

// The response to a Digest challenge (RFC 7616 §3.4). The caller supplies the hash function and the random values.

package struct DigestAuthorization: Sendable {
    package let challenge: DigestChallenge
    package let user: String
    package let password: String
    /// A random value, new for each request; with a `-sess` algorithm, new for each nonce.
    package let cnonce: String
    /// The number of uses of this nonce, including this one.
    package let count: UInt32
    /// Computes a hash in lower-case hexadecimal digits.
    package let hash: @Sendable (DigestChallenge.Hash, [UInt8]) -> String

    package init(
        _ challenge: DigestChallenge, user: String, password: String, cnonce: String, count: UInt32,
        hash: @escaping @Sendable (DigestChallenge.Hash, [UInt8]) -> String
    ) {
        self.challenge = challenge
        self.user = user
        self.password = password
        self.cnonce = cnonce
        self.count = count
        self.hash = hash
    }

    /// Returns the value of Authorization or Proxy-Authorization.
    /// - Parameters:
    ///   - target: the request target as sent (§3.4.3, `uri`).
    ///   - body: the request's body; `nil` if it is not known before it is sent.
    /// - Returns: `nil` if the server requires the body to be covered and it is not known, or if user or password
    ///   contain control characters.
    package func value(method: String, target: [UInt8], body: [UInt8]?) -> String? {
        value(method: method, target: target, bodyHash: body.map { hash(challenge.hash, $0) })
    }

    /// Returns the value of Authorization or Proxy-Authorization, given a hash of the body.
    /// - Parameter bodyHash: the body's hash by the challenge's algorithm, in hexadecimal digits; `nil` if it is not
    ///   known before the body is sent.
    package func value(method: String, target: [UInt8], bodyHash: String?) -> String? {
        guard !(user + password).utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        let protection: DigestChallenge.Protection?
        if challenge.protections.isEmpty {
            protection = nil
        } else if challenge.protections.contains(.auth) {
            protection = .auth
        } else if bodyHash != nil {
            protection = .integrity
        } else {
            return nil
        }
        var parts = [userPart, "realm=\(Self.quoted(challenge.realm))", "nonce=\(Self.quoted(challenge.nonce))"]
        parts.append("uri=\(Self.quoted(String(decoding: target, as: UTF8.self)))")
        parts.append("response=\"\(response(method, target, bodyHash, protection))\"")
        if challenge.hash != .md5 || challenge.isSession {
            parts.append("algorithm=\(challenge.hash.rawValue)\(challenge.isSession ? "-sess" : "")")
        } else {
            parts.append("algorithm=MD5")
        }
        if let protection { parts.append("qop=\(protection.rawValue), nc=\(digits), cnonce=\(Self.quoted(cnonce))") }
        if let opaque = challenge.opaque { parts.append("opaque=\(Self.quoted(opaque))") }
        if challenge.hashesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    /// Computes `response` (§3.4.1), or its RFC 2069 form without a quality of protection.
    private func response(
        _ method: String, _ target: [UInt8], _ bodyHash: String?, _ protection: DigestChallenge.Protection?
    ) -> String {
        var second = Array(method.utf8) + [UInt8(ascii: ":")] + target
        if protection == .integrity { second += Array(":\(bodyHash ?? "")".utf8) }
        let secondHash = hashed(second)
        guard let protection else { return hashed("\(firstHash):\(challenge.nonce):\(secondHash)") }
        return hashed("\(firstHash):\(challenge.nonce):\(digits):\(cnonce):\(protection.rawValue):\(secondHash)")
    }

    /// Returns whether the server's Authentication-Info also covers the response body, which has not arrived yet
    /// (§3.5).
    package func coversBody(_ information: AuthenticationChallenge) -> Bool {
        guard information["rspauth"] != nil else { return false }
        return protection(said: information) == .integrity
    }

    /// Returns whether the server has proved with Authentication-Info that it knows the password (§3.5).
    /// - Parameters:
    ///   - information: the parameters of Authentication-Info.
    ///   - target: the target of the request that carried this authorization.
    ///   - bodyHash: the hash of the response body as received, in hexadecimal digits; `nil` where the body is not
    ///     covered.
    package func isProved(by information: AuthenticationChallenge, target: [UInt8], bodyHash: String?) -> Bool {
        guard let proof = information["rspauth"] else { return true }
        if let theirs = information["cnonce"], theirs != cnonce { return false }
        if let theirs = information["nc"], theirs != digits { return false }
        guard let word = information["qop"], DigestChallenge.Protection(rawValue: word.lowercasedASCII) == nil else {
            return response("", target, bodyHash, protection(said: information)).lowercasedASCII
                == proof.lowercasedASCII
        }
        return false
    }

    /// Returns the quality of protection that the server states, by default that of the request.
    private func protection(said information: AuthenticationChallenge) -> DigestChallenge.Protection? {
        if let word = information["qop"] { return DigestChallenge.Protection(rawValue: word.lowercasedASCII) }
        return challenge.protections.isEmpty ? nil : challenge.protections.contains(.auth) ? .auth : .integrity
    }

    /// The hash of A1 (§3.4.2).
    private var firstHash: String {
        let plain = hashed("\(user):\(challenge.realm):\(password)")
        return challenge.isSession ? hashed("\(plain):\(challenge.nonce):\(cnonce)") : plain
    }

    /// The user name parameter (§3.4.4). A name beyond ASCII is sent in the form of RFC 8187 (§3.4).
    private var userPart: String {
        if challenge.hashesUser { return "username=\"\(hashed("\(user):\(challenge.realm)"))\"" }
        guard user.utf8.contains(where: { $0 >= 0x80 }) else { return "username=\(Self.quoted(user))" }
        var encoded: [UInt8] = []
        for byte in user.utf8 {
            let isPlain = byte.isAlpha || byte.isDigit || "!#$&+-.^_`|~".utf8.contains(byte)
            if isPlain { encoded.append(byte) } else { PercentCoding.append(byte, to: &encoded) }
        }
        return "username*=UTF-8''\(String(decoding: encoded, as: UTF8.self))"
    }

    private var digits: String {
        let text = String(count, radix: 16)
        return String(repeating: "0", count: 8 - text.count) + text
    }

    private func hashed(_ text: String) -> String { hashed(Array(text.utf8)) }
    private func hashed(_ bytes: [UInt8]) -> String { hash(challenge.hash, bytes) }

    /// Quotes a string (RFC 9110 §5.6.4).
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "\""
    }
}
