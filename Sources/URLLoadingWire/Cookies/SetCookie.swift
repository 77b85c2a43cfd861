// SPDX-License-Identifier: Apache-2.0

// Parses Set-Cookie as leniently as servers write it (RFC 6265bis §5.6). The cookie store applies the result.

/// ```swift
/// let set = SetCookie(Array("id=1; Path=/; Secure".utf8), now: 0)
/// set?.name       // "id"
/// set?.isSecure   // true
/// ```
package struct SetCookie: Sendable, Hashable {
    package var name: String
    package var value: String
    /// The Domain attribute in lower case, without a leading dot; empty if it is absent or cannot be a domain.
    package var domain = ""
    /// The Path attribute; `nil` for the default path.
    package var path: String?
    /// Seconds since 1970, at most 400 days from now; `nil` for a session cookie.
    package var expires: Int64?
    package var isSecure = false
    package var isHTTPOnly = false
    /// `nil` if the attribute is absent or unknown.
    package var sameSite: SameSite?

    package enum SameSite: Sendable, Hashable {
        case strict, lax, none
    }

    /// Limits in bytes of name and value together (§5.6 step 5), and of an attribute's value (step 6 of the
    /// attributes).
    package static let maximumBytes = 4096
    package static let maximumAttributeBytes = 1024
    /// The longest lifetime of a cookie in seconds (§5.5).
    package static let longestLife: Int64 = 400 * 86400

    /// Parses a field; `nil` if it must be ignored.
    /// - Parameter now: seconds since 1970.
    package init?(_ field: some Collection<UInt8>, now: Int64) {
        let field = Array(field)
        // Step 1: a control character other than HTAB invalidates the whole field.
        guard !field.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) else { return nil }
        var parts = field.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
        guard let pair = parts.popFirst() else { return nil }
        // A field without "=" is the value of a nameless cookie.
        let (name, value) = Self.splitAtEquals(pair) ?? ([], Self.trimmed(pair))
        guard !(name.isEmpty && value.isEmpty), name.count + value.count <= Self.maximumBytes else { return nil }
        self.name = Self.text(name)
        self.value = Self.text(value)
        var age: Int64?
        for part in parts {
            let (key, value) = Self.splitAtEquals(part) ?? (Self.trimmed(part), [])
            guard value.count <= Self.maximumAttributeBytes else { continue }
            take(key, value, &age, now)
        }
        // Max-Age takes precedence over Expires, in any order (§5.7 step 6).
        if let age { expires = age }
    }

    private mutating func take(_ key: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>, _ age: inout Int64?, _ now: Int64)
    {
        switch Self.text(key).lowercasedASCII {
        case "expires":
            if let date = CookieDate.parse(value) {
                expires = min(date, now.addingReportingOverflow(Self.longestLife).partialValue)
            }
        case "max-age":
            if let seconds = Self.seconds(value) { age = seconds <= 0 ? .min : now + min(seconds, Self.longestLife) }
        case "domain":
            domain = Self.text(value.first == UInt8(ascii: ".") ? value.dropFirst() : value).lowercasedASCII
        case "path": path = value.first == UInt8(ascii: "/") ? Self.text(value) : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "samesite":
            sameSite =
                switch Self.text(value).lowercasedASCII {
                case "strict": .strict
                case "lax": .lax
                case "none": SameSite.none
                default: nil
                }
        default: break
        }
    }

    /// Parses Max-Age; `nil` if it is not a number. A number too large to represent counts as the largest one (§5.6.2).
    private static func seconds(_ text: ArraySlice<UInt8>) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = isNegative ? text.dropFirst() : text
        guard !text.isEmpty, digits.allSatisfy(\.isDigit) else { return nil }
        return isNegative ? 0 : Int64(strictDigits: digits) ?? .max
    }

    private static func splitAtEquals(_ text: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, ArraySlice<UInt8>)? {
        guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        return (trimmed(text[..<equals]), trimmed(text[(equals + 1)...]))
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let start = text.drop { $0.isBlank }
        return start.prefix(upTo: (start.lastIndex { !$0.isBlank } ?? start.startIndex - 1) + 1)
    }

    /// Decodes as `Headers` does: UTF-8 if valid, Latin-1 otherwise.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.withUnsafeBytes { $0.text(0..<$0.count) }
    }
}
