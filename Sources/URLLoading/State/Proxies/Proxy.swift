// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoadingIO
public import URLLoadingWire

/// A proxy server, which connects to origins on a client's behalf.
///
/// ```swift
/// let proxy = try Proxy("http://user:password@proxy.example:3128")
/// let gate = try Proxy(.socks5, host: "gate.example", port: 1080)
/// configuration.networks.proxyPolicy = .fixed([proxy])
/// ```
/// An HTTP proxy learns the whole URL of `http` requests, and host and port of `https` requests and streams. A SOCKS
/// proxy always learns host and port. The proxy resolves the names of origins, unless ``resolvesHostNames`` is false;
/// the proxy's own name is resolved by the library. User and password are sent to the proxy only, and appear in no
/// description.
public struct Proxy: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The protocol of a proxy.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// HTTP/1.1, in the clear.
        case http
        /// HTTP/1.1 over TLS; the proxy's certificate is verified for the proxy's name by
        /// ``Configuration/tls-swift.property``.
        case https
        /// SOCKS 4, or 4A if the proxy resolves names. It supports a user without a password, and no IPv6 addresses.
        case socks4a
        /// SOCKS 5 (RFC 1928), with user and password if the proxy requires them (RFC 1929).
        case socks5
    }

    /// The protocol that the proxy speaks.
    public let kind: Kind
    /// The host of the proxy, in normal form.
    public let host: Origin.Host
    /// The port of the proxy.
    public let port: UInt16
    /// The path of the proxy's Unix socket; `nil` if it listens on host and port.
    public let socketPath: String?
    /// Whether the proxy resolves the names of origins. If false, the library resolves them, and a SOCKS proxy is sent
    /// an address, preferably an IPv4 one; the local DNS server then learns the hosts that are visited. HTTP proxies
    /// are always sent names.
    public let resolvesHostNames: Bool
    /// The user name for authentication; `nil` for none.
    public let user: String?
    let password: String?
    /// A Proxy-Authorization value set by the caller, used instead of user and password.
    var authorization: String?

    /// Creates a proxy on a host and a port.
    /// - Parameters:
    ///   - host: a name or an address; IPv6 in brackets.
    ///   - port: by default 443 for ``Kind/https`` and 1080 for the others.
    ///   - user: for SOCKS 5 at most 255 bytes, as is the password; for HTTP without a colon (RFC 7617 §2).
    ///   - resolvesHostNames: for SOCKS; see ``resolvesHostNames-swift.property``.
    /// - Throws: ``LoadError/Reason/badProxy``; its detail describes the problem without the password.
    public init(
        _ kind: Kind, host: String, port: UInt16? = nil, user: String? = nil, password: String? = nil,
        resolvesHostNames: Bool = true
    ) throws(LoadError) {
        do throws(WireViolation) {
            self.init(
                kind, at: Place(host: try Origin.Host(host), port: port), user: user, password: password,
                resolvesHostNames: resolvesHostNames)
        } catch { throw .badProxy("\(error)") }
        try check()
    }

    /// A proxy on a Unix socket of this machine; in a chain, only the first proxy can be one.
    ///
    /// ```swift
    /// let gate = try Proxy(.socks5, unixSocket: "/run/tor/socks")
    /// ```
    /// - Parameters:
    ///   - path: less than 108 bytes, the limit of the system.
    ///   - resolvesHostNames: for SOCKS; see ``resolvesHostNames-swift.property``.
    /// - Throws: ``LoadError/Reason/badProxy``.
    public init(
        _ kind: Kind, unixSocket path: String, user: String? = nil, password: String? = nil,
        resolvesHostNames: Bool = true
    ) throws(LoadError) {
        do throws(WireViolation) {
            self.init(
                kind, at: Place(host: try Origin.Host("localhost"), socketPath: path), user: user, password: password,
                resolvesHostNames: resolvesHostNames)
        } catch { throw .badProxy("\(error)") }
        try check()
    }

    /// Parses a proxy in the format of `http_proxy`: `scheme://user:password@host:port`. Scheme, user and port are
    /// optional; user and password are percent-encoded.
    ///
    /// Schemes are `http` (the default) and `https`; `socks5h`, `socks` and `socks4a`, where the proxy resolves the
    /// names of origins; and `socks5` and `socks4`, where the library resolves them, as in curl. `localhost` with a
    /// path instead of a port is a Unix socket: `socks5h://localhost/run/tor/socks`.
    /// - Throws: ``LoadError/Reason/badProxy``; its detail describes the problem without the password.
    public init(_ text: String) throws(LoadError) {
        let address: ProxyAddress
        do throws(WireViolation) { address = try ProxyAddress(text) } catch { throw .badProxy("\(error)") }
        let (kind, resolvesHostNames): (Kind, Bool)
        switch address.scheme {
        case nil, "http": (kind, resolvesHostNames) = (.http, true)
        case "https": (kind, resolvesHostNames) = (.https, true)
        case "socks4a": (kind, resolvesHostNames) = (.socks4a, true)
        case "socks5h", "socks": (kind, resolvesHostNames) = (.socks5, true)
        case "socks5": (kind, resolvesHostNames) = (.socks5, false)
        case "socks4": (kind, resolvesHostNames) = (.socks4a, false)
        case let other?: throw .badProxy("unsupported scheme of a proxy: \(other)")
        }
        self.init(
            kind, at: Place(host: address.host, port: address.port, socketPath: address.socketPath),
            user: address.user, password: address.password, resolvesHostNames: resolvesHostNames)
        try check()
    }

    private struct Place {
        var host: Origin.Host
        var port: UInt16?
        var socketPath: String?
    }

    private init(_ kind: Kind, at place: Place, user: String?, password: String?, resolvesHostNames: Bool) {
        self.kind = kind
        host = place.host
        port = place.port ?? (kind == .https ? 443 : 1080)
        socketPath = place.socketPath
        self.user = user
        self.password = password
        self.resolvesHostNames = resolvesHostNames || kind == .http || kind == .https
    }

    /// Returns the proxy with a default user and password, which apply if it has no user of its own.
    package func asked(byDefault user: String, _ password: String?) throws(LoadError) -> Proxy {
        guard self.user == nil else { return self }
        let proxy = Proxy(
            kind, at: Place(host: host, port: port, socketPath: socketPath), user: user, password: password,
            resolvesHostNames: resolvesHostNames)
        try proxy.check()
        return proxy
    }

    private func check() throws(LoadError) {
        guard port > 0 else { throw .badProxy("port 0") }
        if let socketPath, (try? SocketAddress.unix(socketPath)) == nil { throw .badProxy("invalid path of a socket") }
        let both = (user ?? "") + (password ?? "")
        guard !both.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw .badProxy("a control character in the credentials")
        }
        if isHTTP, user?.contains(":") == true { throw .badProxy("a colon in the user's name (RFC 7617 2)") }
        if kind == .socks5, let user, !(1...255).contains(user.utf8.count) || (password ?? "").utf8.count > 255 {
            throw .badProxy("credentials that SOCKS 5 cannot carry (RFC 1929 2)")
        }
        if kind == .socks4a, (user ?? "").utf8.count > 255 { throw .badProxy("a user that SOCKS 4A cannot carry") }
    }

    /// Whether the proxy's protocol is HTTP.
    var isHTTP: Bool { kind == .http || kind == .https }

    /// User and password are sent only after a challenge.
    var waitsForQuestion = false

    /// The login that a challenge of the proxy led to, used instead of user and password. Part of the pool's key.
    var login: Login?

    /// User and password as a credential for challenges; `nil` without a user.
    var credential: Credential? { user.map { Credential(user: $0, password: password ?? "", persistence: .none) } }

    /// Returns the value of Proxy-Authorization for a request (RFC 7617, or the challenge's scheme); `nil` without
    /// credentials.
    func authorizationField(_ method: String, _ target: [UInt8], body: @autoclosure () -> [UInt8]? = []) -> String? {
        guard authorization == nil, let login else { return authorizationField }
        return login.authorization(method, target, body: body())
    }

    /// The value of Proxy-Authorization that is sent without a challenge; `nil` without credentials.
    var authorizationField: String? {
        if let authorization { return authorization }
        guard isHTTP, !waitsForQuestion, user != nil || password != nil else { return nil }
        return "Basic " + Data("\(user ?? ""):\(password ?? "")".utf8).base64EncodedString()
    }

    /// Host and port for errors: `proxy.example:3128`; or the path of the Unix socket.
    var name: String { socketPath ?? "\(host):\(port)" }

    /// The proxy in the format of ``init(_:)``, without user and password: `socks5h://gate.example:1080`.
    public var description: String {
        let scheme =
            switch kind {
            case .http, .https: kind.rawValue
            case .socks4a: resolvesHostNames ? "socks4a" : "socks4"
            case .socks5: resolvesHostNames ? "socks5h" : "socks5"
            }
        return "\(scheme)://" + (socketPath.map { "localhost" + $0 } ?? name)
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["kind": kind, "host": host, "port": port]) }
}

extension LoadError {
    static func badProxy(_ detail: String) -> LoadError {
        LoadError(.badProxy, phase: .preparing, party: .local, detail: detail)
    }
}

extension Login {
    /// Whether the login may authenticate a connection through a forwarding proxy: the proxy must announce that it
    /// keeps the connections of its clients apart (RFC 4559 §6).
    func mayPass(_ forwarder: Proxy?) -> Bool {
        guard let forwarder else { return true }
        return forwardersKeepConnectionsApart && forwarder.login?.opensConnections != true
    }
}
