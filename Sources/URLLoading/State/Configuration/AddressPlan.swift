// SPDX-License-Identifier: Apache-2.0

// Selects the addresses of a host to connect to. Pure, except for the address policy's closure and the query of the
// network path.

import URLLoadingIO
import URLLoadingWire

enum AddressPlan {
    case connect([SocketAddress])
    case refuse(LoadError)

    static func make(
        _ found: [SocketAddress], of host: Origin.Host, _ access: NetworkAccess, _ configuration: Configuration
    ) -> AddressPlan {
        var allowed = found
        if !configuration.networks.addressPolicy.isOpen {
            allowed = found.filter { configuration.networks.addressPolicy.allows(ResolvedAddress($0, of: host)) }
            guard !allowed.isEmpty else {
                return .refuse(LoadError(.addressRefused, phase: .connecting, party: .local, detail: host.description))
            }
        }
        // Loopback addresses need no network.
        guard !access.isOpen, !allowed.allSatisfy(\.isThisMachine),
            let refusal = access.refusal(of: configuration.networkMonitor.current)
        else { return .connect(allowed) }
        let own = allowed.filter(\.isThisMachine)
        return own.isEmpty ? .refuse(refusal) : .connect(own)
    }
}
