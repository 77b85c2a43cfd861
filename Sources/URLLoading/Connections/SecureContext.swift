// The session's TLS settings made ready, once, when the first secure connection is made: reading the
// system's roots costs more than a handshake.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class SecureContext: Sendable {
    private let settings: Configuration.TLS
    private let prepared = Lock<Result<TLSContext, TLSFailure>?>(nil)

    init(_ settings: Configuration.TLS) { self.settings = settings }

    /// - Parameter protocols: offered in place of HTTP's; an empty list offers none.
    func handshake(
        over socket: any Transport, with origin: Origin, offering protocols: [String]? = nil, _ control: LoadControl
    ) async throws(IOFailure) -> TLSTransport {
        try await handshake(over: socket, with: TLSPeer(origin.host, origin.port, .origin, protocols), control)
    }

    /// With a proxy, which proves who it is as an origin does.
    func handshake(over socket: any Transport, with proxy: Proxy, _ control: LoadControl) async throws(IOFailure) -> TLSTransport {
        try await handshake(over: socket, with: TLSPeer(proxy.host, proxy.port, .proxy, ["http/1.1"]), control)
    }

    private func handshake(
        over socket: any Transport, with peer: TLSPeer, _ control: LoadControl
    ) async throws(IOFailure) -> TLSTransport {
        let transport: TLSTransport
        do throws(IOFailure) { transport = try TLSTransport(client: context(), peer: peer, over: socket) } catch {
            socket.close()
            throw error
        }
        control.attach(transport.slot)
        defer { control.detach(transport.slot) }
        do throws(IOFailure) { try await transport.handshake(control) } catch {
            transport.close()
            throw error
        }
        return transport
    }

    /// Loads finding no context yet wait for the one that makes it: it does so without waiting itself.
    private func context() throws(IOFailure) -> TLSContext {
        let made = prepared.withLock { context in
            if let context { return context }
            let made = Result { () throws(TLSFailure) in try TLSContext(TLSConfiguration(settings)) }
            context = made
            return made
        }
        do throws(TLSFailure) { return try made.get() } catch { throw IOFailure(.tls(error), .handshake) }
    }
}

extension TLSConfiguration {
    fileprivate init(_ settings: Configuration.TLS) {
        self.init()
        minimumVersion = TLSVersion(settings.minimumVersion)
        maximumVersion = TLSVersion(settings.maximumVersion)
        verification = settings.unsafelySkipsVerification ? .unsafeNone : .full
        applicationProtocols = ["http/1.1"]
        roots = switch settings.roots {
        case .system: .system
        case .file(let path): .file(path)
        case .pem(let text): .pem(Array(text.utf8))
        case .systemAnd(let text): .systemAnd(Array(text.utf8))
        }
    }
}

extension TLSVersion {
    fileprivate init(_ version: Configuration.TLS.Version) {
        self = switch version {
        case .tls12: .tls12
        case .tls13: .tls13
        }
    }
}

extension TLSPeer {
    /// What the certificate must name is what the URL says, in normal form; never what DNS says.
    fileprivate init(_ host: Origin.Host, _ port: UInt16, _ role: Role, _ protocols: [String]?) {
        self.init(TLSPeerName(host), port: port, role: role, applicationProtocols: protocols)
    }
}

extension TLSPeerName {
    init(_ host: Origin.Host) {
        self = switch host.kind {
        case .name: .dns(host.dnsName ?? "")
        case .ipv4(let bytes): .ip(bytes)
        case .ipv6(let bytes, _): .ip(bytes)
        }
    }
}
