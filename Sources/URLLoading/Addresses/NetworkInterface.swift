import URLLoadingIO
import URLLoadingWire

/// Our own end of connections: see ``Configuration/networkInterface``.
///
/// ```swift
/// configuration.networkInterface = .named("wg0")
/// configuration.networkInterface = try .address("192.0.2.7")
/// ```
/// It holds for connections to this machine too, not for Unix sockets and not for the look-up of names. If it cannot
/// be had the load ends with ``LoadError/Reason/interfaceUnavailable``: nothing goes another way.
public struct NetworkInterface: Sendable, Hashable {
    let binding: SocketBinding

    /// An interface by the system's name, such as `eth0`. Every byte goes out of it; where the system (Linux before
    /// 5.7) allows that to privileged processes only, connections come from its first address instead.
    public static func named(_ name: String) -> NetworkInterface { NetworkInterface(binding: .interface(name)) }

    /// An address of this machine, without brackets and zone. Hosts without an address of its family cannot be
    /// reached then.
    /// - Throws: ``LoadError/Reason/badURL`` for what is no address.
    public static func address(_ text: String) throws(LoadError) -> NetworkInterface {
        guard let bytes = Origin.Host.addressBytes(text), let address = SocketAddress(octets: bytes, port: 0)
        else { throw LoadError(.badURL, phase: .preparing, party: .local, detail: "no address: \(text)") }
        return NetworkInterface(binding: .address(address))
    }
}
