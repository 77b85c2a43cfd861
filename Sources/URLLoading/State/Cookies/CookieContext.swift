// SPDX-License-Identifier: Apache-2.0

// The facts about a request that cookies depend on. The host is the URL's: a Host field of the caller's must not attach
// another site's cookies.

import FoundationEssentials
import URLLoadingWire

struct CookieContext: Sendable {
    /// The host in normal form, without a trailing dot.
    let host: String
    let isAddress: Bool
    let isSecure: Bool
    /// The path and the query.
    let target: [UInt8]
    /// Whether the request is same-site (RFC 6265bis §5.2).
    let isSameSite: Bool

    /// - Returns: `nil` for URLs of other schemes than http, https, ws and wss; the latter two share the cookies of the
    ///   former.
    init?(_ url: URL, mainDocument: URL? = nil) {
        guard let target = Self.target(url) else { return nil }
        self.init(target, mainDocument)
    }

    private static func target(_ url: URL) -> Target? {
        url.openingWebSocket.flatMap { try? Target($0.absoluteString) }
    }

    init(_ target: Target, _ mainDocument: URL?) {
        let origin = target.origin
        host = origin.host.cookieDomain
        isAddress = origin.host.isAddress
        isSecure = origin.isSecure
        self.target = target.originForm
        guard let mainDocument else {
            isSameSite = true
            return
        }
        isSameSite = Self.target(mainDocument).map { Self.site(of: $0.origin) == Self.site(of: origin) } ?? false
    }

    /// The scheme and the registrable domain (§5.2.1); an address is a site of its own.
    private static func site(of origin: Origin) -> String {
        let host = origin.host.cookieDomain
        return origin.scheme + "://" + (origin.host.isAddress ? host : PublicSuffixes.registrableDomain(of: host))
    }

    var path: ArraySlice<UInt8> { CookieScope.path(of: target) }
}
