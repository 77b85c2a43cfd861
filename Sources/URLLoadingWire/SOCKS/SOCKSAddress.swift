// SPDX-License-Identifier: Apache-2.0

/// The destination requested from a SOCKS proxy: a host name, for the proxy to resolve, or an address.
package struct SOCKSAddress: Sendable, Hashable {
    package enum Host: Sendable, Hashable {
        case name([UInt8])
        /// Four bytes.
        case ipv4([UInt8])
        /// Sixteen.
        case ipv6([UInt8])
    }
    package let host: Host
    package let port: UInt16

    package init(_ host: Host, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Creates an address. Throws `invalidHost` for an address with a zone, which is meaningful on this machine only.
    package init(_ host: Origin.Host, port: UInt16) throws(WireViolation) {
        switch host.kind {
        case .name(let name): self.init(.name(Array(name.utf8)), port: port)
        case .ipv4(let bytes): self.init(.ipv4(bytes), port: port)
        case .ipv6(let bytes, nil): self.init(.ipv6(bytes), port: port)
        case .ipv6: throw .local(.invalidHost, "RFC 6874 1")
        }
    }

    /// Returns ATYP, DST.ADDR and DST.PORT (RFC 1928 §4). A name of more than 255 bytes is refused instead of being
    /// resolved locally, which would reveal it to the local network.
    func version5() throws(WireViolation) -> [UInt8] {
        switch host {
        case .ipv4(let bytes): return [1] + bytes + portBytes
        case .ipv6(let bytes): return [4] + bytes + portBytes
        case .name(let name):
            guard let length = UInt8(exactly: name.count), length > 0 else { throw .local(.invalidHost, "RFC 1928 5") }
            return [3, length] + name + portBytes
        }
    }

    /// Returns port and address, and the name that a SOCKS 4A proxy resolves in place of an impossible address.
    func version4() throws(WireViolation) -> (fixed: [UInt8], name: [UInt8]?) {
        switch host {
        case .ipv4(let bytes): return (portBytes + bytes, nil)
        case .ipv6: throw .local(.invalidHost, "SOCKS 4A")
        case .name(let name):
            guard (1...255).contains(name.count), !name.contains(0) else { throw .local(.invalidHost, "SOCKS 4A") }
            return (portBytes + [0, 0, 0, 1], name)
        }
    }

    private var portBytes: [UInt8] { [UInt8(port >> 8), UInt8(port & 0xFF)] }
}
