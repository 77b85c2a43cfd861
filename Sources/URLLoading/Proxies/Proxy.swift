import FoundationEssentials
import URLLoadingIO
public import URLLoadingWire

/// A server that connects to others in a client's place.
///
/// ```swift
/// let proxy = try Proxy("http://user:password@proxy.example:3128")
/// let gate = try Proxy(.socks5, host: "gate.example", port: 1080)
/// configuration.proxyPolicy = .fixed([proxy])
/// ```
/// What each kind is told: an HTTP proxy the whole URL of `http` and host and port of `https` and streams, a
/// SOCKS proxy always host and port. The names of origins are looked up by the proxy and not here, but for
/// ``resolvesHostNames``; that of the proxy is looked up here. User and password go to the proxy and to nobody else, and are
/// in no description.
public struct Proxy: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Which protocol it speaks.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// HTTP/1.1, in the clear.
        case http
        /// HTTP/1.1 over TLS; it is verified under its own name by ``Configuration/tls-swift.property``.
        case https
        /// SOCKS 4, with names in place of addresses (4A) if the proxy looks them up. It has a user and no password, and
        /// carries no address of IPv6.
        case socks4a
        /// SOCKS 5 (RFC 1928), with user and password if it wants them (RFC 1929).
        case socks5
    }

    public let kind: Kind
    /// In normal form.
    public let host: Origin.Host
    public let port: UInt16
    /// Where it listens in place of host and port, if that is a Unix socket.
    public let socketPath: String?
    /// Whether it gets the names of origins as they are. If not they are looked up here, and a SOCKS proxy gets an
    /// address, of IPv4 where there is one: whoever serves names here then learns where loads go. HTTP proxies always get
    /// names.
    public let resolvesHostNames: Bool
    /// Who asks; `nil` for nobody in particular.
    public let user: String?
    let password: String?
    /// A Proxy-Authorization that the caller wrote himself, in place of user and password.
    var authorization: String?

    /// - Parameters:
    ///   - host: a name or an address, IPv6 in brackets.
    ///   - port: without it 443 for ``Kind/https`` and 1080 for the others.
    ///   - user: for SOCKS 5 at most 255 bytes, and the password too; for HTTP without a colon (RFC 7617 §2).
    ///   - resolvesHostNames: of SOCKS; see ``resolvesHostNames-swift.property``.
    /// - Throws: ``LoadError/Reason/badProxy``; its detail says what is wrong and holds no password.
    public init(
        _ kind: Kind, host: String, port: UInt16? = nil, user: String? = nil, password: String? = nil,
        resolvesHostNames: Bool = true
    ) throws(LoadError) {
        do throws(WireViolation) {
            self.init(kind, try Origin.Host(host), port, nil, user, password, resolvesHostNames)
        } catch { throw .badProxy("\(error)") }
        try check()
    }

    /// A proxy on a Unix socket of this machine; only the first of several can be one.
    ///
    /// ```swift
    /// let gate = try Proxy(.socks5, unixSocket: "/run/tor/socks")
    /// ```
    /// - Parameters:
    ///   - path: less than 108 bytes, which is the system's limit.
    ///   - resolvesHostNames: of SOCKS; see ``resolvesHostNames-swift.property``.
    /// - Throws: ``LoadError/Reason/badProxy``.
    public init(
        _ kind: Kind, unixSocket path: String, user: String? = nil, password: String? = nil,
        resolvesHostNames: Bool = true
    ) throws(LoadError) {
        do throws(WireViolation) {
            self.init(kind, try Origin.Host("localhost"), nil, path, user, password, resolvesHostNames)
        } catch { throw .badProxy("\(error)") }
        try check()
    }

    /// A proxy as it is written into `http_proxy`: `scheme://user:password@host:port`, where scheme, user and port
    /// may be left out, and user and password are percent-encoded.
    ///
    /// Schemes are `http` (the default) and `https`; `socks5h`, `socks` and `socks4a`, where the proxy looks up the names
    /// of origins; and `socks5` and `socks4`, where that is done here, as curl has it. With `localhost` and a path in
    /// place of host and port it is a Unix socket: `socks5h://localhost/run/tor/socks`.
    /// - Throws: ``LoadError/Reason/badProxy``; its detail says what is wrong and holds no password.
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
        case let other?: throw .badProxy("no kind of proxy: \(other)")
        }
        self.init(
            kind, address.host, address.port, address.socketPath, address.user, address.password, resolvesHostNames)
        try check()
    }

    private init(
        _ kind: Kind, _ host: Origin.Host, _ port: UInt16?, _ socketPath: String?, _ user: String?, _ password: String?,
        _ resolvesHostNames: Bool
    ) {
        self.kind = kind
        self.host = host
        self.port = port ?? (kind == .https ? 443 : 1080)
        self.socketPath = socketPath
        self.user = user
        self.password = password
        self.resolvesHostNames = resolvesHostNames || kind == .http || kind == .https
    }

    /// The same for somebody else, unless it says itself who asks.
    package func asked(byDefault user: String, _ password: String?) throws(LoadError) -> Proxy {
        guard self.user == nil else { return self }
        let proxy = Proxy(kind, host, port, socketPath, user, password, resolvesHostNames)
        try proxy.check()
        return proxy
    }

    private func check() throws(LoadError) {
        guard port > 0 else { throw .badProxy("port 0") }
        if let socketPath, (try? SocketAddress.unix(socketPath)) == nil { throw .badProxy("no path of a socket") }
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

    /// Whether requests are said to it in HTTP.
    var isHTTP: Bool { kind == .http || kind == .https }

    /// User and password are not said unasked.
    var waitsForQuestion = false

    /// What a challenge of its has led to, in place of user and password. Told apart in the pool.
    var login: Login?

    /// User and password, for challenges; `nil` without.
    var credential: Credential? { user.map { Credential(user: $0, password: password ?? "", persistence: .none) } }

    /// The value of Proxy-Authorization for a request (RFC 7617, or as it wanted); `nil` without credentials.
    func authorizationField(_ method: String, _ target: [UInt8], body: @autoclosure () -> [UInt8]? = []) -> String? {
        guard authorization == nil, let login else { return authorizationField }
        return login.authorization(method, target, body: body())
    }

    /// The same without a challenge.
    var authorizationField: String? {
        if let authorization { return authorization }
        guard isHTTP, !waitsForQuestion, user != nil || password != nil else { return nil }
        return "Basic " + Data("\(user ?? ""):\(password ?? "")".utf8).base64EncodedString()
    }

    /// Host and port, for errors: `proxy.example:3128`; or the path of its socket.
    var name: String { socketPath ?? "\(host):\(port)" }

    /// As in ``init(_:)``: `socks5h://gate.example:1080`, without user and password.
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
