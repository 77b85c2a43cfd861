// SPDX-License-Identifier: Apache-2.0

// Classifies addresses as global or special-purpose, by the registries of RFC 6890 (IANA "IPv4/IPv6 Special-Purpose
// Address Registry", "Globally Reachable"), as of 2025. Pure; knows neither names nor policies.

/// The purpose of an address. The kinds are disjoint: a loopback address is not also private.
enum AddressKind: Sendable, Hashable {
    case unspecified, loopback, linkLocal, multicast, `private`
    /// Reserved for another purpose: documentation, benchmarks, carrier-grade NAT, future use.
    case special
    case global

    /// Classifies 4 or 16 bytes in network order; any other count is `special`.
    init(_ bytes: [UInt8]) {
        switch bytes.count {
        case 4: self = Self.ipv4(Self.number(bytes[...]))
        case 16: self = Self.ipv6(bytes)
        default: self = .special
        }
    }

    private struct Block<Word: FixedWidthInteger & Sendable>: Sendable {
        let first: Word
        let length: Int

        init(_ first: Word, _ length: Int) {
            self.first = first
            self.length = length
        }

        func contains(_ address: Word) -> Bool { (address ^ first) >> (Word.bitWidth - length) == 0 }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }

    // MARK: IPv4

    private static func ipv4(_ address: UInt32) -> AddressKind {
        if address == 0 { return .unspecified }
        return ipv4Kinds.first { $0.0.contains(address) }?.1 ?? .global
    }

    private static let ipv4Kinds: [(Block<UInt32>, AddressKind)] = [
        (Block(0x7F00_0000, 8), .loopback),  // RFC 1122 §3.2.1.3
        (Block(0x0A00_0000, 8), .private), (Block(0xAC10_0000, 12), .private),  // RFC 1918
        (Block(0xC0A8_0000, 16), .private),
        (Block(0xA9FE_0000, 16), .linkLocal),  // RFC 3927; clouds keep their metadata here
        (Block(0xE000_0000, 4), .multicast),  // RFC 5771
        (Block(0x0000_0000, 8), .special),  // this network, RFC 791
        (Block(0x6440_0000, 10), .special),  // shared by carriers, RFC 6598
        (Block(0xC000_0009, 32), .global), (Block(0xC000_000A, 32), .global),  // anycast, RFC 7723, RFC 8155
        (Block(0xC000_0000, 24), .special),  // protocol assignments, RFC 6890
        (Block(0xC000_0200, 24), .special), (Block(0xC633_6400, 24), .special),  // documentation, RFC 5737
        (Block(0xCB00_7100, 24), .special),
        (Block(0xC058_6300, 24), .special),  // 6to4 relays, withdrawn by RFC 7526
        (Block(0xC612_0000, 15), .special),  // benchmarks, RFC 2544
        (Block(0xF000_0000, 4), .special),  // reserved, RFC 1112; the broadcast address
    ]

    // MARK: IPv6

    private static func ipv6(_ bytes: [UInt8]) -> AddressKind {
        if let kind = embedded(bytes) { return kind }
        let high = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let low = bytes[8...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        if high == 0, low <= 1 { return low == 0 ? .unspecified : .loopback }
        if high == 0x2001_0001_0000_0000, (1...3).contains(low) { return .global }  // anycast, RFC 7723, 8155, 9665
        return ipv6Kinds.first { $0.0.contains(high) }?.1 ?? .special
    }

    /// Classifies an IPv6 address that embeds an IPv4 address as the latter: IPv4-mapped ones (RFC 4291 §2.5.5.2),
    /// which the system connects to over IPv4, and those with the well-known prefix of NAT64 (RFC 6052 §2.1).
    private static func embedded(_ bytes: [UInt8]) -> AddressKind? {
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        let isTranslated = bytes[..<4] == [0, 0x64, 0xFF, 0x9B] && bytes[4..<12].allSatisfy { $0 == 0 }
        guard isMapped || isTranslated else { return nil }
        return ipv4(number(bytes[12...]))
    }

    /// The kinds by the upper half of the address. Addresses outside of these blocks are unallocated.
    private static let ipv6Kinds: [(Block<UInt64>, AddressKind)] = [
        (Block(0xFE80_0000_0000_0000, 10), .linkLocal),  // RFC 4291
        (Block(0xFC00_0000_0000_0000, 7), .private),  // unique local, RFC 4193
        (Block(0xFEC0_0000_0000_0000, 10), .private),  // site-local, deprecated by RFC 3879 and still in use
        (Block(0xFF00_0000_0000_0000, 8), .multicast),  // RFC 4291
        (Block(0x2001_0003_0000_0000, 32), .global),  // AMT, RFC 7450
        (Block(0x2001_0004_0112_0000, 48), .global),  // AS112, RFC 7535
        (Block(0x2001_0020_0000_0000, 28), .global),  // ORCHIDv2, RFC 7343
        (Block(0x2001_0030_0000_0000, 28), .global),  // drone identifiers, RFC 9374
        (Block(0x2001_0000_0000_0000, 23), .special),  // protocol assignments, Teredo among them
        (Block(0x2001_0DB8_0000_0000, 32), .special),  // documentation, RFC 3849
        (Block(0x2002_0000_0000_0000, 16), .special),  // 6to4: its relays are withdrawn, RFC 7526
        (Block(0x3FFF_0000_0000_0000, 20), .special),  // documentation, RFC 9637
        (Block(0x2000_0000_0000_0000, 3), .global),  // what IANA gives out, RFC 4291
    ]
}
