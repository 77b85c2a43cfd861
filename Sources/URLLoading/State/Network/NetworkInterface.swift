// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO
import URLLoadingWire

/// The local interface or address of connections: see ``Configuration/Networks/interface``.
///
/// ```swift
/// configuration.networks.interface = .named("wg0")
/// configuration.networks.interface = try .address("192.0.2.7")
/// ```
/// Applies to connections to this machine as well, but not to Unix sockets and name resolution. If the interface or
/// address is not available, the load ends with ``LoadError/Reason/interfaceUnavailable`` instead of using another one.
public struct NetworkInterface: Sendable, Hashable {
    let binding: SocketBinding

    /// An interface by its name, such as `eth0`. All packets leave through it. Linux before 5.7 allows that to
    /// privileged processes only; for other processes connections use the interface's first address instead.
    public static func named(_ name: String) -> NetworkInterface { NetworkInterface(binding: .interface(name)) }

    /// An address of this machine, without brackets and zone. Hosts without an address of the same family are then not
    /// reachable.
    /// - Throws: ``LoadError/Reason/badURL`` for an invalid address.
    public static func address(_ text: String) throws(LoadError) -> NetworkInterface {
        guard let bytes = Origin.Host.addressBytes(text), let address = SocketAddress(octets: bytes, port: 0)
        else { throw LoadError(.badURL, phase: .preparing, party: .local, detail: "not an IP address: \(text)") }
        return NetworkInterface(binding: .address(address))
    }
}
