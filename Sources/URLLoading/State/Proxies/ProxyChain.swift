// SPDX-License-Identifier: Apache-2.0

/// A route to origins: direct, through a proxy, or through several proxies in sequence.
///
/// ```swift
/// let chain: ProxyChain = [outer, inner]   // this machine → outer → inner → origin
/// ```
/// Each proxy is connected to through a tunnel of the previous one.
public struct ProxyChain: Sendable, Hashable, ExpressibleByArrayLiteral, CustomStringConvertible {
    /// The route without a proxy.
    public static let direct = ProxyChain([])

    /// The proxies in the order in which they are passed.
    public let proxies: [Proxy]

    /// Creates a chain, the proxy nearest to this machine first; without proxies it is a direct connection.
    public init(_ proxies: [Proxy]) { self.proxies = proxies }
    public init(arrayLiteral proxies: Proxy...) { self.proxies = proxies }

    /// Whether the chain contains no proxy.
    public var isDirect: Bool { proxies.isEmpty }

    /// Whether the last proxy forwards `http` requests (RFC 9112 §3.2.2) instead of opening a tunnel for them.
    var forwards: Bool { proxies.last?.isHTTP == true }

    /// The chain whose proxies are sent user and password only after a challenge.
    var waitingForQuestions: ProxyChain {
        ProxyChain(
            proxies.map { proxy in
                var proxy = proxy
                proxy.waitsForQuestion = true
                return proxy
            })
    }

    /// Returns the chain with the caller's Proxy-Authorization for the last proxy, if that is an HTTP proxy.
    func authorized(by field: String?) -> ProxyChain {
        guard let field, forwards, var last = proxies.last else { return self }
        last.authorization = field
        return ProxyChain(proxies.dropLast() + [last])
    }

    /// `direct`, or the proxies without their credentials.
    public var description: String { isDirect ? "direct" : proxies.map(\.description).joined(separator: " > ") }
}
