// SPDX-License-Identifier: Apache-2.0

// Decides whether a cookie may be set, independently of the cookies already stored: RFC 6265bis §5.7 up to the
// prefixes. Pure; a rejection has a reason.

import FoundationEssentials
import URLLoadingWire

enum CookieAdmission: Sendable, Hashable {
    case keep(Cookie)
    case ignore(Refusal)

    /// The reason for ignoring a cookie.
    enum Refusal: String, Sendable, Hashable {
        /// The field is too long, or contains a control character.
        case field
        case domainIsNoHost, publicSuffix, foreignDomain
        case notSecure
        case crossSite
        /// SameSite=None without Secure.
        case noneWithoutSecure
        /// A condition of the name's prefix is not met.
        case prefix
    }

    static func make(_ field: some Collection<UInt8>, _ context: CookieContext, now: Date) -> CookieAdmission {
        guard let set = SetCookie(field, now: Int64(now.timeIntervalSince1970)) else { return .ignore(.field) }
        return make(set, context, now: now)
    }

    static func make(_ set: SetCookie, _ context: CookieContext, now: Date) -> CookieAdmission {
        // Steps 7 to 9.
        let domain: String
        let isHostOnly: Bool
        switch scope(set.domain, context) {
        case .success(let found): (domain, isHostOnly) = found
        case .failure(let refusal): return .ignore(refusal)
        }
        let cookie = Cookie(
            name: set.name, value: set.value, domain: domain, isHostOnly: isHostOnly,
            path: set.path ?? CookieScope.defaultPath(of: context.target),
            expires: set.expires.map { $0 == .min ? .distantPast : Date(timeIntervalSince1970: Double($0)) },
            isSecure: set.isSecure, isHTTPOnly: set.isHTTPOnly, sameSite: set.sameSite.map(Cookie.SameSite.init),
            creation: now, lastAccess: now)
        // Step 12.
        guard !cookie.isSecure || context.isSecure else { return .ignore(.notSecure) }
        // Steps 16 to 18.
        guard context.isSameSite || cookie.sameSite == Cookie.SameSite.none else { return .ignore(.crossSite) }
        guard cookie.sameSite != Cookie.SameSite.none || cookie.isSecure else { return .ignore(.noneWithoutSecure) }
        // Steps 19 to 21.
        guard keepsPrefix(cookie, hasRootPath: set.path == "/") else { return .ignore(.prefix) }
        return .keep(cookie)
    }

    static func cookies(in headers: Headers, _ context: CookieContext, now: Date) -> [Cookie] {
        guard headers.contains(.setCookie) else { return [] }
        var cookies: [Cookie] = []
        headers.forEachRaw { name, value in
            guard isSetCookie(name), isText(value), case .keep(let cookie) = make(value, context, now: now) else {
                return
            }
            cookies.append(cookie)
        }
        return cookies
    }

    private static func isSetCookie(_ name: UnsafeRawBufferPointer) -> Bool {
        name.count == setCookie.utf8CodeUnitCount
            && name.indices.allSatisfy {
                (name[$0] &- 0x41 < 26 ? name[$0] | 0x20 : name[$0]) == setCookie.utf8Start[$0]
            }
    }
    private static let setCookie: StaticString = "set-cookie"

    /// Name and value must be returned as the same bytes (§5.8.3); bytes that are not UTF-8 would change.
    private static func isText(_ field: UnsafeRawBufferPointer) -> Bool {
        String(validating: field.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self) != nil
    }

    /// Returns the scope: the stated domain if it contains the sender and is no public suffix; otherwise the sender's
    /// host.
    private static func scope(_ stated: String, _ context: CookieContext) -> Result<(String, Bool), Refusal> {
        guard !stated.isEmpty else { return .success((context.host, true)) }
        guard stated.utf8.allSatisfy({ $0 < 0x80 }), let host = try? Origin.Host(stated) else {
            return .failure(.domainIsNoHost)
        }
        let domain = host.cookieDomain
        // A cookie of an address is valid for that address only, never for addresses that look like its subdomains.
        if host.isAddress || context.isAddress {
            return domain == context.host ? .success((domain, true)) : .failure(.foreignDomain)
        }
        if PublicSuffixes.contains(domain) {
            return domain == context.host ? .success((domain, true)) : .failure(.publicSuffix)
        }
        guard CookieScope.matches(domain: domain, host: context.host, hostIsAddress: false) else {
            return .failure(.foreignDomain)
        }
        return .success((domain, false))
    }

    /// Whether the cookie meets the conditions of its name's prefix, in any letter case. A cookie without a name must
    /// not look as if it had such a prefix when it is sent (§5.7 step 21).
    static func keepsPrefix(_ cookie: Cookie, hasRootPath: Bool) -> Bool {
        if cookie.name.isEmpty { return !cookie.value.begins("__secure-") && !cookie.value.begins("__host-") }
        if cookie.name.begins("__host-") { return cookie.isSecure && cookie.isHostOnly && hasRootPath }
        return !cookie.name.begins("__secure-") || cookie.isSecure
    }
}

extension CookieAdmission.Refusal: Error {}

extension Cookie.SameSite {
    fileprivate init(_ stated: SetCookie.SameSite) {
        self =
            switch stated {
            case .strict: .strict
            case .lax: .lax
            case .none: .none
            }
    }
}

extension String {
    /// - Parameter prefix: in lower case.
    fileprivate func begins(_ prefix: String) -> Bool {
        utf8.count >= prefix.utf8.count
            && zip(utf8, prefix.utf8).allSatisfy { byte, wanted in
                (byte &- 0x41 < 26 ? byte | 0x20 : byte) == wanted
            }
    }
}
