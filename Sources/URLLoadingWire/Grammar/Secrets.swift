// Defines what counts as a secret in traces, logs, archives, recordings, descriptions, errors and command-line
// messages. The lists exist only here; docs/guides/metrics.md repeats them.
//
// Names decide, because values do not reveal what they are: a field, or a parameter of a query or fragment, is secret
// if its lower-case name is in a list or contains one of the listed parts. Paths and bodies are never examined.

package enum Secrets {
    /// The text that replaces a secret value.
    package static let mark = "(removed)"

    /// Parts of field names.
    private static let fieldParts = [
        "authorization", "authentication-info", "proxy-auth", "cookie", "token", "secret", "password", "passwd",
        "session", "jwt",
        "x-auth", "api-key", "apikey", "access-key", "auth-key", "subscription-key",
    ]
    private static let fields: Set<String> = ["dpop"]

    /// Parts of parameter names.
    private static let parameterParts = [
        "token", "secret", "password", "passwd", "passphrase", "signature", "credential", "session", "jwt", "assertion",
        "authorization", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key", "samlresponse",
        "samlrequest",
    ]
    private static let parameters: Set<String> = [
        "key", "code", "sig", "auth", "pass", "pwd", "pw", "sid", "ticket", "otp", "pin",
    ]

    static func hidesField(_ name: String) -> Bool {
        let name = name.lowercased()
        return fields.contains(name) || fieldParts.contains { name.contains($0) }
    }

    /// - Parameter name: the name as it appears in a URL, percent-encoded or not.
    package static func hidesParameter(_ name: some StringProtocol) -> Bool {
        let name = FormCoding.decoded(name).lowercased()
        return parameters.contains(name) || parameterParts.contains { name.contains($0) }
    }

    /// Returns a text that may contain URLs, without their userinfo and the values of their secret parameters.
    package static func hidden(in text: String) -> String {
        return String(decoding: Array(text.utf8).withoutSecrets, as: UTF8.self)
    }

    /// Returns the text of one valid or invalid URL without userinfo and the values of secret parameters. Where the
    /// grammar does not tell where a password ends, everything before the last "@" is removed.
    package static func hidden(inURL text: String) -> String {
        guard (try? URIReference(text)) == nil, let at = text.lastIndex(of: "@") else { return hidden(in: text) }
        let start = text[..<at].firstRange(of: "//")?.upperBound ?? text.startIndex
        return hidden(in: String(text[..<start]) + String(text[text.index(after: at)...]))
    }
}

extension [UInt8] {
    /// The bytes without the userinfo and secret parameter values of every URL in them.
    package var withoutSecrets: [UInt8] { withoutUserinfo.hidingParameters(depth: 2) }

    /// - Parameter depth: how many times a value is decoded to search it for URLs.
    private func hidingParameters(depth: Int) -> [UInt8] {
        guard contains(UInt8(ascii: "=")) else { return self }
        var result: [UInt8] = []
        result.reserveCapacity(count)
        var rest = self[...]
        var isInQuery = false
        while let end = rest.firstIndex(where: { Self.endsParameter($0) }) {
            if isInQuery {
                let shown = Self.shownParameter(rest[..<end], depth)
                result += shown
                // `?` and `;` may be part of a value (RFC 3986 §3.4): pieces after them that have no name are hidden
                // with it.
                if !shown.elementsEqual(rest[..<end]) {
                    rest = Self.behindTail(of: rest[end...])
                    if rest.isEmpty { return result }
                    result.append(rest[rest.startIndex])
                    Self.separate(rest[rest.startIndex], &isInQuery)
                    rest = rest.dropFirst()
                    continue
                }
            } else {
                result += rest[..<end]
            }
            result.append(rest[end])
            Self.separate(rest[end], &isInQuery)
            rest = rest[(end + 1)...]
        }
        return result + (isInQuery ? Self.shownParameter(rest, depth) : rest)
    }

    private static func separate(_ byte: UInt8, _ isInQuery: inout Bool) {
        switch byte {
        case UInt8(ascii: "?"), UInt8(ascii: "#"): isInQuery = true
        case UInt8(ascii: "&"), UInt8(ascii: ";"): break
        default: isInQuery = false
        }
    }

    /// Skips the rest of a hidden value: pieces after `?` and `;` that name no parameter of their own belong to it.
    private static func behindTail(of text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = text
        while let separator = rest.first, separator == UInt8(ascii: "?") || separator == UInt8(ascii: ";") {
            let piece = rest.dropFirst().prefix { !endsParameter($0) }
            guard !piece.contains(UInt8(ascii: "=")) else { return rest }
            rest = rest[piece.endIndex...]
        }
        return rest
    }

    private static func endsParameter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "&"), UInt8(ascii: ";"), UInt8(ascii: "\""),
            UInt8(ascii: "<"),
            UInt8(ascii: ">"), 0...0x20:
            true
        default: false
        }
    }

    private static func shownParameter(_ text: ArraySlice<UInt8>, _ depth: Int) -> ArraySlice<UInt8> {
        guard let equals = text.firstIndex(of: UInt8(ascii: "=")), equals + 1 < text.endIndex else { return text }
        let name = String(decoding: text[..<equals], as: UTF8.self)
        guard Secrets.hidesParameter(name) || hasSecretURL(text[(equals + 1)...], depth) else { return text }
        return text[...equals] + Array(Secrets.mark.utf8)
    }

    /// Returns whether a percent-encoded value contains a URL, or another value, with a secret.
    private static func hasSecretURL(_ value: ArraySlice<UInt8>, _ depth: Int) -> Bool {
        guard depth > 0, value.contains(UInt8(ascii: "%")), let decoded = PercentCoding.decode(value) else {
            return false
        }
        return decoded.withoutUserinfo.hidingParameters(depth: depth - 1) != decoded
    }
}
