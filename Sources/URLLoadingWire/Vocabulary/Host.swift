// SPDX-License-Identifier: Apache-2.0

extension Origin {
    /// A host in normal form: the single spelling used for DNS, TLS, the Host field, cookies, HSTS and the connection
    /// pool, so that all parts of the library agree on its identity.
    ///
    /// ```swift
    /// try Origin.Host("BÜCHER.example").description       // "xn--bcher-kva.example"
    /// try Origin.Host("b%C3%BCcher.example").description  // the same
    /// try Origin.Host("[2001:DB8::0:1]").description      // "[2001:db8::1]"
    /// ```
    ///
    /// A host is not resolved here.
    public struct Host: Sendable, Hashable, CustomStringConvertible {
        /// The three kinds of host. Only ``Host`` creates them, so a name is always in normal form.
        public enum Kind: Sendable, Hashable {
            /// A DNS name: lower-case ASCII, at most 253 bytes, with an optional trailing dot.
            case name(String)
            /// An IPv4 address: four bytes in network order.
            case ipv4([UInt8])
            /// An IPv6 address: sixteen bytes in network order, with the zone of RFC 6874, decoded.
            case ipv6([UInt8], zone: String?)
        }

        /// The kind of host.
        public let kind: Kind

        /// Normalises the host part of a URL; IPv6 addresses are in brackets.
        ///
        /// Percent-encoded, Unicode and Punycode spellings of a name have one normal form (UTS 46, non-transitional).
        /// Throws `invalidHost` for anything that is not a legal name or address, and `ambiguousAddress` for `1.2.3`,
        /// `0x7f.1` and `127.1`, which some parsers take for addresses.
        public init(_ text: String) throws(WireViolation) {
            kind = try HostParser.parse(Array(text.utf8))
        }

        package init(bytes: ArraySlice<UInt8>) throws(WireViolation) {
            kind = try HostParser.parse(bytes)
        }

        /// Creates an address from four bytes (IPv4) or sixteen (IPv6) in network order; `nil` for another count.
        public init?(address: [UInt8], zone: String? = nil) {
            switch address.count {
            case 4 where zone == nil: kind = .ipv4(address)
            case 16 where zone.map(IPv6Text.isLegalZone) ?? true: kind = .ipv6(address, zone: zone)
            default: return nil
            }
        }

        /// The host as in a URL: an IPv6 address in brackets, its zone after `%25` (RFC 6874).
        public var description: String {
            switch kind {
            case .name(let name): name
            case .ipv4(let bytes): IPv4Text.format(bytes)
            case .ipv6(let bytes, let zone):
                "[\(IPv6Text.format(bytes))\(zone.map { "%25" + IPv6Text.encodeZone($0) } ?? "")]"
            }
        }

        /// The host as in a Host field, without a zone, which means nothing to the peer (RFC 6874 §1).
        public var authority: String {
            if case .ipv6(let bytes, _) = kind { return "[\(IPv6Text.format(bytes))]" }
            return description
        }

        /// The name for DNS and for TLS server name indication, without a trailing dot (RFC 6066 §3); `nil` for an
        /// address.
        public var dnsName: String? {
            guard case .name(let name) = kind else { return nil }
            return name.utf8.last == UInt8(ascii: ".") ? String(name.dropLast()) : name
        }

        /// Whether the host is an IP address. A certificate for it must contain the address, not a name.
        public var isAddress: Bool { dnsName == nil }
    }
}
