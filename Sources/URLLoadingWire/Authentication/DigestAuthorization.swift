// The answer to a challenge of Digest (RFC 7616 §3.4). What hashes and what is random comes from outside.

package struct DigestAuthorization: Sendable {
    package let challenge: DigestChallenge
    package let user: String
    package let password: String
    /// Random, and new for every request; with `-sess` for every nonce.
    package let cnonce: String
    /// How often this nonce was used, this time included.
    package let count: UInt32
    /// The digits of a hash, in lower case.
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

    /// The value of Authorization or Proxy-Authorization.
    /// - Parameters:
    ///   - target: the request target as it is sent (§3.4.3, `uri`).
    ///   - body: of the request; `nil` if it is not known before it is sent.
    /// - Returns: `nil` if the server wants the body proved and it is not known, or if user or password hold control
    ///   characters.
    package func value(method: String, target: [UInt8], body: [UInt8]?) -> String? {
        value(method: method, target: target, bodyHash: body.map { hash(challenge.hash, $0) })
    }

    /// The same.
    /// - Parameter bodyHash: digits, of the body by the challenge's hash; `nil` if it is not known before it is sent.
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

    /// §3.4.1: with a quality of protection, and without (RFC 2069).
    private func response(
        _ method: String, _ target: [UInt8], _ bodyHash: String?, _ protection: DigestChallenge.Protection?
    ) -> String {
        var second = Array(method.utf8) + [UInt8(ascii: ":")] + target
        if protection == .integrity { second += Array(":\(bodyHash ?? "")".utf8) }
        let secondHash = hashed(second)
        guard let protection else { return hashed("\(firstHash):\(challenge.nonce):\(secondHash)") }
        return hashed("\(firstHash):\(challenge.nonce):\(digits):\(cnonce):\(protection.rawValue):\(secondHash)")
    }

    /// Whether what a server says of itself with its answer is about the body too, which is not here yet (§3.5).
    package func coversBody(_ information: AuthenticationChallenge) -> Bool {
        guard information["rspauth"] != nil else { return false }
        return protection(said: information) == .integrity
    }

    /// Whether a server that says something of itself with its answer knows the password too (§3.5).
    /// - Parameters:
    ///   - information: of Authentication-Info.
    ///   - target: of the request that carried this authorization.
    ///   - bodyHash: digits, of the answer's body as it came; `nil` where it is not covered.
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

    /// Without a word of its own it is that of the request.
    private func protection(said information: AuthenticationChallenge) -> DigestChallenge.Protection? {
        if let word = information["qop"] { return DigestChallenge.Protection(rawValue: word.lowercasedASCII) }
        return challenge.protections.isEmpty ? nil : challenge.protections.contains(.auth) ? .auth : .integrity
    }

    /// §3.4.2.
    private var firstHash: String {
        let plain = hashed("\(user):\(challenge.realm):\(password)")
        return challenge.isSession ? hashed("\(plain):\(challenge.nonce):\(cnonce)") : plain
    }

    /// §3.4.4; a name beyond ASCII goes in the form of RFC 8187 (§3.4).
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

    /// RFC 9110 §5.6.4.
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "\""
    }
}
