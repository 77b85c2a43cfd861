// What a Set-Cookie field says, read as leniently as servers write it (RFC 6265bis §5.6). What it means is for the store.

/// ```swift
/// let set = SetCookie(Array("id=1; Path=/; Secure".utf8), now: 0)
/// set?.name       // "id"
/// set?.isSecure   // true
/// ```
package struct SetCookie: Sendable, Hashable {
    package var name: String
    package var value: String
    /// In lower case, without a dot in front; empty if it says nothing, or nothing that can be a domain.
    package var domain = ""
    /// `nil` for the default path.
    package var path: String?
    /// Seconds since 1970, no more than 400 days away; `nil` for the end of the session.
    package var expires: Int64?
    package var isSecure = false
    package var isHTTPOnly = false
    /// `nil` if it does not say, or nothing known.
    package var sameSite: SameSite?

    package enum SameSite: Sendable, Hashable {
        case strict, lax, none
    }

    /// Bytes of name and value together (§5.6 step 5), and of the value of an attribute (step 6 of the attributes).
    package static let mostBytes = 4096
    package static let mostAttributeBytes = 1024
    /// No cookie lives longer, in seconds (§5.5).
    package static let longestLife: Int64 = 400 * 86400

    /// `nil` for a field that is to be ignored.
    /// - Parameter now: seconds since 1970.
    package init?(_ field: some Collection<UInt8>, now: Int64) {
        let field = Array(field)
        // Step 1: a control character anywhere, but for HTAB, and all of it is ignored (security 24).
        guard !field.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) else { return nil }
        var parts = field.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
        guard let pair = parts.popFirst() else { return nil }
        // Without a "=" all of it is the value of a cookie without a name.
        let (name, value) = Self.halves(pair) ?? ([], Self.trimmed(pair))
        guard !(name.isEmpty && value.isEmpty), name.count + value.count <= Self.mostBytes else { return nil }
        self.name = Self.text(name)
        self.value = Self.text(value)
        var age: Int64?
        for part in parts {
            let (key, value) = Self.halves(part) ?? (Self.trimmed(part), [])
            guard value.count <= Self.mostAttributeBytes else { continue }
            take(key, value, &age, now)
        }
        // Max-Age goes before Expires, whichever came last (§5.7 step 6).
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

    /// `nil` for what is no number; more than can be counted is the most (§5.6.2).
    private static func seconds(_ text: ArraySlice<UInt8>) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = isNegative ? text.dropFirst() : text
        guard !text.isEmpty, digits.allSatisfy(\.isDigit) else { return nil }
        return isNegative ? 0 : Int64(strictDigits: digits) ?? .max
    }

    private static func halves(_ text: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, ArraySlice<UInt8>)? {
        guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        return (trimmed(text[..<equals]), trimmed(text[(equals + 1)...]))
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let start = text.drop { $0.isBlank }
        return start.prefix(upTo: (start.lastIndex { !$0.isBlank } ?? start.startIndex - 1) + 1)
    }

    /// As `Headers` reads values: UTF-8 if it is that, Latin-1 otherwise.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.withUnsafeBytes { $0.text(0..<$0.count) }
    }
}
