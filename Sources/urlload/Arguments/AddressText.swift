// SPDX-License-Identifier: Apache-2.0

// Makes URLs from arguments.

import FoundationEssentials
import URLLoading
import URLLoadingWire

enum AddressText {
    /// Adds the scheme that is missing: http for this machine, where certificates are rare, otherwise https.
    static func url(_ text: String) -> URL? {
        URL(string: hasScheme(text) ? text : scheme(for: text) + "://" + text)
    }

    /// Removes white space around an address, and the dot segments of its path unless `keepsPath` (RFC 3986 §5.2.4):
    /// the text of an address comes from people, and curl, wget and browsers do the same with it.
    static func cleaned(_ text: String, keepsPath: Bool) -> String {
        let text = trimmed(text)
        guard !keepsPath, !text.lowercased().hasPrefix("data:"), !text.hasPrefix("/") else { return text }
        let authority = text.firstRange(of: "://")?.upperBound ?? text.startIndex
        guard let start = text[authority...].firstIndex(where: { "/?#".contains($0) }), text[start] == "/" else {
            return text
        }
        let end = text[start...].firstIndex { "?#".contains($0) } ?? text.endIndex
        let path = URIReference.removingDotSegments(Array(text[start..<end].utf8)[...])
        return text[..<start] + String(decoding: path, as: UTF8.self) + text[end...]
    }

    /// Returns text without white space around it.
    static func trimmed(_ text: some StringProtocol) -> String {
        String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }

    /// True if the text has a scheme. `host:port` looks like one, so only `data:` and `file:` count without `//`.
    private static func hasScheme(_ text: String) -> Bool {
        text.contains("://") || ["data:", "file:"].contains { text.lowercased().hasPrefix($0) }
    }

    private static func scheme(for text: String) -> String {
        let authority = text.prefix { !"/?#".contains($0) }
        let name = (authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" })
            .lowercased()
        let isLocal = name == "localhost" || name.hasSuffix(".localhost") || name == "[::1]" || name.hasPrefix("127.")
        return isLocal ? "http" : "https"
    }

    /// The URL without its userinfo, and with its host in normal form: for messages and reports, which end up in logs.
    static func shown(_ url: URL) -> String {
        // An invalid URL does not say where a password ends, so more of it is hidden.
        guard (try? URIReference(url.absoluteString)) != nil else { return inMessage(url.absoluteString) }
        let text = withHostInNormalForm(url)
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { return text }
        let start = text.index(colon, offsetBy: 3)
        let end = text[start...].firstIndex { "/?#".contains($0) } ?? text.endIndex
        guard let at = text[start..<end].lastIndex(of: "@") else { return text }
        return String(text[..<start] + text[text.index(after: at)...])
    }

    /// Replaces an internationalised name by its A-label; `URL` percent-encodes it.
    private static func withHostInNormalForm(_ url: URL) -> String {
        guard let host = url.host(percentEncoded: true), let shown = url.hostInNormalForm, shown != host,
            var parts = URLComponents(url: url, resolvingAgainstBaseURL: false)
        else { return url.absoluteString }
        parts.percentEncodedHost = shown
        return parts.string ?? url.absoluteString
    }

    /// A URL, or any other argument, for a message: without userinfo and secret parameters.
    static func inMessage(_ text: String) -> String {
        guard !hasScheme(text), text.contains("@") else { return Secrets.hidden(inURL: text) }
        // In a URI, `user:password@host` has the scheme `user`; `url(_:)` reads an authority.
        return String(Secrets.hidden(inURL: "//" + text).dropFirst(2))
    }
}
