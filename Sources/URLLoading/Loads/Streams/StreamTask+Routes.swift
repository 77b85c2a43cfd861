// SPDX-License-Identifier: Apache-2.0

// Notification that the system would now reach a stream's peer over another interface or address.

import Synchronization
import URLLoadingIO

extension StreamTask {
    /// Calls `found` after a change of the networks (links, addresses, default routes) from which on the system would
    /// reach the peer from another local address than the stream's; once per change. The stream keeps its connection;
    /// the caller may open another. Returns when the stream has ended. A stream that is bound to an interface has no
    /// other route.
    package func watchRoutes(_ found: @escaping @Sendable () -> Void) async {
        // Not awaited: leaving the scope cancels it.
        async let _: Void = load.watchRoutes(found)
        _ = await load.ended()
    }
}

extension StreamDriver {
    fileprivate func watchRoutes(_ found: @Sendable () -> Void) async {
        let source = core.configuration.networkMonitor.source
        let token = StopToken()
        guard core.configuration.networks.interface == nil, let system = try? PathMonitor(source) else { return }
        defer { system.close() }
        await withTaskCancellationHandler {
            var last: SocketAddress?
            guard (try? system.begin()) != nil else { return }
            repeat {
                guard let (own, now) = addresses(source) else { continue }
                if now != own, now != last { found() }
                last = now
            } while (try? await system.change(token)) != nil
        } onCancel: {
            token.stop(.cancelled)
        }
    }

    /// The stream's local address, and the local address that the system would choose now.
    private func addresses(_ source: any PathSource) -> (SocketAddress, SocketAddress)? {
        guard let transport = state.withLock({ $0.link?.transport }), let peer = transport.remoteAddress,
            let own = transport.localAddress?.withPort(0), let now = source.localAddress(towards: peer)?.withPort(0)
        else { return nil }
        return (own, now)
    }
}
