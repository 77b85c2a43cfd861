// From what was typed to a URL.

import FoundationEssentials
import URLLoading
import URLLoadingWire

enum AddressText {
    /// A URL without a scheme gets https; one of this machine, where certificates are rare, http.
    static func url(_ text: String) -> URL? {
        URL(string: hasScheme(text) ? text : scheme(for: text) + "://" + text)
    }

    /// `host:port` looks like a scheme and a path: only those that need no `//` are taken for one.
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

    /// The URL without its userinfo, its host in normal form: for messages and reports, which end up in logs.
    static func shown(_ url: URL) -> String {
        // Where the grammar does not say where a password ends, more is left out.
        guard (try? URIReference(url.absoluteString)) != nil else { return inMessage(url.absoluteString) }
        let text = withHostInNormalForm(url)
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { return text }
        let start = text.index(colon, offsetBy: 3)
        let end = text[start...].firstIndex { "/?#".contains($0) } ?? text.endIndex
        guard let at = text[start..<end].lastIndex(of: "@") else { return text }
        return String(text[..<start] + text[text.index(after: at)...])
    }

    /// An internationalised name as its A-label, and not as the percent escapes that `URL` makes of it.
    private static func withHostInNormalForm(_ url: URL) -> String {
        guard let host = url.host(percentEncoded: true), let shown = url.hostInNormalForm, shown != host,
            var parts = URLComponents(url: url, resolvingAgainstBaseURL: false)
        else { return url.absoluteString }
        parts.percentEncodedHost = shown
        return parts.string ?? url.absoluteString
    }

    /// A URL, or what was typed in place of one, in a message: without userinfo and secret parameters.
    static func inMessage(_ text: String) -> String { Secrets.hidden(inURL: text) }
}
