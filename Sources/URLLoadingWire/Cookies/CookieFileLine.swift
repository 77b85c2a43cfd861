// SPDX-License-Identifier: Apache-2.0

// One cookie in the Netscape cookie file format that curl, wget and browser tools exchange: seven fields separated by
// TABs.

/// ```swift
/// CookieFileLine("#HttpOnly_.example.org\tTRUE\t/\tTRUE\t0\tid\t1")?.isHTTPOnly   // true
/// ```
package struct CookieFileLine: Sendable, Hashable {
    /// The domain without a leading dot.
    package var domain: String
    package var includesSubdomains: Bool
    package var path: String
    package var isSecure: Bool
    package var isHTTPOnly: Bool
    /// Seconds since 1970; 0 for a session cookie.
    package var expires: Int64
    package var name: String
    package var value: String

    private static let httpOnlyMark = "#HttpOnly_"

    package init(
        domain: String, includesSubdomains: Bool, path: String, isSecure: Bool, isHTTPOnly: Bool, expires: Int64,
        name: String,
        value: String
    ) {
        self.domain = domain
        self.includesSubdomains = includesSubdomains
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.expires = expires
        self.name = name
        self.value = value
    }

    /// Parses a line; `nil` for a comment, and for a line that is not a cookie. An empty value may be omitted, as in
    /// old files.
    package init?(_ line: some StringProtocol) {
        var line = Substring(line)
        if line.hasSuffix("\r\n") || line.hasSuffix("\n") || line.hasSuffix("\r") { line.removeLast() }
        isHTTPOnly = line.hasPrefix(Self.httpOnlyMark)
        if isHTTPOnly { line = line.dropFirst(Self.httpOnlyMark.count) }
        guard !line.isEmpty, line.first != "#" else { return nil }
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
        guard fields.count == 7 || fields.count == 6, let expires = Self.seconds(fields[4]), fields[2].first == "/",
            let includesSubdomains = Self.flag(fields[1]), let isSecure = Self.flag(fields[3])
        else { return nil }
        domain = String(fields[0].first == "." ? fields[0].dropFirst() : fields[0])
        self.includesSubdomains = includesSubdomains
        path = String(fields[2])
        self.isSecure = isSecure
        // 0 means a session cookie; a cookie that expired before 1970 stays expired.
        self.expires = expires < 0 ? 1 : expires
        name = String(fields[5])
        value = fields.count == 7 ? String(fields[6]) : ""
        guard !domain.isEmpty, isWritable, !(name.isEmpty && value.isEmpty) else { return nil }
    }

    /// Returns whole seconds. Browsers' tools export fractions as well, which curl ignores.
    private static func seconds(_ text: Substring) -> Int64? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 1 || parts[1].utf8.allSatisfy(\.isDigit) else { return nil }
        return Int64(parts[0])
    }

    private static func flag(_ text: Substring) -> Bool? {
        switch text.lowercased() {
        case "true": true
        case "false": false
        default: nil
        }
    }

    /// Whether the fields can be written as one line and read back unchanged: a TAB or line break inside a field would
    /// forge another cookie.
    package var isWritable: Bool {
        [domain, path, name, value].allSatisfy { $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
    }

    /// The line without its end; `nil` if the fields cannot be written.
    package var text: String? {
        guard isWritable else { return nil }
        return (isHTTPOnly ? Self.httpOnlyMark : "")
            + [
                (includesSubdomains ? "." : "") + domain, includesSubdomains ? "TRUE" : "FALSE", path,
                isSecure ? "TRUE" : "FALSE",
                String(expires), name, value,
            ].joined(separator: "\t")
    }
}
