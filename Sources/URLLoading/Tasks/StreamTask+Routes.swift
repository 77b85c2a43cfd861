// Whether the system would reach a stream's peer by another way now.

import Synchronization
import URLLoadingIO

extension StreamTask {
    /// Calls `found` whenever the networks have changed (links, addresses, default routes) and the system would, from then
    /// on, reach the peer by another address of this machine than the stream's; once for each. The stream stays where it is:
    /// its caller may make another. Returns when the stream has ended. One that is bound to an interface has no other way.
    package func watchRoutes(_ found: @escaping @Sendable () -> Void) async {
        // Nobody awaits it: it is cancelled with the scope.
        async let _: Void = load.watchRoutes(found)
        _ = await load.ended()
    }
}

extension StreamDriver {
    fileprivate func watchRoutes(_ found: @Sendable () -> Void) async {
        let source = core.configuration.networkMonitor.source
        let token = StopToken()
        guard core.configuration.networkInterface == nil, let system = try? PathMonitor(source) else { return }
        defer { system.close() }
        await withTaskCancellationHandler {
            var told: SocketAddress?
            guard (try? system.begin()) != nil else { return }
            repeat {
                guard let (own, now) = addresses(source) else { continue }
                if now != own, now != told { found() }
                told = now
            } while (try? await system.change(token)) != nil
        } onCancel: {
            token.stop(.cancelled)
        }
    }

    /// Our end, and what it would be now.
    private func addresses(_ source: any PathSource) -> (SocketAddress, SocketAddress)? {
        guard let transport = state.withLock({ $0.link?.transport }), let peer = transport.remoteAddress,
            let own = transport.localAddress?.withPort(0), let now = source.localAddress(towards: peer)?.withPort(0)
        else { return nil }
        return (own, now)
    }
}
