// SPDX-License-Identifier: Apache-2.0

// Settings of a connection's socket that are applied before it connects.

import Glibc
import URLLoadingCSystem

package struct SocketSetup: Sendable, Hashable {
    /// Probes of an idle connection by TCP (RFC 9293 §3.8.4).
    package struct KeepAlive: Sendable, Hashable {
        /// Seconds of silence before the first probe, and between two probes.
        package var seconds: Int32
        /// The number of unanswered probes after which the connection is lost; `nil` for the system's.
        package var count: Int32?

        package init(seconds: Int32, count: Int32? = nil) { (self.seconds, self.count) = (seconds, count) }
    }

    /// The interface or address of the local end; `nil` if the routing table is to choose it.
    package var binding: SocketBinding?
    /// The local ports; the first free one is taken. `nil` for any port.
    package var ports: ClosedRange<UInt16>?
    package var keepAlive: KeepAlive?

    package init(binding: SocketBinding? = nil) { self.binding = binding }

    /// Returns the settings with another local end.
    package func bound(to binding: SocketBinding?) -> SocketSetup {
        var setup = self
        setup.binding = binding
        return setup
    }

    func apply(to descriptor: Int32, for peer: SocketAddress) throws(IOFailure) {
        guard peer.family != .unix else { return }
        if let keepAlive {
            let outcome = csys_set_keep_alive(descriptor, keepAlive.seconds, keepAlive.count ?? 0)
            guard outcome == 0 else { throw IOFailure(.system(-outcome), .connect) }
        }
        guard let ports else {
            if let binding { try binding.bind(descriptor, for: peer) }
            return
        }
        try bind(descriptor, to: ports, for: peer)
    }

    private func bind(_ descriptor: Int32, to ports: ClosedRange<UInt16>, for peer: SocketAddress) throws(IOFailure) {
        var local = SocketAddress.unspecified(like: peer)
        switch binding {
        case .address(let address)?: local = address
        // Binds the interface; a socket that this gives an address cannot be bound to a port any more, which the
        // system reports.
        case .interface?: try binding?.bind(descriptor, for: peer)
        case nil: break
        }
        guard let local, local.family == peer.family else {
            throw IOFailure(.cannotBind("the local address is of another family than the host's"), .connect)
        }
        var outcome: Int32 = 0
        for port in ports {
            outcome = local.withPort(port).withSystemAddress { csys_bind_address(descriptor, $0, $1) } ?? -EINVAL
            guard outcome == -EADDRINUSE || outcome == -EACCES else { break }
        }
        guard outcome == 0 else {
            let range =
                ports.count == 1 ? "port \(ports.lowerBound)" : "ports \(ports.lowerBound) to \(ports.upperBound)"
            throw IOFailure(.cannotBind("\(range): \(SystemError.words(-outcome))"), .connect)
        }
    }
}
