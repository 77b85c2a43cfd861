// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import URLLoading

/// The protocol of a server: http.
public let NSURLProtectionSpaceHTTP = "http"
/// The protocol of a server: https.
public let NSURLProtectionSpaceHTTPS = "https"
/// The protocol of a server: ftp.
@available(*, deprecated, message: "Use NSURLProtectionSpaceHTTPS and a server that speaks it")
public let NSURLProtectionSpaceFTP = "ftp"
/// The type of a proxy for http.
public let NSURLProtectionSpaceHTTPProxy = "NSURLProtectionSpaceHTTPProxy"
/// The type of a proxy for https.
public let NSURLProtectionSpaceHTTPSProxy = "NSURLProtectionSpaceHTTPSProxy"
/// The type of a proxy for ftp.
@available(*, deprecated, message: "Proxies of ftp are those of HTTP or SOCKS")
public let NSURLProtectionSpaceFTPProxy = "NSURLProtectionSpaceFTPProxy"
/// The type of a SOCKS proxy.
public let NSURLProtectionSpaceSOCKSProxy = "NSURLProtectionSpaceSOCKSProxy"

/// The default method of the protocol: matches a credential for any method.
public let NSURLAuthenticationMethodDefault = "NSURLAuthenticationMethodDefault"
/// An HTML form. No load sends a challenge with this method.
public let NSURLAuthenticationMethodHTMLForm = "NSURLAuthenticationMethodHTMLForm"
/// Basic (RFC 7617).
public let NSURLAuthenticationMethodHTTPBasic = "NSURLAuthenticationMethodHTTPBasic"
/// Digest (RFC 7616).
public let NSURLAuthenticationMethodHTTPDigest = "NSURLAuthenticationMethodHTTPDigest"
/// NTLM.
public let NSURLAuthenticationMethodNTLM = "NSURLAuthenticationMethodNTLM"
/// Negotiate: Kerberos (RFC 4559).
public let NSURLAuthenticationMethodNegotiate = "NSURLAuthenticationMethodNegotiate"
/// A certificate of the client, which the server requests in the TLS handshake.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"
/// A decision about the certificate of the server.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

