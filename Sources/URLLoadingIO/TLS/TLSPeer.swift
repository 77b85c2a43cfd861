// SPDX-License-Identifier: Apache-2.0

// The intended peer of a TLS connection. The name that its certificate must contain comes from here and nowhere else.

package enum TLSPeerName: Sendable, Hashable, CustomStringConvertible {
    /// A host name in normal form: ASCII, lower case, no trailing dot.
    case dns(String)
    /// An IP address of 4 or 16 bytes.
    case ip([UInt8])

    package var description: String {
        switch self {
        case .dns(let name): name
        case .ip(let bytes) where bytes.count == 4: bytes.map(String.init).joined(separator: ".")
        case .ip(let bytes):
            SocketAddress.ipv6(bytes, port: 0).description.split(separator: "]").first.map { $0 + "]" } ?? "?"
        }
    }

    /// Whether OpenSSL takes the name literally. To OpenSSL a leading dot means "any subdomain", and a zero byte would
    /// end the name early.
    var isUsable: Bool {
        switch self {
        case .dns(let name):
            let bytes = name.utf8
            return !bytes.isEmpty && bytes.count <= 253 && bytes.first != UInt8(ascii: ".")
                && bytes.last != UInt8(ascii: ".")
                && bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
                && !lastLabelIsNumber(name)
        case .ip(let bytes):
            return bytes.count == 4 || bytes.count == 16
        }
    }

    /// No top-level domain is a number: such a name is an address that was not recognised as one.
    private func lastLabelIsNumber(_ name: String) -> Bool {
        name.utf8.reversed().prefix { $0 != UInt8(ascii: ".") }.allSatisfy {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        }
    }
}

package struct TLSPeer: Sendable, Hashable {
    /// Keeps a proxy and an origin of the same name from sharing sessions.
    package enum Role: Sendable, Hashable { case origin, proxy }

    package let name: TLSPeerName
    package let port: UInt16
    package let role: Role
    /// Replaces the configuration's ALPN protocols, for connections that support only one.
    package let applicationProtocols: [String]?
    /// The handshake pauses for a decision on the server's trust, or on the client certificate.
    package var asksTrust = false
    package var asksIdentity = false
    /// The connection's readers and writers also look for requests after the handshake
    /// (``TLSTransport/lateQuestion``).
    package var asksIdentityLater = false
    /// The zone of a link-local address (RFC 4007): in another zone the same address is another peer.
    package var zone: String?
    /// Identifies the decisions that apply: sessions of one group are never resumed in another.
    package var group = 0

    package init(_ name: TLSPeerName, port: UInt16, role: Role = .origin, applicationProtocols: [String]? = nil) {
        self.name = name
        self.port = port
        self.role = role
        self.applicationProtocols = applicationProtocols
    }
}

/// The parameters that a finished handshake agreed on.
package struct TLSNegotiated: Sendable, Hashable {
    package let version: TLSVersion
    /// OpenSSL's name of the cipher suite.
    package let cipher: String
    /// The registered name of the cipher suite (RFC 8446 §B.4), and its number.
    package let cipherSuite: String
    package let cipherSuiteNumber: UInt16
    /// The registered name of the key exchange's group; `nil` without a group, and if OpenSSL has no name for it.
    package let keyExchangeGroup: String?
    /// OpenSSL's numbers of the peer's signature of the handshake.
    let signature: Signature
    struct Signature: Sendable, Hashable {
        let key: Int32
        let digest: Int32
    }
    package let applicationProtocol: String?
    /// True for a resumed session: the peer proved to be the one of the earlier connection.
    package let isResumed: Bool
    /// The host name that the client requested (SNI); `nil` for an address.
    package let serverName: String?
    /// The subject of the client's certificate.
    package let clientSubject: String?
    /// The concessions that the handshake used.
    package var concessions: TLSConcessions.Used = []
}
