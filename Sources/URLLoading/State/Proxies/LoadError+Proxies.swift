// SPDX-License-Identifier: Apache-2.0

// In this folder: proxies, their chains, and the environment's settings

// Failures before a proxy has forwarded the load. Every hop of a proxy chain may fail; `ProxyFailure` names the hop and
// its response.

import URLLoadingWire

extension LoadError.Reason {
    /// A proxy's URL or its parts are invalid. Invalid proxies in the environment are an error too, and are not
    /// bypassed.
    public static let badProxy = Self("badProxy", -1000)
    /// The proxy's host name does not exist.
    public static let proxyNotFound = Self("proxyNotFound", -1003)
    /// The desktop's proxy settings could not be read, because libproxy failed. Whether a proxy is required is unknown.
    public static let proxyResolutionFailed = Self("proxyResolutionFailed", -1006)
    /// The proxy refused to connect: it answered CONNECT with a status other than 2xx, or SOCKS with a refusal.
    public static let proxyRefused = Self("proxyRefused", -1004)
    /// The proxy requires credentials, or refused those it got: 407 to CONNECT, or a SOCKS 5 authentication failure. A
    /// 407 to a request for an `http` URL is a response instead, because the proxy answers the request itself.
    public static let proxyAuthenticationRequired = Self("proxyAuthenticationRequired", -1013)

    /// The peer does not speak the configured version of SOCKS.
    public static let notSOCKS = Self(.notSOCKS)
    /// A malformed SOCKS reply (RFC 1928 §6).
    public static let malformedSOCKSReply = Self(.malformedSOCKSReply)
}

/// The proxy at which a load failed: ``LoadError/proxyFailure``.
///
/// ```swift
/// if let failure = error.proxyFailure {
///     print(failure.proxy, failure.head?.headers[.proxyAuthenticate] ?? "")
/// }
/// ```
public struct ProxyFailure: Error, Sendable, CustomStringConvertible {
    /// The proxy that could not be reached, could not be authenticated, or refused.
    public let proxy: Proxy
    /// The head of the proxy's response to CONNECT; `nil` if there was none. The body is not read, because it could be
    /// mistaken for content of the origin.
    public let head: HTTPHead?
    /// The reply code of a SOCKS refusal; `nil` if there was none.
    public let reply: UInt8?
    /// The underlying error if the proxy could not be authenticated.
    var cause: (any Error)?
    /// What happened at the proxy; ``LoadError/detail`` has its name as well.
    package var detail: String?

    /// The proxy and the status or reply code; no header values.
    public var description: String {
        if let head { return "\(proxy): \(head.status)" }
        return reply.map { "\(proxy): reply \($0)" } ?? "\(proxy)"
    }
}

extension ProxyFailure: ErrorCarrier {
    var place: (name: String, detail: String?)? { ("proxy \(proxy.name)", detail) }
}

extension LoadError {
    /// The proxy at which the load failed; `nil` if a proxy was not the cause. Failures beyond the last proxy, such as
    /// the TLS handshake with the origin, are not proxy failures.
    public var proxyFailure: ProxyFailure? { underlying as? ProxyFailure }

    /// The server's certificate chain and every failed check; `nil` if the load failed for another reason.
    public var serverTrust: ServerTrust? { ((proxyFailure?.cause ?? underlying) as? TrustFailure)?.trust }

    /// The settings of ``Configuration/TLS`` with which the load could succeed, the likeliest first; empty for most
    /// errors. ``description`` names them.
    ///
    /// ```swift
    /// if error.tlsRemedies.contains(.minimumVersion) { print("the camera is too old: \(error)") }
    /// ```
    public var tlsRemedies: [TLSRemedy] { ((proxyFailure?.cause ?? underlying) as? TrustFailure)?.remedies ?? [] }

    /// Returns this error attributed to a proxy.
    func at(_ proxy: Proxy, head: HTTPHead? = nil, reply: UInt8? = nil) -> LoadError {
        guard proxyFailure == nil else { return self }
        let isUnknownHost = reason == .hostNotFound && self.detail == "\(proxy.host)"
        let detail = isUnknownHost ? "the host name \(proxy.host) does not exist" : self.detail
        let words = [proxy.name, detail].compactMap { $0 }.joined(separator: ": ")
        return LoadError(
            reason == .hostNotFound ? .proxyNotFound : reason,
            phase: phase == .receiving || phase == .sending ? .connecting : phase,
            party: party, url: url, detail: "proxy " + words,
            underlying: ProxyFailure(proxy: proxy, head: head, reply: reply, cause: underlying, detail: detail),
            resumeToken: resumeToken)
    }

    /// The detail without the name of a proxy.
    var ownDetail: String? { if let failure = proxyFailure { failure.detail } else { detail } }

    /// Returns this error with these words after its detail.
    func adding(_ words: String) -> LoadError {
        func adding(to detail: String?) -> String { detail.map { "\($0): \(words)" } ?? words }
        guard var failure = proxyFailure else { return with(detail: adding(to: detail)) }
        failure.detail = adding(to: failure.detail)
        return with(detail: adding(to: detail), underlying: failure)
    }

    /// True if another proxy may be tried after this failure: the proxy could not be reached or used. A refusal by the
    /// proxy and a stop of the load are final. So is a failed authentication of the proxy, which an attacker may have
    /// caused in order to force another route.
    var permitsAnotherProxy: Bool {
        guard let failure = proxyFailure, failure.head == nil, failure.reply == nil else { return false }
        guard phase != .securing || reason == .connectionLost else { return false }
        return ![.cancelled, .idleTimeout, .resourceTimeout, .addressRefused].contains(reason) && party != .local
    }
}
