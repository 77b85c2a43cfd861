// SPDX-License-Identifier: Apache-2.0

// In this folder: how a connection is made: addresses, proxies, tunnels, TLS

// Makes the connection for a route: resolves, races addresses, tunnels, secures. Each stage is timed in the
// transaction's record.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// The resolved addresses of a host, and the rest of the connect timeout.
struct FoundAddresses: Sendable {
    let addresses: [SocketAddress]
    let time: ConnectTime
}

/// The destination of a connection, and its security.
struct ConnectionTarget: Sendable {
    let origin: Origin
    var proxyChain = ProxyChain.direct
    /// The last proxy forwards requests instead of opening a tunnel.
    var isForwarded = false
    let isSecure: Bool
    /// The protocols offered in the TLS handshake (RFC 7301); nil for those of HTTP, empty for none.
    var protocols: [String]?
}

extension ConnectionTarget {
    fileprivate init(_ route: Route, offering versions: Configuration.HTTPVersions) {
        self.init(
            origin: route.origin, proxyChain: route.proxyChain, isForwarded: route.forwarder != nil,
            isSecure: route.origin.isSecure,
            protocols: versions.offered)
    }
}

/// What a pool can do for a connection that lacks a descriptor.
enum DescriptorRelief {
    /// It has closed an idle connection.
    case closedIdle
    /// Its connections are all in use, or other attempts hold descriptors; one may become free.
    case mayComeFree
    /// It holds no descriptor.
    case none
}

final class Connector: Sendable {
    let configuration: Configuration
    let secure: SecureContext
    /// The issuers that servers did not send; see `IssuerFetch`.
    let issuers = IssuerMemory()
    /// Closes the oldest idle connection of the pool, so that a new connection can use its descriptor. Its argument is
    /// the number of attempts that lack a descriptor.
    private let relieve: @Sendable (Int) -> DescriptorRelief
    private let attemptsWithoutDescriptor = Atomic<Int>(0)

    init(
        _ configuration: Configuration,
        relievedBy relieve: @escaping @Sendable (Int) -> DescriptorRelief = { _ in .none }
    ) {
        self.configuration = configuration
        self.relieve = relieve
        secure = SecureContext(configuration.tls)
    }

    /// Makes a connection for HTTP.
    func connect(
        _ route: Route, for request: ConnectionRequest, at found: FoundAddresses? = nil, offersHTTP2: Bool = true
    ) async throws(LoadError) -> LeasedConnection {
        try configuration.connections.httpVersions.checkTCP(to: route)
        let identifier = ConnectionIdentifier.make()
        let transport = try await transport(
            to: ConnectionTarget(route, offering: offersHTTP2 ? configuration.connections.httpVersions : .http1Only),
            for: request,
            tap: configuration.wireTap.map { ProxyTap(report: $0, connection: identifier) }, at: found)
        request.record?.mark(.connectEnd)
        return try connection(over: transport, route, identifier)
    }

    /// Returns the connection that speaks the negotiated protocol.
    @inline(never)
    private func connection(
        over transport: any Transport, _ route: Route, _ identifier: Int
    ) throws(LoadError) -> LeasedConnection {
        let chosen = (transport as? TLSTransport)?.negotiated?.applicationProtocol
        // RFC 9113 §9.2: HTTP/2 needs TLS 1.2.
        if chosen == "h2", let version = (transport as? TLSTransport)?.negotiated?.version, version < .tls12 {
            transport.close()
            throw LoadError(
                .secureConnectionFailed, phase: .securing, party: .remote,
                detail: "the server chose HTTP/2 with \(version.name)")
        }
        configuration.wireTap?(
            .connected(transport.description + (chosen == "h2" ? ", h2" : ""), connection: identifier))
        switch configuration.connections.httpVersions {
        // A forwarding proxy is sent HTTP/1.1.
        case _ where route.forwarder != nil:
            return .own(HTTP1Connection(transport, route, identifier, configuration), isNew: true)
        // The connection speaks the negotiated protocol only (RFC 7301 §3.2).
        case .automatic where chosen == "h2", .http3Preferred where chosen == "h2": break
        case .http2PriorKnowledge where chosen == nil || chosen == "h2": break
        case .http2PriorKnowledge:
            transport.close()
            throw LoadError(
                .notHTTP2, phase: .securing, party: .remote, detail: "the server chose \(chosen ?? "no protocol")")
        case .automatic, .http1Only, .http3Preferred, .http3PriorKnowledge:
            return .own(HTTP1Connection(transport, route, identifier, configuration), isNew: true)
        }
        do throws(WireViolation) {
            return .shared(try HTTP2Connection(transport, route, identifier, configuration), isNew: true)
        } catch {
            transport.close()
            throw LoadError(error, .connecting)
        }
    }

    /// A test replaces the dialer; no protocol is negotiated.
    var isScripted: Bool { configuration.dial != nil }

