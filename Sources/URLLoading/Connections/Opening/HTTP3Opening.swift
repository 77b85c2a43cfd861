// SPDX-License-Identifier: Apache-2.0

// Makes an HTTP/3 connection: resolves, and races the addresses (RFC 8305) until one has completed its handshake.

#if HTTP3

import Synchronization
import URLLoadingIO
import URLLoadingWire

struct HTTP3Opening: Sendable {
    let connector: Connector
    let route: Route
    let target: AlternativeServiceTable.Target
    /// The addresses of the origin, as far as the load knows them.
    var addresses: [SocketAddress]?
    let access: NetworkAccess
    let news: PathNews
    /// What an attempt may send as early data while it is the only one; `nil` also once the load has ended or has
    /// another connection.
    weak var early: EarlyRequest?
    /// Nanoseconds after which the handshake with one address fails; `nil` leaves that to the caller.
    var handshakeTimeout: Int64?
    let onChange: @Sendable (HTTP3Connection, Int) -> Void

    /// Returns an open connection.
    /// - Parameter record: receives the times of the stages; `nil` if the load does not wait for the connection.
    func run(_ token: StopToken, _ record: TransactionRecord?) async throws(LoadError) -> HTTP3Connection {
        let configuration = connector.configuration
        access.pathNote?.note(configuration.networkMonitor.current)
        let (host, port) =
            target.service.map { ($0.host ?? route.origin.host, $0.port) }
            ?? configuration.networks.addressOverrides.target(of: route.origin)
        let addresses: [SocketAddress]
        if let known = self.addresses, target.service?.host == nil {
            addresses = known.map { $0.withPort(port) }
        } else {
            addresses = try await connector.allowedAddresses(
                of: host, port, for: route.origin.host, access, token, record)
        }
        record?.mark(.connectStart)
        record?.mark(.secureStart)
        let connection = try await race(ConnectRace.interleave(addresses), token)
        record?.mark(.secureEnd)
        record?.mark(.connectEnd)
        configuration.wireTap?(
            .connected("\(connection.description), \(target.reason.words)", connection: connection.identifier))
        return connection
    }

    private func race(_ order: [SocketAddress], _ token: StopToken) async throws(LoadError) -> HTTP3Connection {
        let watcher = Poller.shared.borrowSlot()
        token.attach(watcher)
        var attempts: [HTTP3Connection] = []
        defer {
            // What was not returned.
            for attempt in attempts { attempt.close() }
            token.detach(watcher)
            Poller.shared.returnSlot(watcher)
        }
        var race = ConnectRace(count: order.count)
        var failure: LoadError?
        while true {
            do throws(IOFailure) { try token.check(.handshake) } catch { throw LoadError(error) }
            for attempt in attempts {
                switch attempt.state.withLock({ $0.phase }) {
                case .opening: continue
                case .open(let peer):
                    attempt.opened(peer)
                    attempts.removeAll { $0 === attempt }
                    return attempt
                case .over(.io(let why)):
                    note(LoadError(why), &failure)
                    attempts.removeAll { $0 === attempt }
                    race.failed()
                case .over(let why):
                    note(why.loadError(.connecting, hasBegun: false), &failure)
                    attempts.removeAll { $0 === attempt }
                    race.failed()
                }
            }
            switch race.step(now: Poller.now()) {
            case .start(let next):
                // The server could answer each of two attempts with early data.
                let early = attempts.isEmpty ? early : nil
                do throws(LoadError) { attempts.append(try begin(order[next], watcher, early)) } catch {
                    note(error, &failure)
                    race.failed()
                }
            case .wait(let moment):
                if moment != .max { Poller.shared.schedule(watcher, at: moment) }
                await Poller.shared.parkIdle(watcher, token)
            case .giveUp:
                throw failure ?? LoadError(.hostNotFound, phase: .connecting, party: .remote)
            }
        }
    }

    /// Keeps the failure that says most: of two, one of a server that has answered.
    private func note(_ new: LoadError, _ failure: inout LoadError?) {
        if failure.map({ [.connectionRefused, .unreachable].contains($0.reason) }) != false { failure = new }
    }

    private func begin(
        _ address: SocketAddress, _ watcher: PollSlot, _ early: EarlyRequest?
    ) throws(LoadError) -> HTTP3Connection {
        let configuration = connector.configuration
        let setup = configuration.sockets.bound(to: configuration.networks.interface?.binding)
        let sockets = HTTP3SocketMaker(
            peer: address, setup: setup, mark: access.traffic.mark, source: configuration.networkMonitor.source)
        let (tls, socket): (QUICTLS, DatagramSocket)
        do throws(IOFailure) {
            tls = try connector.secure.quic(to: route.origin, sendsEarlyData: early != nil)
            socket = try sockets.make()
        } catch { throw LoadError(error) }
        do throws(WireViolation) {
            let connection = try HTTP3Connection(
                sockets, tls, route, configuration, access, news, opener: watcher, early: early,
                handshakeTimeout: handshakeTimeout, onChange: onChange)
            connection.run(socket)
            return connection
        } catch {
            socket.close()
            throw LoadError(error, .connecting)
        }
    }
}

extension SecureContext {
    /// Returns the TLS of a new QUIC connection to an origin, with the session's settings.
    /// - Parameter sendsEarlyData: whether the load has something to send as early data.
    func quic(to origin: Origin, sendsEarlyData: Bool) throws(IOFailure) -> QUICTLS {
        var peer = TLSPeer(TLSPeerName(origin.host), port: origin.port, applicationProtocols: ["h3"])
        if case .ipv6(_, let zone?) = origin.host.kind { peer.zone = zone }
        return try QUICTLS(client: context(), peer: peer, sendsEarlyData: sendsEarlyData)
    }
}

#endif
