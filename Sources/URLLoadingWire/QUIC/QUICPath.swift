// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCNgtcp2

/// The path of a datagram: the socket that sends and receives it. To the codec a path is a number; ngtcp2 compares
/// addresses, so it is given one that stands for the number.
struct QUICPath {
    private let number: UInt32

    init(_ number: UInt32) { self.number = number }

    func withPointer<R>(_ body: (UnsafePointer<ngtcp2_path>) -> R) -> R {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(1)
        address.sin_addr.s_addr = (0x7F00_0000 | number).bigEndian
        return withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let end = ngtcp2_addr(addr: address, addrlen: socklen_t(MemoryLayout<sockaddr_in>.size))
                var path = ngtcp2_path(local: end, remote: end, user_data: nil)
                return body(&path)
            }
        }
    }
}

#endif
