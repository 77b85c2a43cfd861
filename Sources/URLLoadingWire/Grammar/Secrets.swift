// SPDX-License-Identifier: Apache-2.0

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
    private static let fields: Set<String> = ["dpop", "signature"]

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
        var place = TextPlace.outside
        var start = startIndex
        while true {
            let end = self[start...].firstIndex(where: Self.endsParameter) ?? endIndex
            let piece = self[start..<end]
            let separator = start > startIndex ? self[start - 1] : nil
            if !place.isValue(piece, behind: separator) {
                if let separator { result.append(separator) }
                place.pass(separator)
                if place == .parameters, Self.isSecretParameter(piece, depth) {
                    result += piece.prefix { $0 != UInt8(ascii: "=") } + Array("=\(Secrets.mark)".utf8)
                    place = .hiddenValue
                } else {
                    result += piece
                }
            }
            guard end < endIndex else { return result }
            start = end + 1
        }
    }

    /// The position of a piece between two separators in a text with URLs.
    private enum TextPlace {
        case outside
        /// In a query or a fragment.
        case parameters
        /// In a query or a fragment, directly after a parameter with a hidden value.
        case hiddenValue

        /// Whether a piece belongs to the hidden value before it. `?` and `;` may be part of a value (RFC 3986 §3.4):
        /// a piece that follows one of them without a parameter name belongs to the value.
        func isValue(_ piece: ArraySlice<UInt8>, behind separator: UInt8?) -> Bool {
            guard self == .hiddenValue, separator == UInt8(ascii: "?") || separator == UInt8(ascii: ";") else {
                return false
            }
            return !piece.contains(UInt8(ascii: "="))
        }

        mutating func pass(_ separator: UInt8?) {
            switch separator {
            case UInt8(ascii: "?"), UInt8(ascii: "#"): self = .parameters
            case UInt8(ascii: "&"), UInt8(ascii: ";"): if self == .hiddenValue { self = .parameters }
            default: self = .outside
            }
        }
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

    /// Whether the value of `name=value` must be hidden.
    private static func isSecretParameter(_ text: ArraySlice<UInt8>, _ depth: Int) -> Bool {
        guard let equals = text.firstIndex(of: UInt8(ascii: "=")), equals + 1 < text.endIndex else { return false }
        let name = String(decoding: text[..<equals], as: UTF8.self)
        return Secrets.hidesParameter(name) || hasSecretURL(text[(equals + 1)...], depth)
    }

    /// Returns whether a percent-encoded value contains a URL, or another value, with a secret.
    private static func hasSecretURL(_ value: ArraySlice<UInt8>, _ depth: Int) -> Bool {
        guard depth > 0, value.contains(UInt8(ascii: "%")), let decoded = PercentCoding.decode(value) else {
            return false
        }
        return decoded.withoutUserinfo.hidingParameters(depth: depth - 1) != decoded
    }
}
