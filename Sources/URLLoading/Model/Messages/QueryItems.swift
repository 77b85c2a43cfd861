// SPDX-License-Identifier: Apache-2.0

// Query items as they are written into a URL: every byte that is not unreserved is escaped (RFC 3986 §2.3), so that no
// parser can take a plus sign for a space, or a character of a value for a separator.

import FoundationEssentials
import URLLoadingWire

enum QueryItems {
    /// Returns the items as text. One without a value is its name alone.
    static func text(_ items: [URLQueryItem]) -> String {
        items.map { item in
            let name = PercentCoding.encode(item.name.utf8)
            return item.value.map { "\(name)=\(PercentCoding.encode($0.utf8))" } ?? name
        }.joined(separator: "&")
    }

    /// Returns a URL, or a request target, with items at the end of its query.
    static func append(_ items: [URLQueryItem], to whole: String) -> String {
        guard !items.isEmpty else { return whole }
        let base = whole.prefix { $0 != "#" }
        let mark = !base.contains("?") ? "?" : base.hasSuffix("?") || base.hasSuffix("&") ? "" : "&"
        return base + mark + text(items) + whole.dropFirst(base.count)
    }
}
