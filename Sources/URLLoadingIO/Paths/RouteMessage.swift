// SPDX-License-Identifier: Apache-2.0

// Decodes rtnetlink(7) messages about networks; stateless. Decoding ends on any input: inconsistent lengths yield
// `damaged`, upon which the caller reads everything again.

/// A network interface.
package struct PathLink: Sendable, Hashable {
    package let index: Int32
    package let name: String
    /// The kind of hardware, an ARPHRD number.
    package let hardware: UInt16
    package let flags: UInt32

    package init(index: Int32, name: String, hardware: UInt16, flags: UInt32) {
        self.index = index
        self.name = name
        self.hardware = hardware
        self.flags = flags & (Self.up | Self.running | Self.loopback)
    }

    // IFF_UP, IFF_LOOPBACK and IFF_RUNNING of netdevice(7), the only flags used here.
    package static let up: UInt32 = 0x1, loopback: UInt32 = 0x8, running: UInt32 = 0x40

    package var isLoopback: Bool { flags & Self.loopback != 0 }
    /// True if the interface is up and has a carrier.
    package var isRunning: Bool { flags & (Self.up | Self.running) == Self.up | Self.running }
}

/// An interface's address of universal scope, excluding link-local and host-local ones.
package struct PathAddress: Sendable, Hashable {
    package let index: Int32
    package let octets: [UInt8]
    package var isIPv6: Bool { octets.count == 16 }
}

/// A default route.
package struct PathRoute: Sendable, Hashable {
    package let isIPv6: Bool
    /// The interfaces that the route leads through; several for a multipath route.
    package let indices: [Int32]
    /// The route with the lowest metric is used.
    package let metric: UInt32
}

package enum RouteMessage: Sendable, Hashable {
    case link(PathLink)
    case linkRemoved(Int32)
    case address(PathAddress)
    case addressRemoved(PathAddress)
    case route(PathRoute)
    case routeRemoved(PathRoute)
    /// A message that is ignored.
    case other
    /// The end of an answer.
    case done
    /// The kernel answered with this errno.
    case failed(Int32)
    /// A malformed message; the rest of its datagram cannot be decoded.
    case damaged
}

