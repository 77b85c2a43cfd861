// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO
import URLLoadingWire

/// An address that a load is about to connect to, with the host it belongs to. See ``AddressPolicy``.
///
/// ```swift
/// let address = ResolvedAddress("169.254.169.254")
/// address?.isLinkLocal  // true
/// address?.isGlobal     // false
/// ```
/// At most one of the `is…` properties is true: a loopback address is not also private. An IPv6 address that embeds an
/// IPv4 address is classified as the latter: IPv4-mapped `::ffff:10.0.0.1` is private, and so is `64:ff9b::10.0.0.1`,
/// which a NAT64 gateway translates to it. A NAT64 prefix of your own network is not recognised.
public struct ResolvedAddress: Sendable, Hashable, CustomStringConvertible {
    /// The host of the URL, in normal form: a name, or the address itself; IPv6 in brackets.
    public let host: String
    /// The port to connect to.
    public let port: UInt16
    private let bytes: [UInt8]
    private let kind: AddressKind

    /// Creates an address, for tests of policies.
    /// - Parameters:
    ///   - text: an IPv4 or IPv6 address without brackets and zone. Other text gives `nil`.
    ///   - host: the host that the address belongs to; by default the address itself.
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

    /// The address as text: `192.0.2.1`, or `2001:db8::1` as RFC 5952 recommends; without brackets, zone or port.
    public var text: String {
        let text = Origin.Host(address: bytes)?.description ?? ""
        return isIPv6 ? String(text.dropFirst().dropLast()) : text
    }
    /// Whether it is an IPv6 address, including those that embed an IPv4 address.
    public var isIPv6: Bool { bytes.count == 16 }

    /// Whether it is a loopback address: 127.0.0.0/8, `::1`.
    public var isLoopback: Bool { kind == .loopback }
    /// Whether it belongs to a private network: RFC 1918, unique local (RFC 4193), or the deprecated site-local
    /// addresses.
    public var isPrivate: Bool { kind == .private }
    /// Whether it is link-local: fe80::/10 or 169.254.0.0/16, where cloud providers serve instance metadata.
    public var isLinkLocal: Bool { kind == .linkLocal }
    /// Whether it is a multicast group: 224.0.0.0/4, ff00::/8.
    public var isMulticast: Bool { kind == .multicast }
    /// Whether it is `0.0.0.0` or `::`. Connecting to it leads to this machine.
    public var isUnspecified: Bool { kind == .unspecified }
    /// Whether it is globally reachable, according to the registries of RFC 6890. False for all of the above, and for
    /// reserved addresses, carrier-grade NAT (100.64.0.0/10), documentation, benchmarks, 6to4 and Teredo.
    public var isGlobal: Bool { kind == .global }

    /// The host and the address, `example.org 192.0.2.1:443`, or the address alone if it is the host.
    public var description: String {
        let address = isIPv6 ? "[\(text)]:\(port)" : "\(text):\(port)"
        return Origin.Host(address: bytes)?.description == host ? address : "\(host) \(address)"
    }
}
