// From a route to a connection: resolve, race, tunnel, secure. Each stage marks the transaction's record.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// What the look-up of a host gave, and what it has left of the connect timeout.
struct FoundAddresses: Sendable {
    let addresses: [SocketAddress]
    let time: ConnectTime
}

struct Connector: Sendable {
    let configuration: Configuration
    let secure: SecureContext
    /// The pool whose idle connections give up their descriptors for new ones; empty for a connector without a pool.
    private let pool: Anchor.Weak
    private static let nextIdentifier = Atomic<Int>(1)
    /// What the next connection will be called: those made from now on have no lower number.
    static var next: Int { nextIdentifier.load(ordering: .relaxed) }
    static func makeIdentifier() -> Int { nextIdentifier.add(1, ordering: .relaxed).oldValue }

    init(_ configuration: Configuration, pool: Anchor.Weak = Anchor.Weak()) {
        self.configuration = configuration
        self.pool = pool
        secure = SecureContext(configuration.tls)
    }

    func connect(
        _ route: Route, _ control: LoadControl, over access: NetworkAccess = .open, _ record: TransactionRecord? = nil,
        at found: FoundAddresses? = nil, offersHTTP2: Bool = true
    ) async throws(LoadError) -> LeasedConnection {
        let identifier = Self.makeIdentifier()
        let transport = try await transport(
            to: route.origin, through: route.way, forwarded: route.forwarder != nil, keepsRefused: true,
            isSecure: route.origin.isSecure,
            offering: offersHTTP2 ? configuration.httpVersions.offered : Configuration.HTTPVersions.http1Only.offered,
            control, access, record, tap: configuration.wireTap.map { ProxyTap(tell: $0, connection: identifier) },
            at: found)
        let chosen = (transport as? TLSTransport)?.negotiated?.applicationProtocol
        record?.mark(.connectEnd)
        configuration.wireTap?(
            .connected(transport.description + (chosen == "h2" ? ", h2" : ""), connection: identifier))
        switch configuration.httpVersions {
        // A proxy that gets the requests themselves gets them in HTTP/1.1.
        case _ where route.forwarder != nil: return .own(HTTP1Connection(transport, route, identifier, configuration))
        // What was chosen is spoken, and nothing else (RFC 7301 §3.2).
        case .automatic where chosen == "h2": break
        case .http2PriorKnowledge where chosen == nil || chosen == "h2": break
        case .http2PriorKnowledge:
            transport.close()
            throw LoadError(
                .notHTTP2, phase: .securing, party: .peer, detail: "the server chose \(chosen ?? "no protocol")")
        case .automatic, .http1Only: return .own(HTTP1Connection(transport, route, identifier, configuration))
        }
        do throws(WireViolation) {
            return .shared(try HTTP2Connection(transport, route, identifier, configuration))
        } catch {
            transport.close()
            throw LoadError(error, .connecting)
        }
    }

    /// Connections are made by a test's own means, and agree on nothing.
    var isScripted: Bool { configuration.dial != nil }

    /// A connection for bytes that are not HTTP's, so it offers no protocol (RFC 7301). See `ProxyTalk` for proxies that ask.
    func stream(
        to origin: Origin, through way: ProxyChain, isSecure: Bool, _ control: LoadControl,
        _ record: TransactionRecord? = nil
    ) async throws(LoadError) -> any Transport {
        let access = NetworkAccess(
            allowsCellular: configuration.allowsCellularAccess,
            allowsExpensive: configuration.allowsExpensiveNetworkAccess,
            allowsConstrained: configuration.allowsConstrainedNetworkAccess, traffic: configuration.trafficClass)
        return try await transport(
            to: origin, through: way, keepsRefused: true, isSecure: isSecure, offering: [], control, access, record)
    }

    /// TLS over a connection in use. One that was dialed by a test's own means stays in the clear.
    func secure(
        _ transport: any Transport, to origin: Origin, _ control: LoadControl
    ) async throws(LoadError) -> any Transport {
        guard configuration.dial == nil else { return transport }
        return try await control.connecting { () throws(LoadError) in
            try await secure.handshake(over: transport, with: origin, offering: [], control)
        }
    }

    /// An open connection, secure if it is to be, made within the connect timeout.
    func transport(
        to origin: Origin, through way: ProxyChain = .direct, forwarded: Bool = false, keepsRefused: Bool = false,
        isSecure: Bool,
        offering protocols: [String]? = nil, _ control: LoadControl, _ access: NetworkAccess,
        _ record: TransactionRecord? = nil,
        tap: ProxyTap? = nil, at found: FoundAddresses? = nil
    ) async throws(LoadError) -> any Transport {
        var time = found?.time ?? ConnectTime(control)
        return try await control.connecting(&time) { () throws(LoadError) in
            try await open(
                to: origin, through: way, forwarded: forwarded, keepsRefused: keepsRefused, isSecure: isSecure,
                offering: protocols, control, access, record, tap: tap, at: found?.addresses)
        }
    }