/// Reads the messages of one datagram in order.
package struct RouteMessageReader {
    package struct Entry: Sendable, Hashable {
        package let message: RouteMessage
        /// Port id and sequence number of the request that the message answers.
        package let port: UInt32
        package let sequence: UInt32
        /// The state changed while the kernel was answering (NLM_F_DUMP_INTR).
        package let isInterrupted: Bool
    }

    private var rest: NativeBytes

    package init(_ datagram: ArraySlice<UInt8>) { rest = NativeBytes(datagram) }

    /// Returns the next message; `nil` at the end.
    package mutating func next() -> Entry? {
        guard rest.count > 0 else { return nil }
        guard let length = rest.number(0, UInt32.self).map(Int.init), let type = rest.number(4, UInt16.self),
            let flags = rest.number(6, UInt16.self), let sequence = rest.number(8, UInt32.self),
            let port = rest.number(12, UInt32.self), length >= 16, let body = rest.part(16, length)
        else {
            rest = NativeBytes([])
            return Entry(message: .damaged, port: 0, sequence: 0, isInterrupted: false)
        }
        rest = rest.dropping(NativeBytes.aligned(length))
        let message = Self.message(type, body)
        if message == .damaged { rest = NativeBytes([]) }
        return Entry(message: message, port: port, sequence: sequence, isInterrupted: flags & 0x10 != 0)
    }

    /// Decodes one message. The type numbers are those of linux/netlink.h and linux/rtnetlink.h, which never change.
    private static func message(_ type: UInt16, _ body: NativeBytes) -> RouteMessage {
        switch type {
        case 2: failure(body)
        case 3: .done
        case 4: .damaged  // NLMSG_OVERRUN
        case 16: link(body) { .link($0) }
        case 17: link(body) { .linkRemoved($0.index) }
        case 20:
            address(body) {
                .address($0)
            } unusable: {
                .addressRemoved($0)
            }
        case 21:
            address(body) {
                .addressRemoved($0)
            } unusable: {
                .addressRemoved($0)
            }
        case 24: route(body) { .route($0) }
        case 25: route(body) { .routeRemoved($0) }
        default: .other
        }
    }

    private static func failure(_ body: NativeBytes) -> RouteMessage {
        guard let number = body.number(0, Int32.self) else { return .damaged }
        // Error 0 is an acknowledgement.
        return number == 0 ? .other : .failed(number == .min ? .max : abs(number))
    }

    /// Decodes a struct ifinfomsg.
    private static func link(_ body: NativeBytes, _ make: (PathLink) -> RouteMessage) -> RouteMessage {
        guard let family = body.number(0, UInt8.self), let hardware = body.number(2, UInt16.self),
            let index = body.number(4, Int32.self), let flags = body.number(8, UInt32.self)
        else { return .damaged }
        // AF_BRIDGE messages have the same type but concern a bridge's ports: a removed port is not a removed link.
        guard family == 0 else { return .other }
        var name = ""
        let isWhole = body.attributes(from: 16) { type, value in
            if type == 3 { name = String(decoding: value.bytes.prefix { $0 != 0 }, as: UTF8.self) }  // IFLA_IFNAME
        }
        return isWhole ? make(PathLink(index: index, name: name, hardware: hardware, flags: flags)) : .damaged
    }

    /// Decodes a struct ifaddrmsg.
    private static func address(
        _ body: NativeBytes, _ make: (PathAddress) -> RouteMessage, unusable: (PathAddress) -> RouteMessage
    ) -> RouteMessage {
        guard let family = body.number(0, UInt8.self), var flags = body.number(2, UInt8.self).map(UInt32.init),
            let scope = body.number(3, UInt8.self), let index = body.number(4, Int32.self)
        else { return .damaged }
        var own: ArraySlice<UInt8>?
        var prefix: ArraySlice<UInt8>?
        let isWhole = body.attributes(from: 8) { type, value in
            switch type {
            case 1: prefix = value.bytes  // IFA_ADDRESS: the peer's address on a point-to-point link
            case 2: own = value.bytes  // IFA_LOCAL
            case 8: flags = value.number(0, UInt32.self) ?? flags  // IFA_FLAGS
            default: break
            }
        }
        guard isWhole else { return .damaged }
        // RT_SCOPE_UNIVERSE, AF_INET and AF_INET6.
        guard scope == 0, let octets = own ?? prefix, octets.count == (family == 2 ? 4 : family == 10 ? 16 : -1) else {
            return .other
        }
        let address = PathAddress(index: index, octets: Array(octets))
        // Unusable while tentative (IFA_F_TENTATIVE), unless optimistic (RFC 4429), and when duplicated
        // (IFA_F_DADFAILED).
        let isUsable = flags & 0x08 == 0 && (flags & 0x40 == 0 || flags & 0x04 != 0)
        return isUsable ? make(address) : unusable(address)
    }

    /// Decodes a struct rtmsg.
    private static func route(_ body: NativeBytes, _ make: (PathRoute) -> RouteMessage) -> RouteMessage {
        guard let family = body.number(0, UInt8.self), let length = body.number(1, UInt8.self),
            var table = body.number(4, UInt8.self).map(UInt32.init), let type = body.number(7, UInt8.self),
            let flags = body.number(8, UInt32.self)
        else { return .damaged }
        // Accept unicast default routes (RTN_UNICAST), but no cached ones (RTM_F_CLONED).
        guard family == 2 || family == 10, length == 0, type == 1, flags & 0x200 == 0 else { return .other }
        var indices: [Int32] = []
        var metric: UInt32 = 0
        var isReadable = true
        let isWhole = body.attributes(from: 12) { type, value in
            switch type {
            case 4: indices += value.number(0, Int32.self).map { [$0] } ?? []  // RTA_OIF
            case 6: metric = value.number(0, UInt32.self) ?? 0  // RTA_PRIORITY
            case 9: isReadable = hops(value, &indices) && isReadable  // RTA_MULTIPATH
            case 15: table = value.number(0, UInt32.self) ?? table  // RTA_TABLE
            default: break
            }
        }
        guard isWhole, isReadable else { return .damaged }
        // RT_TABLE_LOCAL holds routes to this machine itself.
        return table == 255 ? .other : make(PathRoute(isIPv6: family == 10, indices: indices, metric: metric))
    }

    /// Decodes a list of struct rtnexthop.
    private static func hops(_ list: NativeBytes, _ indices: inout [Int32]) -> Bool {
        var rest = list
        while rest.count > 0 {
            guard let length = rest.number(0, UInt16.self).map(Int.init), let index = rest.number(4, Int32.self),
                length >= 8, length <= rest.count
            else { return false }
            indices.append(index)
            rest = rest.dropping(NativeBytes.aligned(length))
        }
        return true
    }
}
