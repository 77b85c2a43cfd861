// SPDX-License-Identifier: Apache-2.0

// In this folder: challenges as they are parsed; Basic and Digest

// WWW-Authenticate and Proxy-Authenticate (RFC 9110 §11.6.1). Commas separate both challenges and the parameters of one
// challenge, so the meaning of a comma is known only after the next word.

/// One authentication scheme that a response offers, with its parameters.
///
/// ```swift
/// let offered = AuthenticationChallenge.parse(head.headers.values(of: .wwwAuthenticate))
/// offered.first?.scheme      // "Digest"
/// offered.first?["realm"]    // "staff"
/// ```
package struct AuthenticationChallenge: Sendable, Hashable {
    /// The scheme as written; compared case-insensitively.
    package let scheme: String
    /// The token68 that replaces parameters in some schemes (RFC 9110 §11.2).
    package var token68: String?
    /// The parameters, unquoted. No name occurs twice, in any letter case.
    package var parameters: [Parameter] = []

    package struct Parameter: Sendable, Hashable {
        /// In lower case.
        package let name: String
        package let value: String
    }

    package func isOf(_ name: String) -> Bool { scheme.lowercasedASCII == name.lowercasedASCII }

    /// Returns the value of a parameter; `name` is in lower case.
    package subscript(_ name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// Limit of challenges in a message and of parameters in a challenge, beyond any server's needs; the rest is
    /// ignored.
    static let most = 32

    /// Returns all challenges of the fields, in order. A challenge that violates the grammar or repeats a parameter is
    /// skipped; if its end cannot be determined, so is the rest of its field. A realm of Basic may lack its quotes.
    package static func parse(_ values: [String]) -> [AuthenticationChallenge] {
        var found: [AuthenticationChallenge] = []
        for value in values where found.count < most {
            var reader = ChallengeReader(value)
            while found.count < most, let challenge = reader.next() {
                if let challenge = challenge.challenge { found.append(challenge) }
            }
        }
        return found
    }

    /// Parses the parameters of Authentication-Info or Proxy-Authentication-Info (RFC 9110 §11.6.3); `nil` if they
    /// violate the grammar.
    package static func information(_ value: String) -> AuthenticationChallenge? {
        var reader = ChallengeReader("Info " + value)
        return reader.next()?.challenge
    }
}

/// Reads one challenge after another from a field.
struct ChallengeReader {
    private var scanner: ParameterScanner
    private var bytes: [UInt8] { scanner.bytes }
    private var position: Int {
        get { scanner.position }
        set { scanner.position = newValue }
    }

    /// An element of the field; `challenge` is `nil` if it is unusable.
    struct Item { var challenge: AuthenticationChallenge? }

    init(_ text: String) { scanner = ParameterScanner(text) }

    /// Returns the next element; `nil` at the end, and where the rest cannot be parsed.
    mutating func next() -> Item? {
        skipCommas()
        guard position < bytes.count else { return nil }
        guard let scheme = scanner.token() else {
            position = bytes.count
            return nil
        }
        var challenge = AuthenticationChallenge(scheme: scheme)
        guard atBlank else { return atEndOfElement ? Item(challenge: challenge) : giveUp() }
        scanner.skipBlanks()
        if let text = token68() {
            challenge.token68 = text
            return Item(challenge: challenge)
        }
        var isValid = true
        while true {
            let start = position
            skipCommas()
            guard position < bytes.count, let name = scanner.token() else {
                return position < bytes.count ? giveUp() : Item(challenge: isValid ? challenge : nil)
            }
            scanner.skipBlanks()
            guard scanner.take("=") else {
                // A word without "=": if a comma precedes it, the next scheme begins here.
                guard bytes[start..<position].contains(UInt8(ascii: ",")) else { return giveUp() }
                position = start
                return Item(challenge: isValid ? challenge : nil)
            }
            scanner.skipBlanks()
            let begin = position
            var text = scanner.tokenOrQuoted()
            scanner.skipBlanks()
            if text == nil || !atEndOfElement, challenge.isOf("Basic"), name.lowercasedASCII == "realm" {
                position = begin
                text = unquotedRealm()
            }
            guard let value = text, atEndOfElement else { return giveUp() }
            let parameter = AuthenticationChallenge.Parameter(name: name.lowercasedASCII, value: value)
            if challenge[parameter.name] != nil || challenge.parameters.count == AuthenticationChallenge.most {
                isValid = false
            } else {
                challenge.parameters.append(parameter)
            }
        }
    }

    /// Reads a realm of several words without quotes, up to the comma, or one without its closing quote. Routers and
    /// cameras send both, and every browser answers them. The realm of Basic chooses a credential and is part of no
    /// answer (RFC 7617 §2); Digest computes its answer from its parameters, and is read strictly.
    private mutating func unquotedRealm() -> String? {
        let text = scanner.take("\"") ? scanner.openQuoted() : scanner.text(to: ",")
        scanner.skipBlanks()
        return text
    }

    private mutating func giveUp() -> Item {
        position = bytes.count
        return Item()
    }

    // MARK: Words

    private var atBlank: Bool { position < bytes.count && bytes[position].isBlank }
    private var atEndOfElement: Bool { position == bytes.count || bytes[position] == UInt8(ascii: ",") }

    private mutating func skipCommas() {
        while position < bytes.count, bytes[position].isBlank || bytes[position] == UInt8(ascii: ",") { position += 1 }
    }

    /// Reads a token68: letters, digits and `-._~+/`, then any number of "=", up to the end of the element. Consumes
    /// nothing if there is something else.
    private mutating func token68() -> String? {
        var end = position
        while end < bytes.count, bytes[end].isAlpha || bytes[end].isDigit || "-._~+/".utf8.contains(bytes[end]) {
            end += 1
        }
        guard end > position else { return nil }
        while end < bytes.count, bytes[end] == UInt8(ascii: "=") { end += 1 }
        let text = position..<end
        while end < bytes.count, bytes[end].isBlank { end += 1 }
        guard end == bytes.count || bytes[end] == UInt8(ascii: ",") else { return nil }
        position = end
        return String(decoding: bytes[text], as: UTF8.self)
    }
}