/// The area in which a credential is valid: a server or proxy, its realm and its authentication method. Spaces are
/// compared as ``URLCredentialStorage`` compares them: without regard to the case of host and protocol.
open class URLProtectionSpace: NSObject, NSCopying, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private let space: Space
    private let trust: ServerTrust?
    private let issuers: [Data]?

    private struct Space: Sendable {
        var host: String
        var port: Int
        /// `http`, `https`, `ftp`, or the type of a proxy.
        var name: String?
        var realm: String?
        var method: String
        var isProxy: Bool
    }

    /// Creates the protection space of a server.
    /// - Parameters:
    ///   - host: a name or an address; compared without regard to case.
    ///   - protocol: `http`, `https` or `ftp`.
    ///   - authenticationMethod: one of the constants; `nil` for `NSURLAuthenticationMethodDefault`.
    public init(host: String, port: Int, protocol: String?, realm: String?, authenticationMethod: String?) {
        space = Space(
            host: host, port: port, name: `protocol`, realm: realm,
            method: authenticationMethod ?? NSURLAuthenticationMethodDefault, isProxy: false)
        (trust, issuers) = (nil, nil)
    }

    /// Creates the protection space of a proxy.
    /// - Parameter type: one of the constants, such as `NSURLProtectionSpaceHTTPProxy`.
    public init(proxyHost host: String, port: Int, type: String?, realm: String?, authenticationMethod: String?) {
        space = Space(
            host: host, port: port, name: type, realm: realm,
            method: authenticationMethod ?? NSURLAuthenticationMethodDefault, isProxy: true)
        (trust, issuers) = (nil, nil)
    }

    init(_ space: ProtectionSpace, trust: ServerTrust? = nil, issuers: [[UInt8]]? = nil) {
        self.space = Space(
            host: space.host, port: space.port, name: space.isProxy ? Self.proxyType(space.scheme) : space.scheme,
            realm: space.realm, method: Self.method(space.method), isProxy: space.isProxy)
        self.trust = trust
        self.issuers = issuers.map { $0.map { Data($0) } }
    }

    /// The host of the server or the proxy.
    open var host: String { space.host }
    /// The port of the server or the proxy.
    open var port: Int { space.port }
    /// The realm that the server names; `nil` if it names none.
    open var realm: String? { space.realm }
    /// One of the `NSURLAuthenticationMethod…` constants, or the name of an unknown scheme as the server sent it.
    open var authenticationMethod: String { space.method }
    /// The scheme of a server; `nil` for a proxy.
    open var `protocol`: String? { space.isProxy ? nil : space.name }
    /// The type of a proxy; `nil` for a server.
    open var proxyType: String? { space.isProxy ? space.name : nil }
    open override func isProxy() -> Bool { space.isProxy }

    /// Whether a credential is protected from eavesdroppers: sent over TLS, or by a method that does not transmit the
    /// password.
    open var receivesCredentialSecurely: Bool {
        if ["https", "ftps"].contains(core.scheme) { return true }
        switch space.method {
        case NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
            NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust:
            return true
        default: return false
        }
    }

    /// The server's certificate chain and the verification result; `nil` for other challenges.
    public final var serverTrust: ServerTrust? { trust }

    /// The issuers that the server accepts for a client certificate, as distinguished names in DER. Empty if the server
    /// listed none; `nil` for other challenges.
    public var distinguishedNames: [Data]? { issuers }

    /// One line: `<URLProtectionSpace https://example.org:443 "staff" NSURLAuthenticationMethodHTTPDigest>`.
    open override var description: String {
        "<URLProtectionSpace \(space.isProxy ? "proxy " : "")\(space.name ?? "-")://\(host):\(port)"
            + "\(realm.map { " \"\($0)\"" } ?? "") \(authenticationMethod)>"
    }

    // MARK: Copying, comparing

    /// Returns the same object: a protection space is immutable.
    open override func copy() -> Any { self }
    /// Returns the same object: a protection space is immutable.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    open override func isEqual(_ object: Any?) -> Bool {
        (object as? URLProtectionSpace).map { $0.core == core } ?? false
    }
    open override var hash: Int { core.hashValue }

    // MARK: The core's names

    final var core: ProtectionSpace {
        ProtectionSpace(
            host: host.lowercased(), port: port, scheme: Self.scheme(space.name), realm: realm,
            method: Self.method(authenticationMethod), isProxy: space.isProxy)
    }

    private static let methods: [(Challenge.Method, String)] = [
        (.any, NSURLAuthenticationMethodDefault), (.default, NSURLAuthenticationMethodDefault),
        (.basic, NSURLAuthenticationMethodHTTPBasic),
        (.digest, NSURLAuthenticationMethodHTTPDigest), (.ntlm, NSURLAuthenticationMethodNTLM),
        (.negotiate, NSURLAuthenticationMethodNegotiate), (.serverTrust, NSURLAuthenticationMethodServerTrust),
        (.clientCertificate, NSURLAuthenticationMethodClientCertificate),
    ]

    private static func method(_ method: Challenge.Method) -> String {
        methods.first { $0.0 == method }?.1 ?? method.name
    }

    private static func method(_ name: String) -> Challenge.Method {
        methods.first { $0.1 == name }?.0 ?? Challenge.Method(name)
    }

    private static func proxyType(_ scheme: String) -> String {
        switch scheme {
        case "https": NSURLProtectionSpaceHTTPSProxy
        case "http": NSURLProtectionSpaceHTTPProxy
        default: NSURLProtectionSpaceSOCKSProxy
        }
    }

    private static func scheme(_ name: String?) -> String {
        switch name {
        case NSURLProtectionSpaceHTTPSProxy: "https"
        case NSURLProtectionSpaceHTTPProxy: "http"
        case "NSURLProtectionSpaceFTPProxy": "ftp"
        case NSURLProtectionSpaceSOCKSProxy: "socks5"
        default: name?.lowercased() ?? "http"
        }
    }
}
