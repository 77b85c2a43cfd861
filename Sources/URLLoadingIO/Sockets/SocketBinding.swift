// SPDX-License-Identifier: Apache-2.0

// The local end of connections, where the routing table is not to choose it.

import URLLoadingCSystem

package enum SocketBinding: Sendable, Hashable {
    /// A network interface, by name.
    case interface(String)
    /// A local address.
    case address(SocketAddress)

    func bind(_ descriptor: Int32, for peer: SocketAddress) throws(IOFailure) {
        guard peer.family != .unix else { return }
        switch self {
        case .interface(let name): try bind(descriptor, to: name, for: peer)
        case .address(let address): try bind(descriptor, to: address, for: peer)
        }
    }

    private func bind(_ descriptor: Int32, to name: String, for peer: SocketAddress) throws(IOFailure) {
        let result = csys_bind_interface(descriptor, name)
        if result == 0 { return }
        // Before Linux 5.7 only a privileged process may bind to an interface. Its address is the next best choice: it
        // works where packets are routed by source address, as they mostly are.
        guard result == -EPERM else { throw IOFailure(.cannotBind("\(name): \(SystemError.words(-result))"), .connect) }
        var storage = sockaddr_storage()
        let length = csys_interface_address(name, peer.systemFamily, &storage)
        guard length > 0, let address = SocketAddress(storage, length: socklen_t(length))
        else { throw IOFailure(.cannotBind("\(name): no such interface, or no address of this family"), .connect) }
        try bind(descriptor, to: address.withPort(0), for: peer)
    }

    private func bind(_ descriptor: Int32, to address: SocketAddress, for peer: SocketAddress) throws(IOFailure) {
        guard address.family == peer.family
        else { throw IOFailure(.cannotBind("\(address.host) is of another family than the host's address"), .connect) }
        let result = address.withSystemAddress { csys_bind_address(descriptor, $0, $1) } ?? -EINVAL
        guard result == 0 else {
            throw IOFailure(.cannotBind("\(address.host): \(SystemError.words(-result))"), .connect)
        }
    }
}
