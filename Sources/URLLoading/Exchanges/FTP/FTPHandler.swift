// SPDX-License-Identifier: Apache-2.0

// In this folder: ftp and ftps: a login, a transfer, its body

// Handles ftp and ftps: a login, a new or idle control connection, a transfer; retried on a fresh connection if an idle
// one turned out to be closed.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct FTPHandler: DirectHandler {
    func canHandle(_ request: Request) -> Bool {
        switch request.url.scheme?.lowercased() {
        case "ftp", "ftps": true
        default: false
        }
    }

    func exchange(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        guard let policy = hop.request.retryPolicy ?? load.core.configuration.retries.policy else {
            return try await once(hop, for: load)
        }
        return try await runAttempts(hop, policy, for: load)
    }

    func once(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        do throws(LoadError) {
            let plan = try FTPPlan.make(hop.request)
            var login = try await FTPLogin(plan.target, load)
            var isFresh = false
            while true {
                let transfer: FTPTransfer
                let attempt = FTPAttempt(
                    plan: plan, request: hop.request, login: login, isFresh: isFresh,
                    record: load.events.map { _ in TransactionRecord(hop.request, isFTP: true) })
                do throws(LoadError) {
                    transfer = try await lease(attempt, for: load)
                } catch {
                    if let record = attempt.record { load.events?.add(record, error) }
                    throw error
                }
                do throws(LoadError) {
                    let exchange = try await transfer.run(login)
                    await login.accepted()
                    return exchange
                } catch {
                    transfer.fail(error)
                    if error.isWrongLogin {
                        try await login.change(after: error)
                    } else if transfer.failedStale(error), !isFresh {
                        isFresh = true
                    } else {
                        throw error
                    }
                }
            }
        } catch {
            throw error.at(hop.request.url)
        }
    }
}

/// One attempt at a request.
struct FTPAttempt {
    let plan: FTPPlan
    let request: Request
    let login: FTPLogin
    /// Excludes idle connections, after one turned out to be stale.
    let isFresh: Bool
    let record: TransactionRecord?
}

extension LoadError {
    fileprivate var isWrongLogin: Bool { reason == .userAuthenticationRequired && phase == .connecting }
}

/// Makes the connections to one server.
struct FTPConnector {
    private let load: LoadContext
    private let access: NetworkAccess
    let route: Route
    /// Refused tunnels on the route of the control connection.
    private let refused: RefusedTunnels?
    private var connector: Connector { load.core.pool.connector }

    init(_ load: LoadContext, _ access: NetworkAccess, _ route: Route, _ refused: RefusedTunnels?) {
        self.load = load
        self.access = access
        self.route = route
        self.refused = refused
    }

    /// Makes a control connection; its conversation starts explicit TLS.
    func control(_ record: TransactionRecord?) async throws(LoadError) -> FTPConnection {
        let configuration = load.core.configuration
        let identifier = ConnectionIdentifier.make()
        let isImplicit = route.origin.scheme == "ftps"
        let time = ConnectTime(load.handle)
        let transport = try await load.handle.connecting(time) { () throws(LoadError) in
            try await connector.transport(
                to: ConnectionTarget(
                    origin: route.origin, proxyChain: route.proxyChain, isSecure: isImplicit, protocols: []),
                for: ConnectionRequest(client: load, access: access, record: record, refused: refused),
                tap: configuration.wireTap.map { ProxyTap(report: $0, connection: identifier) })
        }
        record?.mark(.connectEnd)
        configuration.wireTap?(.connected(transport.description, connection: identifier))
        let security: FTPConversation.Security =
            isImplicit ? .implicit : configuration.ftp.security == .explicit ? .explicit : .none
        return FTPConnection(transport, route, identifier, security, configuration, time)
    }

    /// Makes a data connection, to the address of the control connection's peer or through the same proxies. An address
    /// in the server's reply is ignored, because a server could direct the client to another host with it.
    func data(beside control: any Transport, _ port: UInt16) async throws(LoadError) -> any Transport {
        if !route.proxyChain.isDirect {
            let (host, _) = connector.configuration.networks.addressOverrides.target(of: route.origin)
            return try await TunnelAuthentication(route.origin, load, load.core).open(route.proxyChain) {
                (proxyChain, refused) throws(LoadError) in
                try await connector.tunnel(
                    Connector.TunnelPlan(
                        proxyChain: proxyChain, host: host, port: port,
                        request: ConnectionRequest(client: load, access: access, refused: refused)))
            }
        }
        let origin: Origin
        do throws(WireViolation) {
            origin = try Origin(scheme: route.origin.scheme, host: route.origin.host, port: port)
        } catch {
            throw LoadError(error, .connecting)
        }
        let wanted = ConnectionRequest(client: load, access: access)
        guard connector.configuration.dial == nil else {
            return try await connector.socket(to: origin.host, port, for: origin, wanted)
        }
        guard let peer = control.remoteAddress, peer.family != .unix else {
            throw LoadError(
                .cannotConnect, phase: .connecting, party: .local, detail: "no address to open a data connection to")
        }
        return try await connector.socket(to: origin.host, port, for: nil, wanted, at: [peer.withPort(port)])
    }

    /// Starts TLS on a control connection in use.
    func secure(_ transport: any Transport) async throws(LoadError) -> any Transport {
        try await connector.secure(transport, to: route.origin, load)
    }

    func secure(_ data: any Transport, beside control: any Transport) async throws(LoadError) -> any Transport {
        guard let control = control as? TLSTransport else { return data }
        return try await connector.secure.handshake(
            over: data, with: route.origin, continuing: control, load, connector.fetch(for: load))
    }
}