    /// Returns a connection for a byte stream, which offers no application protocol (RFC 7301). `TunnelAuthentication`
    /// answers challenges of proxies.
    func stream(
        to origin: Origin, through proxyChain: ProxyChain, isSecure: Bool, for request: ConnectionRequest
    ) async throws(LoadError) -> any Transport {
        var request = request
        request.access = NetworkAccess(configuration)
        return try await transport(
            to: ConnectionTarget(origin: origin, proxyChain: proxyChain, isSecure: isSecure, protocols: []),
            for: request)
    }

    /// Starts TLS on a connection in use. A connection of a test's dialer stays in the clear.
    func secure(
        _ transport: any Transport, to origin: Origin, _ client: any ConnectionClient
    ) async throws(LoadError) -> any Transport {
        guard configuration.dial == nil else { return transport }
        return try await client.handle.connecting { () throws(LoadError) in
            try await secure.handshake(over: transport, with: origin, offering: [], client, fetch(for: client))
        }
    }

    /// The fetch of issuers for a handshake with an origin; `nil` unless the session enables it.
    func fetch(for client: any ConnectionClient, _ access: NetworkAccess? = nil) -> IssuerFetch? {
        guard secure.settings.fetchesMissingIssuers else { return nil }
        return IssuerFetch(self, client, access ?? NetworkAccess(configuration))
    }

    /// Returns an open connection, with TLS if the target demands it, within the connect timeout.
    func transport(
        to target: ConnectionTarget, for request: ConnectionRequest, tap: ProxyTap? = nil,
        at found: FoundAddresses? = nil
    ) async throws(LoadError) -> any Transport {
        try await request.handle.connecting(found?.time) { () throws(LoadError) in
            try await open(target, for: request, tap: tap, at: found?.addresses)
        }
    }

    @inline(never)
    private func open(
        _ target: ConnectionTarget, for request: ConnectionRequest, tap: ProxyTap?, at known: [SocketAddress]?
    ) async throws(LoadError) -> any Transport {
        let open =
            target.proxyChain.isDirect
            ? try await socket(to: target.origin, request, at: known)
            : try await tunnel(to: target, for: request, tap: tap)
        guard target.isSecure, configuration.dial == nil else { return open }
        return try await secured(open, to: target, request)
    }

    // `secured`, `socket(by:)`, `socket(at:)` and `lookUp` are not inlined: only some connections call them, or they
    // return before the longest wait; inlined, their frames would last as long as the attempt
    // (docs/internals/scale.md).

    @inline(never)
    private func secured(
        _ open: any Transport, to target: ConnectionTarget, _ request: ConnectionRequest
    ) async throws(LoadError) -> any Transport {
        request.record?.mark(.secureStart)
        let transport = try await secure.handshake(
            over: open, with: target.origin, offering: target.protocols, request.client,
            fetch(for: request.client, request.access))
        request.record?.mark(.secureEnd)
        return transport
    }

    @inline(never)
    private func tunnel(
        to target: ConnectionTarget, for request: ConnectionRequest, tap: ProxyTap?
    ) async throws(LoadError) -> any Transport {
        let (host, port) = configuration.networks.addressOverrides.target(of: target.origin)
        return try await tunnel(
            TunnelPlan(
                proxyChain: target.proxyChain, host: host, port: port, isForwarded: target.isForwarded,
                request: request, tap: tap))
    }

    @inline(never)
    private func socket(
        to origin: Origin, _ request: ConnectionRequest, at known: [SocketAddress]?
    ) async throws(LoadError) -> any Transport {
        let (host, port) = configuration.networks.addressOverrides.target(of: origin)
        return try await socket(to: host, port, for: origin, request, at: known)
    }

    /// Connects a socket to the origin, or to the first proxy of the chain.
    func socket(
        to host: Origin.Host, _ port: UInt16, for origin: Origin?, _ request: ConnectionRequest,
        at known: [SocketAddress]? = nil
    ) async throws(LoadError) -> any Transport {
        let (handle, access, record) = (request.handle, request.access, request.record)
        access.pathNote?.note(configuration.networkMonitor.current)
        let found: [SocketAddress]
        if let dial = configuration.dial, let dialed = origin ?? Origin(proxy: host, port) {
            return try await socket(by: dial, to: dialed, request)
        }
        if let path = origin.flatMap({ configuration.networks.addressOverrides.unixSocket(for: $0) }) {
            return try await socket(at: path, request)
        }
        if let known { found = known } else { found = try await lookUp(host, port, handle, record) }
        let addresses = try allowed(found, of: host, access)
        record?.mark(.connectStart)
        return try await withDescriptors(handle) { () async throws(IOFailure) in
            try await ConnectRace.connect(
                addresses, with: configuration.sockets.bound(to: configuration.networks.interface?.binding),
                marked: access.traffic.mark, handle)
        }
    }

    /// Returns those of the resolved addresses that the policies allow; at least one.
    @inline(never)
    private func allowed(
        _ found: [SocketAddress], of host: Origin.Host, _ access: NetworkAccess
    ) throws(LoadError) -> [SocketAddress] {
        switch AddressPlan.make(found, of: host, access, configuration) {
        case .refuse(let error): throw error
        case .connect(let addresses): return addresses
        }
    }

