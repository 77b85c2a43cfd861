// WWW-Authenticate and Proxy-Authenticate: RFC 9110 §11.6.1. Commas part challenges as well as the parameters of one,
// so what a comma means is known only after the next word.

/// One way to authenticate that a response offers.
///
/// ```swift
/// let offered = AuthenticationChallenge.parse(head.headers.values(of: .wwwAuthenticate))
/// offered.first?.scheme      // "Digest"
/// offered.first?["realm"]    // "staff"
/// ```
package struct AuthenticationChallenge: Sendable, Hashable {
    /// As it was written; compared without regard to case.
    package let scheme: String
    /// What stands in place of parameters (RFC 9110 §11.2).
    package var token68: String?
    /// Unquoted. No name occurs twice, whatever its case.
    package var parameters: [Parameter] = []

    package struct Parameter: Sendable, Hashable {
        /// In lower case.
        package let name: String
        package let value: String
    }

    package init(scheme: String, token68: String? = nil, parameters: [Parameter] = []) {
        self.scheme = scheme
        self.token68 = token68
        self.parameters = parameters
    }

    package func isOf(_ name: String) -> Bool { scheme.lowercasedASCII == name.lowercasedASCII }

    /// The value of a parameter; its name in lower case.
    package subscript(_ name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// More challenges, or parameters of one, than any server has a use for: the rest is not looked at.
    static let most = 32

    /// All that the fields offer, in their order. A challenge that breaks the grammar, or says a thing twice, is left
    /// out, and what follows it in the same field too if its end cannot be told.
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

    /// The parameters of Authentication-Info and Proxy-Authentication-Info (RFC 9110 §11.6.3); `nil` if they break
    /// the grammar.
    package static func information(_ value: String) -> AuthenticationChallenge? {
        var reader = ChallengeReader("Info " + value)
        return reader.next()?.challenge
    }
}

/// Reads one challenge after the other.
struct ChallengeReader {
    private var scanner: ParameterScanner
    private var bytes: [UInt8] { scanner.bytes }
    private var position: Int {
        get { scanner.position }
        set { scanner.position = newValue }
    }

    /// One that cannot be used has no value.
    struct Item { var challenge: AuthenticationChallenge? }

    init(_ text: String) { scanner = ParameterScanner(text) }

    /// `nil` at the end, and where nothing more can be told apart.
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
        var isSound = true
        while true {
            let start = position
            skipCommas()
            guard position < bytes.count, let name = scanner.token() else {
                return position < bytes.count ? giveUp() : Item(challenge: isSound ? challenge : nil)
            }
            scanner.skipBlanks()
            guard scanner.take("=") else {
                // A word without "=": the next scheme begins, if a comma was before it.
                guard bytes[start..<position].contains(UInt8(ascii: ",")) else { return giveUp() }
                position = start
                return Item(challenge: isSound ? challenge : nil)
            }
            scanner.skipBlanks()
            guard let value = scanner.tokenOrQuoted() else { return giveUp() }
            let parameter = AuthenticationChallenge.Parameter(name: name.lowercasedASCII, value: value)
            if challenge[parameter.name] != nil || challenge.parameters.count == AuthenticationChallenge.most {
                isSound = false
            } else {
                challenge.parameters.append(parameter)
            }
            scanner.skipBlanks()
            guard position == bytes.count || bytes[position] == UInt8(ascii: ",") else { return giveUp() }
        }
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

    /// Letters, digits, `-._~+/`, then any number of "=", then the end of the element; nothing is taken if it is
    /// something else.
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