    private func open(
        to origin: Origin, through way: ProxyChain, forwarded: Bool, keepsRefused: Bool, isSecure: Bool,
        offering protocols: [String]?, _ control: LoadControl, _ access: NetworkAccess, _ record: TransactionRecord?,
        tap: ProxyTap?, at known: [SocketAddress]?
    ) async throws(LoadError) -> any Transport {
        let (host, port) = configuration.addressOverrides.target(of: origin)
        let open =
            way.isDirect
            ? try await socket(to: host, port, for: origin, control, access, record, at: known)
            : try await tunnel(
                TunnelPlan(
                    way: way, host: host, port: port, isForwarded: forwarded, keepsRefused: keepsRefused,
                    access: access, record: record,
                    tap: tap), control)
        guard isSecure, configuration.dial == nil else { return open }
        record?.mark(.secureStart)
        let transport = try await secure.handshake(over: open, with: origin, offering: protocols, control)
        record?.mark(.secureEnd)
        return transport
    }

    /// A connection of our own: to the origin, or to the first proxy on the way there.
    func socket(
        to host: Origin.Host, _ port: UInt16, for origin: Origin?, _ control: LoadControl, _ access: NetworkAccess,
        _ record: TransactionRecord?, at known: [SocketAddress]? = nil
    ) async throws(LoadError) -> any Transport {
        access.pathNote?.note(configuration.networkMonitor.current)
        let found: [SocketAddress]
        if let dial = configuration.dial, let dialed = origin ?? Origin(proxy: host, port) {
            record?.mark(.connectStart)
            return try await withDescriptors { () async throws(IOFailure) in try await dial(dialed, control) }
        }
        if let path = origin.flatMap({ configuration.addressOverrides.unixSocket(for: $0) }) {
            return try await socket(at: path, control, record)
        }
        if let known { found = known } else { found = try await lookUp(host, port, control, record) }
        switch AddressPlan.make(found, of: host, access, configuration) {
        case .refuse(let error): throw error
        case .connect(let addresses):
            record?.mark(.connectStart)
            return try await withDescriptors { () async throws(IOFailure) in
                try await ConnectRace.connect(
                    addresses, from: configuration.networkInterface?.binding, marked: access.traffic.mark, control)
            }
        }
    }

    /// A connection to a socket of this machine that has a path.
    func socket(
        at path: SocketAddress, _ control: LoadControl, _ record: TransactionRecord?
    ) async throws(LoadError) -> any Transport {
        record?.mark(.connectStart)
        return try await withDescriptors { () async throws(IOFailure) in
            try await SocketTransport.connect(to: path, control)
        }
    }

    /// Does `attempt` once more, as long as it fails because no descriptor is left and an idle connection can give up its own.
    private func withDescriptors<Value>(_ attempt: () async throws(IOFailure) -> Value) async throws(LoadError) -> Value
    {
        while true {
            do throws(IOFailure) { return try await attempt() } catch {
                guard error.isOutOfDescriptors, pool.anchor?.pool.closeOldestIdle() == true else {
                    throw LoadError(error)
                }
            }
        }
    }

    /// An origin that is reached by a file has no address to share.
    func hasAddresses(_ origin: Origin) -> Bool { configuration.addressOverrides.unixSocket(for: origin) == nil }

    /// Where an origin may be connected to: for who may have a connection there already.
    func allowedAddresses(
        of origin: Origin, _ control: LoadControl, _ access: NetworkAccess, _ record: TransactionRecord?
    ) async throws(LoadError) -> [SocketAddress] {
        let (host, port) = configuration.addressOverrides.target(of: origin)
        return try await allowedAddresses(of: host, port, control, access, record)
    }

    /// Where a host may be connected to.
    func allowedAddresses(
        of host: Origin.Host, _ port: UInt16, _ control: LoadControl, _ access: NetworkAccess,
        _ record: TransactionRecord?
    ) async throws(LoadError) -> [SocketAddress] {
        let found = try await lookUp(host, port, control, record)
        switch AddressPlan.make(found, of: host, access, configuration) {
        case .refuse(let error): throw error
        case .connect(let addresses): return addresses
        }
    }

    private func lookUp(
        _ host: Origin.Host, _ port: UInt16, _ control: LoadControl, _ record: TransactionRecord?
    ) async throws(LoadError) -> [SocketAddress] {
        try await withDescriptors { () async throws(IOFailure) in try await addresses(of: host, port, control, record) }
    }

    private func addresses(
        of host: Origin.Host, _ port: UInt16, _ control: LoadControl, _ record: TransactionRecord?
    ) async throws(IOFailure) -> [SocketAddress] {
        if let given = configuration.addressOverrides.addresses(of: host, port) { return given }
        switch host.kind {
        case .ipv4(let bytes):
            return [.ipv4((bytes[0], bytes[1], bytes[2], bytes[3]), port: port)]
        case .ipv6(let bytes, let zone):
            let scope = try zone.map { (zone) throws(IOFailure) in try SocketAddress.scope(of: zone) } ?? 0
            return [.ipv6(bytes, port: port, scope: scope)]
        case .name(let name):
            // RFC 6761 §6.3: localhost is this machine, whatever a resolver says.
            let plain = host.dnsName ?? name
            if plain == "localhost" || plain.hasSuffix(".localhost") { return Self.loopback(port) }
            record?.mark(.lookupStart)
            let found = try await configuration.resolver.addresses(of: name, control).map { $0.withPort(port) }
            record?.mark(.lookupEnd)
            return found
        }
    }

    private static func loopback(_ port: UInt16) -> [SocketAddress] {
        let one = [UInt8](repeating: 0, count: 15) + [1]
        return [.ipv6(one, port: port), .ipv4((127, 0, 0, 1), port: port)]
    }
}
