// SPDX-License-Identifier: Apache-2.0

// Functions of a store for the URLSession layer.

package import FoundationEssentials
import URLLoadingWire

extension CookieStore {
    /// Takes cookies as if a response from a URL had set them: those that the URL's host may set. Without a URL, takes
    /// all of them.
    /// - Parameter otherwise: the policy if the store has none set.
    package func take(_ cookies: [Cookie], from url: URL?, mainDocument: URL?, otherwise fallback: AcceptPolicy) {
        let policy = statedPolicy ?? fallback
        guard let url else {
            if policy != .never { _ = set(cookies, isSecure: true) }
            return
        }
        guard let context = CookieContext(url, mainDocument: mainDocument), policy.takes(context) else { return }
        _ = set(cookies.filter { $0.mayBeSet(in: context) }, isSecure: context.isSecure)
    }

    /// Calls `notify` at every change, on the thread that makes it and possibly under locks of the store, until the
    /// returned object is released.
    package func observe(_ notify: @escaping @Sendable (CookieChanges.Change) -> Void) -> AnyObject {
        CookieChanges.Listening(listeners, notify)
    }
}

extension CookieStore.AcceptPolicy {
    func takes(_ context: CookieContext) -> Bool {
        switch self {
        case .always: true
        case .never: false
        case .onlyFromMainDocument: context.isSameSite
        }
    }
}

extension Cookie {
    /// RFC 6265bis §5.7 steps 9 and 12, for an existing cookie.
    fileprivate func mayBeSet(in context: CookieContext) -> Bool {
        guard !isSecure || context.isSecure else { return false }
        if isHostOnly || context.isAddress { return domain == context.host }
        return CookieScope.matches(domain: domain, host: context.host, hostIsAddress: false)
    }
}
