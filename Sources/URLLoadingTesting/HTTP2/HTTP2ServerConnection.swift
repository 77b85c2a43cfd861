// SPDX-License-Identifier: Apache-2.0

// One accepted connection: secured, then served by a script or by the routes.

import Synchronization
import URLLoadingIO

final class HTTP2ServerConnection: ServedConnection {
    let number: Int
    private let server: HTTP2TestServer
    private let socket: SocketTransport
    private let token = StopToken()
    private let user = Lock<User>(.none)

    private enum User: Sendable {
        case none
        case script(HTTP2Peer)
        case routes(HTTP2Routes)
    }

    init(_ socket: SocketTransport, number: Int, _ server: HTTP2TestServer) {
        self.socket = socket
        self.number = number
        self.server = server
    }

    /// Ends the connection from outside.
    func end() { token.stop(.cancelled) }

    func release() { if case .script(let peer) = user.withLock({ $0 }) { peer.release() } }

    func insert(_ bytes: [UInt8]) { if case .routes(let routes) = user.withLock({ $0 }) { routes.insert(bytes) } }

    func serve() async {
        token.attach(socket.slot)
        let transport = await serveSecured()
        token.detach(socket.slot)
        transport.close()
        server.change { $0.record.close(number) }
    }

    /// Serves the connection; returns the transport to close.
    private func serveSecured() async -> any Transport {
        var transport: any Transport = socket
        var tls: HTTPTestServer.TLSInfo?
        if let context = server.secure {
            do throws(IOFailure) {
                let secured = try TLSTransport(server: context, over: socket)
                transport = secured
                try await secured.handshake(token)
                tls = secured.negotiated.map { HTTPTestServer.TLSInfo($0) }
            } catch { return transport }
        }
        let peer = HTTP2Peer(server, number: number, socket, transport, tls, token)
        if let script = server.state.withLock({ $0.script(for: number) }) {
            user.withLock { $0 = .script(peer) }
            await play(script, peer)
        } else {
            let routes = HTTP2Routes(peer)
            user.withLock { $0 = .routes(routes) }
            await routes.run()
        }
        return transport
    }

    private func play(_ script: HTTP2TestServer.Script, _ peer: HTTP2Peer) async {
        do { try await script(peer) } catch let failure as HTTP2Peer.Failure {
            // The complaint was recorded where the failure occurred.
            if case .streamReset = failure { _ = peer.complain("\(failure)") }
        } catch is CancellationError {
        } catch {
            _ = peer.complain("the script failed: \(error)")
        }
        server.change { $0.record.counts.scriptsEnded += 1 }
    }
}
