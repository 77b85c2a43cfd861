// Which of a host's addresses are tried. Pure.

import URLLoadingIO
import URLLoadingWire

enum AddressPlan {
    case connect([SocketAddress])
    case refuse(LoadError)

    static func make(_ found: [SocketAddress], of host: Origin.Host, _ policy: AddressPolicy) -> AddressPlan {
        guard !policy.isOpen else { return .connect(found) }
        let allowed = found.filter { policy.allows(ResolvedAddress($0, of: host)) }
        guard allowed.isEmpty, !found.isEmpty else { return .connect(allowed) }
        return .refuse(LoadError(.addressRefused, phase: .connecting, party: .local, detail: host.description))
    }
}
