// What goes wrong before a proxy has let a load through. Which one it was, and what it said, is told by
// `ProxyFailure`: in a chain every hop may fail.

import URLLoadingWire

extension LoadError.Reason {
    /// The text or the parts of a proxy are none; in the environment too, whose bad proxies are not passed by.
    public static let badProxy = Self("badProxy", -1000)
    /// The proxy's own name does not exist.
    public static let proxyNotFound = Self("proxyNotFound", -1003)
    /// The desktop's settings could not be asked, so that nobody knows whether there is a proxy: libproxy failed.
    public static let proxyResolutionFailed = Self("proxyResolutionFailed", -1006)
    /// The proxy would not connect: it answered CONNECT with a status that is no success, or SOCKS with a refusal.
    public static let proxyRefused = Self("proxyRefused", -1004)
    /// The proxy wants credentials, or others (407, or SOCKS 5 in its own words). A 407 to a request for `http` is a
    /// response, for there the proxy answers the request itself.
    public static let proxyAuthenticationRequired = Self("proxyAuthenticationRequired", -1013)

    /// The interface or address of ``Configuration/networkInterface`` is not there, or cannot reach the family of
    /// addresses that the host has.
    public static let interfaceUnavailable = Self("interfaceUnavailable", -1004)

    /// What answered is no SOCKS proxy of the version that was asked for.
    public static let notSOCKS = Self(.notSOCKS)
    /// A SOCKS reply out of grammar (RFC 1928 §6).
    public static let malformedSOCKSReply = Self(.malformedSOCKSReply)
}

/// Which proxy a load failed at: ``LoadError/proxyFailure``.
///
/// ```swift
/// catch where error.reason == .proxyAuthenticationRequired {
///     print(error.proxyFailure?.proxy.description ?? "", error.proxyFailure?.head?.headers[.proxyAuthenticate] ?? "")
/// }
/// ```
public struct ProxyFailure: Error, Sendable, CustomStringConvertible {
    /// The hop that failed: the proxy that could not be reached, did not prove who it is, or refused.
    public let proxy: Proxy
    /// What it answered to CONNECT; `nil` if it has not. Its body is not read: whoever stands between would
    /// speak in the origin's name.
    public let head: HTTPHead?
    /// The number of its refusal in SOCKS; `nil` if there was none.
    public let reply: UInt8?
    /// Why, if it did not prove who it is.
    var cause: (any Error)?

    /// Nothing of its fields.
    public var description: String {
        if let head { return "\(proxy): \(head.status)" }
        return reply.map { "\(proxy): reply \($0)" } ?? "\(proxy)"
    }
}

extension LoadError {
    /// The proxy at which it failed; `nil` if it was none. What fails behind the last proxy, such as the handshake with
    /// the origin, is not the proxy's.
    public var proxyFailure: ProxyFailure? { underlying as? ProxyFailure }

    /// The same, said of a proxy.
    func at(_ proxy: Proxy, head: HTTPHead? = nil, reply: UInt8? = nil) -> LoadError {
        guard proxyFailure == nil else { return self }
        let words = [proxy.name, detail].compactMap { $0 }.joined(separator: ": ")
        return LoadError(
            reason == .hostNotFound ? .proxyNotFound : reason,
            phase: phase == .receiving || phase == .sending ? .connecting : phase,
            party: party, url: url, detail: "proxy " + words,
            underlying: ProxyFailure(proxy: proxy, head: head, reply: reply, cause: underlying),
            resumeToken: resumeToken)
    }

    /// Whether another way is worth trying: a proxy could not be reached or used. One that refuses has decided, and
    /// so has whoever stopped the load. One that does not prove who it is may be somebody who wants another way taken.
    var leavesAnotherWay: Bool {
        guard let failure = proxyFailure, failure.head == nil, failure.reply == nil else { return false }
        guard phase != .securing || reason == .connectionLost else { return false }
        return ![.cancelled, .idleTimeout, .resourceTimeout, .addressRefused].contains(reason) && party != .local
    }
}
