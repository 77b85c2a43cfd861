// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCNgtcp2

/// The path of a datagram: the socket of a client, or the address of a client that a server sees. To the codec a path
/// is a number; ngtcp2 compares addresses, so the end of the path that may change is given one that stands for the
/// number, and the other end always the same.
struct QUICPath {
    let number: UInt32
    private let side: Side

    enum Side { case client, server }

    /// The largest number that an address of 127.0.0.0/8 has room for.
    private static let most: UInt32 = 0xFF_FFFF

    init(_ number: UInt32, of side: Side) { (self.number, self.side) = (number & Self.most, side) }

    func withPointer<R>(_ body: (UnsafePointer<ngtcp2_path>) -> R) -> R {
        var (near, far) = (Self.address(0), Self.address(0))
        switch side {
        case .client: near = Self.address(number)
        case .server: far = Self.address(number)
        }
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &near) { near in
            near.withMemoryRebound(to: sockaddr.self, capacity: 1) { near in
                withUnsafeMutablePointer(to: &far) { far in
                    far.withMemoryRebound(to: sockaddr.self, capacity: 1) { far in
                        var path = ngtcp2_path(
                            local: ngtcp2_addr(addr: near, addrlen: length),
                            remote: ngtcp2_addr(addr: far, addrlen: length), user_data: nil)
                        return body(&path)
                    }
                }
            }
        }
    }

    /// Returns the number of a path that was made here; `nil` for one without addresses.
    static func number(of path: ngtcp2_path) -> UInt32? {
        guard let near = number(of: path.local), let far = number(of: path.remote) else { return nil }
        // One of them is 0.
        return near | far
    }

    private static func number(of end: ngtcp2_addr) -> UInt32? {
        guard let address = end.addr, Int(end.addrlen) == MemoryLayout<sockaddr_in>.size else { return nil }
        let value = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self)
        return UInt32(bigEndian: value.sin_addr.s_addr) & most
    }

    private static func address(_ number: UInt32) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(1)
        address.sin_addr.s_addr = (0x7F00_0000 | number).bigEndian
        return address
    }
}

#endif