    @inline(never)
    private func socket(
        by dial: @Sendable (Origin, StopToken) async throws(IOFailure) -> any Transport, to origin: Origin,
        _ request: ConnectionRequest
    ) async throws(LoadError) -> any Transport {
        request.record?.mark(.connectStart)
        return try await withDescriptors(request.handle) { () async throws(IOFailure) in
            try await dial(origin, request.handle)
        }
    }

    /// Connects to a Unix socket of this machine.
    @inline(never)
    func socket(
        at path: SocketAddress, _ request: ConnectionRequest
    ) async throws(LoadError) -> any Transport {
        request.record?.mark(.connectStart)
        return try await withDescriptors(request.handle) { () async throws(IOFailure) -> any Transport in
            do throws(IOFailure) { return try await SocketTransport.connect(to: path, request.handle) } catch {
                throw error.naming(path)
            }
        }
    }

    /// Retries `attempt` while it fails for lack of a descriptor and one can become free: an idle connection is closed
    /// for it, or the load waits for connections that are in use. The process may free one in any other way, which
    /// nothing notifies of, so the wait looks again after a time.
    private func withDescriptors<Value>(
        _ handle: StopToken, _ attempt: () async throws(IOFailure) -> Value
    ) async throws(LoadError) -> Value {
        var pause = Self.shortestPause
        var (isCounted, refusals) = (false, 0)
        defer { if isCounted { attemptsWithoutDescriptor.subtract(1, ordering: .relaxed) } }
        while true {
            do throws(IOFailure) { return try await attempt() } catch {
                guard error.isOutOfDescriptors else { throw LoadError(error) }
                if !isCounted { attemptsWithoutDescriptor.add(1, ordering: .relaxed) }
                isCounted = true
                switch relieve(attemptsWithoutDescriptor.load(ordering: .relaxed)) {
                case .closedIdle: continue
                case .mayComeFree: refusals = 0
                // The last holder may have let go since the attempt, so a single answer does not count.
                case .none:
                    refusals += 1
                    if refusals > 2 { throw LoadError(error) }
                }
            }
            do throws(IOFailure) {
                try await configuration.clock.sleep(until: configuration.clock.now() &+ pause, handle)
            } catch { throw LoadError(error) }
            pause = min(pause * 2, Self.longestPause)
        }
    }
    private static let shortestPause: Int64 = 2_000_000
    private static let longestPause: Int64 = 100_000_000

    /// False for an origin that is reached through a Unix socket.
    func hasAddresses(_ origin: Origin) -> Bool {
        configuration.networks.addressOverrides.unixSocket(for: origin) == nil
    }

    /// Resolves an origin to the addresses that the policies allow; one of them may already have a connection.
    func allowedAddresses(of origin: Origin, _ request: ConnectionRequest) async throws(LoadError) -> [SocketAddress] {
        let (host, port) = configuration.networks.addressOverrides.target(of: origin)
        return try await allowedAddresses(of: host, port, request)
    }

    /// Resolves a host to the addresses that the policies allow.
    func allowedAddresses(
        of host: Origin.Host, _ port: UInt16, _ request: ConnectionRequest
    ) async throws(LoadError) -> [SocketAddress] {
        try await allowedAddresses(of: host, port, for: host, request.access, request.handle, request.record)
    }

    /// - Parameter wanted: the host that the policies are asked about; not `host` where a server or a record of the
    ///   wanted host has named that.
    func allowedAddresses(
        of host: Origin.Host, _ port: UInt16, for wanted: Origin.Host, _ access: NetworkAccess, _ token: StopToken,
        _ record: TransactionRecord?
    ) async throws(LoadError) -> [SocketAddress] {
        try allowed(try await lookUp(host, port, token, record), of: wanted, access)
    }

    @inline(never)
    private func lookUp(
        _ host: Origin.Host, _ port: UInt16, _ handle: StopToken, _ record: TransactionRecord?
    ) async throws(LoadError) -> [SocketAddress] {
        try await withDescriptors(handle) { () async throws(IOFailure) in
            try await addresses(of: host, port, handle, record)
        }
    }

    private func addresses(
        of host: Origin.Host, _ port: UInt16, _ handle: StopToken, _ record: TransactionRecord?
    ) async throws(IOFailure) -> [SocketAddress] {
        if let given = configuration.networks.addressOverrides.addresses(of: host, port) { return given }
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
            let found = try await configuration.networks.resolver.addresses(of: name, handle).map { $0.withPort(port) }
            record?.mark(.lookupEnd)
            return found
        }
    }

    private static func loopback(_ port: UInt16) -> [SocketAddress] {
        let one = [UInt8](repeating: 0, count: 15) + [1]
        return [.ipv6(one, port: port), .ipv4((127, 0, 0, 1), port: port)]
    }
}
