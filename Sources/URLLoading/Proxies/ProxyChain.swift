/// A way to origins: straight, through a proxy, or through one after the other.
///
/// ```swift
/// let way: ProxyChain = [outer, inner]   // this machine → outer → inner → origin
/// ```
/// Each proxy is connected to through the one before it, whose HTTP or SOCKS only carries bytes then.
public struct ProxyChain: Sendable, Hashable, ExpressibleByArrayLiteral, CustomStringConvertible {
    /// No proxy.
    public static let direct = ProxyChain([])

    /// In the order they are passed.
    public let proxies: [Proxy]

    public init(_ proxies: [Proxy]) { self.proxies = proxies }
    public init(arrayLiteral proxies: Proxy...) { self.proxies = proxies }

    /// Whether there is no proxy in it.
    public var isDirect: Bool { proxies.isEmpty }

    /// Whether requests for `http` are said to its last proxy, in HTTP (RFC 9112 §3.2.2), and not carried through.
    var forwards: Bool { proxies.last?.isHTTP == true }

    /// Whose proxies are told user and password when they ask.
    var waitingForQuestions: ProxyChain {
        ProxyChain(
            proxies.map { proxy in
                var proxy = proxy
                proxy.waitsForQuestion = true
                return proxy
            })
    }

    /// With a Proxy-Authorization of the caller's for the last proxy, if it would understand.
    func authorized(by field: String?) -> ProxyChain {
        guard let field, forwards, var last = proxies.last else { return self }
        last.authorization = field
        return ProxyChain(proxies.dropLast() + [last])
    }

    /// `direct`, or the proxies without their credentials.
    public var description: String { isDirect ? "direct" : proxies.map(\.description).joined(separator: " > ") }
}
