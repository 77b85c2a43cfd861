// Whether the system would reach a stream's peer by another way now.

import Synchronization
import URLLoadingIO

extension StreamTask {
    /// Calls `found` whenever the networks have changed and the system would, from then on, reach the peer by another
    /// address of this machine than the stream's; once for each. The stream stays where it is: its caller may make another.
    /// Returns when the stream has ended. One that is bound to an interface has no other way.
    package func watchRoutes(_ found: @escaping @Sendable () -> Void) async {
        // Nobody awaits it: it is cancelled with the scope.
        async let _: Void = load.watchRoutes(found)
        _ = await load.ended()
    }
}

extension StreamLoad {
    fileprivate func watchRoutes(_ found: @Sendable () -> Void) async {
        guard core.configuration.networkInterface == nil else { return }
        let monitor = core.configuration.networkMonitor
        var told: SocketAddress?
        for await _ in monitor.paths {
            guard let transport = state.withLock({ $0.transport }), let peer = transport.remoteAddress,
                let own = transport.localAddress?.withPort(0),
                let better = monitor.source.localAddress(towards: peer)?.withPort(0)
            else { continue }
            if better != own, better != told { found() }
            told = better
        }
    }
}
