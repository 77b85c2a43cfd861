// SPDX-License-Identifier: Apache-2.0

// The address of a socket: IPv4, IPv6, or a Unix path.

package import URLLoadingCSystem

package struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    package enum Family: Sendable { case ipv4, ipv6, unix }
    package let family: Family
    /// The bytes of the family's `sockaddr`.
    private let bytes: [UInt8]

    package static func ipv4(_ octets: (UInt8, UInt8, UInt8, UInt8), port: UInt16) -> SocketAddress {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: [octets.0, octets.1, octets.2, octets.3]) }
        return withUnsafeBytes(of: &address) { SocketAddress(family: .ipv4, bytes: Array($0)) }
    }

    /// Creates an IPv6 address from 16 bytes; `scope` is the interface index of a zone identifier, or 0.
    package static func ipv6(_ octets: [UInt8], port: UInt16, scope: UInt32 = 0) -> SocketAddress {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_scope_id = scope
        withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: octets.prefix(16)) }
        return withUnsafeBytes(of: &address) { SocketAddress(family: .ipv6, bytes: Array($0)) }
    }

    package static func unix(_ path: String) throws(IOFailure) -> SocketAddress {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path8 = Array(path.utf8)
        // Leave one byte for the terminator.
        guard !path8.isEmpty, !path8.contains(0), path8.count < MemoryLayout.size(ofValue: address.sun_path)
        else { throw IOFailure(.invalidAddress(path), .connect) }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path8) }
        let size = MemoryLayout<sa_family_t>.size + path8.count + 1
        return withUnsafeBytes(of: &address) { SocketAddress(family: .unix, bytes: Array($0.prefix(size))) }
    }

    /// Creates an address in the abstract namespace of Unix sockets, which has no path: unix(7), "Abstract sockets".
    package static func abstractUnix(_ name: String) throws(IOFailure) -> SocketAddress {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name8 = Array(name.utf8)
        guard !name8.isEmpty, name8.count < MemoryLayout.size(ofValue: address.sun_path)
        else { throw IOFailure(.invalidAddress("@" + name), .connect) }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: [0] + name8) }
        let size = MemoryLayout<sa_family_t>.size + 1 + name8.count
        return withUnsafeBytes(of: &address) { SocketAddress(family: .unix, bytes: Array($0.prefix(size))) }
    }

    package init?(_ storage: sockaddr_storage, length: socklen_t) {
        var storage = storage
        let family: Family
        switch Int32(storage.ss_family) {
        case AF_INET: family = .ipv4
        case AF_INET6: family = .ipv6
        case AF_UNIX: family = .unix
        default: return nil
        }
        let bytes = withUnsafeBytes(of: &storage) { Array($0.prefix(Int(length))) }
        self.init(family: family, bytes: bytes)
    }

    private init(family: Family, bytes: [UInt8]) {
        self.family = family
        self.bytes = bytes
    }

    var systemFamily: Int32 {
        switch family {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }

    func withSystemAddress<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R? {
        bytes.withUnsafeBytes { raw in
            guard let base = raw.baseAddress else { return nil }
            return body(base.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
        }
    }

    package var port: UInt16 {
        guard family != .unix, bytes.count >= 4 else { return 0 }
        return UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    }

    /// The address that stands for all of the machine, in the family of `peer`; `nil` for a Unix socket.
    package static func unspecified(like peer: SocketAddress) -> SocketAddress? {
        switch peer.family {
        case .ipv4: ipv4((0, 0, 0, 0), port: 0)
        case .ipv6: ipv6([UInt8](repeating: 0, count: 16), port: 0)
        case .unix: nil
        }
    }

    package func withPort(_ port: UInt16) -> SocketAddress {
        guard family != .unix else { return self }
        var bytes = bytes
        bytes[2] = UInt8(port >> 8)
        bytes[3] = UInt8(port & 0xFF)
        return SocketAddress(family: family, bytes: bytes)
    }

    /// The bare address in network byte order: 4 bytes, 16 bytes, or none for a Unix socket.
    package var octets: [UInt8] {
        switch family {
        case .ipv4: bytes.count >= 8 ? Array(bytes[4..<8]) : []
        case .ipv6: bytes.count >= 24 ? Array(bytes[8..<24]) : []
        case .unix: []
        }
    }

    /// The address without its port: `127.0.0.1`, `::1`; the path of a Unix socket, or `@` and the name of an abstract
    /// one.
    package var host: String {
        switch family {
        case .ipv4:
            return bytes[4..<8].map(String.init).joined(separator: ".")
        case .ipv6:
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            let shown = bytes[8..<24].withUnsafeBytes {
                inet_ntop(AF_INET6, $0.baseAddress, &text, socklen_t(text.count))
            }
            return shown == nil
                ? "?" : String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        case .unix:
            let path = bytes.dropFirst(2)
            if path.count > 1, path.first == 0 { return "@" + String(decoding: path.dropFirst(), as: UTF8.self) }
            return String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    package var description: String {
        switch family {
        case .ipv4: "\(host):\(port)"
        case .ipv6: "[\(host)]:\(port)"
        case .unix: "unix:\(host)"
        }
    }
}

extension SocketAddress {
    /// Returns the interface index that a zone identifier names, by number or by name (RFC 4007 §11).
    package static func scope(of zone: String) throws(IOFailure) -> UInt32 {
        if let number = UInt32(zone) { return number }
        let index = if_nametoindex(zone)
        guard index != 0 else { throw IOFailure(.invalidAddress("no interface \(zone)"), .connect) }
        return index
    }
}

extension IOFailure {
    /// Returns the failure of a connection to this Unix socket, which it names. Failures that do not depend on the
    /// socket are returned unchanged: a stop, and a lack of descriptors.
    package func naming(_ socket: SocketAddress) -> IOFailure {
        guard case .system(let number) = code, !isOutOfDescriptors else { return self }
        return IOFailure(.unixSocket(socket.host, number), operation)
    }
}
