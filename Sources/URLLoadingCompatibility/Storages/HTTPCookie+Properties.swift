// SPDX-License-Identifier: Apache-2.0

// Conversion between a cookie and its dictionary of properties.

import Foundation
import URLLoadingWire

extension HTTPCookie.Facts {
    init?(_ properties: [HTTPCookiePropertyKey: Any]) {
        func text(_ key: HTTPCookiePropertyKey) -> String? {
            Self.text(properties[key]) ?? (properties[key] as? NSNumber).map { "\($0)" }
        }
        func url(_ key: HTTPCookiePropertyKey) -> URL? {
            (properties[key] as? URL) ?? Self.text(properties[key]).flatMap { URL(string: $0) }
        }
        guard let name = Self.text(properties[.name]), let value = Self.text(properties[.value]),
            let path = Self.text(properties[.path]), path.hasPrefix("/"), !(name.isEmpty && value.isEmpty),
            let domain = Self.text(properties[.domain]).flatMap({ $0.isEmpty ? nil : $0 }) ?? url(.originURL)?.host,
            [name, value, path, domain].allSatisfy({
                $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ";") }
            })
        else { return nil }
        self.init(name: name, value: value, domain: domain.lowercased(), path: path)
        version = text(.version).flatMap { Int($0) } == 1 ? 1 : 0
        expires = text(.discard)?.uppercased() == "TRUE" ? nil : Self.end(properties[.expires], text(.maximumAge))
        isSecure = Self.isSet(properties[.secure])
        isHTTPOnly = Self.isSet(properties[.httpOnly])
        let policy = (properties[.sameSitePolicy] as? HTTPCookieStringPolicy)?.rawValue ?? text(.sameSitePolicy)
        sameSite = policy.flatMap { ["lax", "strict", "none"].contains($0.lowercased()) ? $0.lowercased() : nil }
        comment = text(.comment)
        commentURL = url(.commentURL)
        ports = text(.port).map { $0.split(separator: ",").compactMap { Int($0.trimmingCharacters(in: .whitespaces)) } }
    }

    /// Returns a string or substring as `String`; `nil` for other types.
    private static func text(_ value: Any?) -> String? {
        (value as? String) ?? (value as? Substring).map { String($0) }
    }

    /// Returns whether a Boolean property is set. Apple's dictionaries hold strings, and any non-empty string means
    /// true.
    private static func isSet(_ value: Any?) -> Bool {
        if let text = text(value) { return !text.isEmpty }
        return (value as? NSNumber)?.boolValue ?? (value as? Bool) ?? false
    }

    private static func end(_ expires: Any?, _ age: String?) -> Date? {
        moment(expires, age).map { min(max($0, .distantPast), .distantFuture) }
    }

    /// Returns the expiry date. It may lie outside of the range that a store can write.
    private static func moment(_ expires: Any?, _ age: String?) -> Date? {
        // Max-Age has precedence over Expires (RFC 6265 §5.3); one that is no number is ignored (§5.2.2).
        if let age = age.flatMap({ Double($0) }), age.isFinite { return Date(timeIntervalSinceNow: age) }
        if let date = expires as? Date { return date.timeIntervalSinceReferenceDate.isNaN ? nil : date }
        return text(expires).flatMap { CookieDate.parse($0.utf8) }.map { Date(timeIntervalSince1970: Double($0)) }
    }

    var properties: [HTTPCookiePropertyKey: Any] {
        var all: [HTTPCookiePropertyKey: Any] = [
            .name: name, .value: value, .domain: domain, .path: path, .version: "\(version)",
        ]
        if let expires { all[.expires] = expires } else { all[.discard] = "TRUE" }
        if isSecure { all[.secure] = "TRUE" }
        if isHTTPOnly { all[.httpOnly] = "TRUE" }
        if let sameSite { all[.sameSitePolicy] = sameSite }
        if let comment { all[.comment] = comment }
        if let commentURL { all[.commentURL] = commentURL.absoluteString }
        if let ports { all[.port] = ports.map { "\($0)" }.joined(separator: ",") }
        return all
    }
}
