// From a route to a connection: resolve, race, secure. Each stage marks the transaction's record.

import Synchronization
import URLLoadingIO
import URLLoadingWire

struct Connector: Sendable {
    private let configuration: Configuration
    private let secure: SecureContext
    private static let nextIdentifier = Atomic<Int>(1)

    init(_ configuration: Configuration) {
        self.configuration = configuration
        secure = SecureContext(configuration.tls)
    }

    func connect(
        _ route: Route, _ control: LoadControl, over access: NetworkAccess = .open, _ record: TransactionRecord? = nil,
        at addresses: [SocketAddress]? = nil
    ) async throws(LoadError) -> LeasedConnection {
        let isSecure = route.origin.isSecure
        let transport = try await transport(
            to: route.origin, isSecure: isSecure, offering: configuration.httpVersions.offered, control, access, record,
            at: addresses)
        let chosen = (transport as? TLSTransport)?.negotiated?.applicationProtocol
        let identifier = Self.nextIdentifier.add(1, ordering: .relaxed).oldValue
        record?.mark(.connectEnd)
        configuration.wireTap?(.connected(transport.description + (chosen == "h2" ? ", h2" : ""), connection: identifier))
        switch configuration.httpVersions {
        // What was chosen is spoken, and nothing else (RFC 7301 §3.2).
        case .automatic where chosen == "h2": break
        case .http2PriorKnowledge where chosen == nil || chosen == "h2": break
        case .http2PriorKnowledge:
            transport.close()
            throw LoadError(.notHTTP2, phase: .securing, party: .peer, detail: chosen ?? "")
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

    /// A connection for bytes that are not HTTP's, so it offers no protocol (RFC 7301).
    func stream(to origin: Origin, isSecure: Bool, _ control: LoadControl) async throws(LoadError) -> any Transport {
        let access = NetworkAccess(
            allowsCellular: configuration.allowsCellularAccess,
            allowsExpensive: configuration.allowsExpensiveNetworkAccess,
            allowsConstrained: configuration.allowsConstrainedNetworkAccess)
        return try await transport(to: origin, isSecure: isSecure, offering: [], control, access)
    }

    /// TLS over a connection in use. One that was dialed by a test's own means stays in the clear.
    func secure(
        _ transport: any Transport, to origin: Origin, _ control: LoadControl
    ) async throws(IOFailure) -> any Transport {
        guard configuration.dial == nil else { return transport }
        return try await secure.handshake(over: transport, with: origin, offering: [], control)
    }

    private func transport(
        to origin: Origin, isSecure: Bool, offering protocols: [String]? = nil, _ control: LoadControl,
        _ access: NetworkAccess, _ record: TransactionRecord? = nil, at known: [SocketAddress]? = nil
    ) async throws(LoadError) -> any Transport {
        access.pathNote?.note(configuration.networkMonitor.current)
        let found: [SocketAddress]
        do throws(IOFailure) {
            if let dial = configuration.dial {
                record?.mark(.connectStart)
                return try await dial(origin, control)
            }
            if let known { found = known } else { found = try await addresses(of: origin, control, record) }
        } catch {
            throw LoadError(error)
        }
        switch AddressPlan.make(found, of: origin.host, access, configuration) {
        case .refuse(let error): throw error
        case .connect(let addresses):
            do throws(IOFailure) {
                record?.mark(.connectStart)
                let socket = try await ConnectRace.connect(addresses, control)
                guard isSecure else { return socket }
                record?.mark(.secureStart)
                let transport = try await secure.handshake(over: socket, with: origin, offering: protocols, control)
                record?.mark(.secureEnd)
                return transport
            } catch {
                throw LoadError(error)
            }
        }
    }

    /// Where an origin may be connected to: for who may have a connection there already.
    func allowedAddresses(
        of origin: Origin, _ control: LoadControl, _ access: NetworkAccess, _ record: TransactionRecord?
    ) async throws(LoadError) -> [SocketAddress] {
        let found: [SocketAddress]
        do throws(IOFailure) { found = try await addresses(of: origin, control, record) } catch { throw LoadError(error) }
        switch AddressPlan.make(found, of: origin.host, access, configuration) {
        case .refuse(let error): throw error
        case .connect(let addresses): return addresses
        }
    }

    private func addresses(
        of origin: Origin, _ control: LoadControl, _ record: TransactionRecord?
    ) async throws(IOFailure) -> [SocketAddress] {
        switch origin.host.kind {
        case .ipv4(let bytes):
            return [.ipv4((bytes[0], bytes[1], bytes[2], bytes[3]), port: origin.port)]
        case .ipv6(let bytes, let zone):
            let scope = try zone.map { (zone) throws(IOFailure) in try SocketAddress.scope(of: zone) } ?? 0
            return [.ipv6(bytes, port: origin.port, scope: scope)]
        case .name(let name):
            // RFC 6761 §6.3: localhost is this machine, whatever a resolver says.
            let plain = origin.host.dnsName ?? name
            if plain == "localhost" || plain.hasSuffix(".localhost") { return Self.loopback(origin.port) }
            record?.mark(.lookupStart)
            let found = try await configuration.resolver.addresses(of: name, control).map { $0.withPort(origin.port) }
            record?.mark(.lookupEnd)
            return found
        }
    }

    private static func loopback(_ port: UInt16) -> [SocketAddress] {
        let one = [UInt8](repeating: 0, count: 15) + [1]
        return [.ipv6(one, port: port), .ipv4((127, 0, 0, 1), port: port)]
    }
}
