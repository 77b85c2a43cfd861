import URLLoadingIO
import URLLoadingWire

/// An address that a load is about to connect to, and whose name led there. See ``AddressPolicy``.
///
/// ```swift
/// let address = ResolvedAddress("169.254.169.254")
/// address?.isLinkLocal  // true
/// address?.isGlobal     // false
/// ```
/// At most one of the `is…` properties is true: an address of this machine is not also a private one. An
/// IPv6 address that stands for one of IPv4 is judged as that: IPv4-mapped `::ffff:10.0.0.1` is private, and
/// so is `64:ff9b::10.0.0.1`, which a translator leads there. The prefix of a translator of your own network is
/// not known here.
public struct ResolvedAddress: Sendable, Hashable, CustomStringConvertible {
    /// The host of the URL, in normal form: a name, or the address itself; IPv6 in brackets.
    public let host: String
    /// The port that is connected to.
    public let port: UInt16
    private let bytes: [UInt8]
    private let kind: AddressKind

    /// - Parameters:
    ///   - text: an address of IPv4 or IPv6, without brackets and zone. Anything else gives `nil`.
    ///   - host: whose address it is; without one, its own.
    public init?(_ text: String, port: UInt16 = 443, host: String? = nil) {
        let isIPv6 = text.utf8.contains(UInt8(ascii: ":"))
        guard let parsed = try? Origin.Host(isIPv6 ? "[\(text)]" : text) else { return nil }
        switch parsed.kind {
        case .ipv4(let bytes), .ipv6(let bytes, nil): self.init(bytes, port: port, host: host ?? parsed.description)
        case .name, .ipv6: return nil
        }
    }

    init(_ address: SocketAddress, of host: Origin.Host) {
        self.init(address.octets, port: address.port, host: host.description)
    }

    private init(_ bytes: [UInt8], port: UInt16, host: String) {
        self.bytes = bytes
        self.port = port
        self.host = host
        kind = AddressKind(bytes)
    }

    /// The address as text: `192.0.2.1`, or `2001:db8::1` as RFC 5952 recommends; no brackets, zone or port.
    public var text: String {
        let text = Origin.Host(address: bytes)?.description ?? ""
        return isIPv6 ? String(text.dropFirst().dropLast()) : text
    }
    /// Whether it is an address of IPv6, be it one that stands for another of IPv4.
    public var isIPv6: Bool { bytes.count == 16 }

    /// This machine: 127.0.0.0/8, `::1`.
    public var isLoopback: Bool { kind == .loopback }
    /// Somebody's own network: RFC 1918, unique local addresses (RFC 4193), the old site-local ones.
    public var isPrivate: Bool { kind == .private }
    /// The link it is on: 169.254.0.0/16, where clouds keep their metadata, and fe80::/10.
    public var isLinkLocal: Bool { kind == .linkLocal }
    /// A group: 224.0.0.0/4, ff00::/8.
    public var isMulticast: Bool { kind == .multicast }
    /// `0.0.0.0` or `::`. Connecting to it leads to this machine.
    public var isUnspecified: Bool { kind == .unspecified }
    /// Reachable from anywhere in the internet, by the registries of RFC 6890. False for all above and for what is
    /// reserved, shared by a carrier (100.64.0.0/10), for documentation or benchmarks, 6to4 and Teredo.
    public var isGlobal: Bool { kind == .global }

    /// `example.org 192.0.2.1:443`, or without the name if there is none.
    public var description: String {
        let address = isIPv6 ? "[\(text)]:\(port)" : "\(text):\(port)"
        return Origin.Host(address: bytes)?.description == host ? address : "\(host) \(address)"
    }
}
