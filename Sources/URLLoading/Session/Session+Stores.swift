// The stores of a session.

import FoundationEssentials

extension Session {
    /// Where the session keeps its cookies; `nil` if it keeps none.
    public nonisolated var cookies: CookieStore? { core.cookies?.store }

    /// Where the session keeps which servers are to be spoken to over TLS alone; `nil` if it does not.
    public nonisolated var hsts: HSTSStore? { core.strictTransport?.store }
}
