// What the classic shape does with a store beyond its public seam.

package import FoundationEssentials
import URLLoadingWire

extension CookieStore {
    /// Takes these as if an answer from a URL had set them: those that belong to its host, and go there. Of a caller, without
    /// a URL, all.
    /// - Parameter otherwise: the policy, if nobody has told the store one.
    package func take(_ cookies: [Cookie], from url: URL?, mainDocument: URL?, otherwise fallback: AcceptPolicy) {
        let policy = statedPolicy ?? fallback
        guard let url else {
            if policy != .never { _ = set(cookies, isSecure: true) }
            return
        }
        guard let context = CookieContext(url, mainDocument: mainDocument), policy.takes(context) else { return }
        _ = set(cookies.filter { $0.mayBeSet(in: context) }, isSecure: context.isSecure)
    }

    /// Calls `tell` at every change, on whatever thread makes it and perhaps under locks of the store, until what this returns
    /// is let go of.
    package func observe(_ tell: @escaping @Sendable (CookieChanges.Change) -> Void) -> AnyObject {
        CookieChanges.Listening(memory, tell)
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
    /// RFC 6265bis §5.7 steps 9 and 12, for one that is here already.
    fileprivate func mayBeSet(in context: CookieContext) -> Bool {
        guard !isSecure || context.isSecure else { return false }
        if isHostOnly || context.isAddress { return domain == context.host }
        return CookieScope.matches(domain: domain, host: context.host, hostIsAddress: false)
    }
}
