// SPDX-License-Identifier: Apache-2.0

// The stores of a session.

extension Session {
    /// The session's cookie store; `nil` without one.
    public nonisolated var cookies: CookieStore? { core.cookies?.store }

    /// The session's store of HSTS hosts; `nil` without one.
    public nonisolated var hsts: HSTSStore? { core.strictTransport?.store }
}
