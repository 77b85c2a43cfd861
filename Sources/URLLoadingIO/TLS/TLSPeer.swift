// Who we mean to speak to. What the certificate must name comes from here and from nowhere else.

package enum TLSPeerName: Sendable, Hashable, CustomStringConvertible {
    /// The normal form of a name: ASCII, lower case, no trailing dot.
    case dns(String)
    /// An address, 4 or 16 bytes.
    case ip([UInt8])

    package var description: String {
        switch self {
        case .dns(let name): name
        case .ip(let bytes) where bytes.count == 4: bytes.map(String.init).joined(separator: ".")
        case .ip(let bytes):
            SocketAddress.ipv6(bytes, port: 0).description.split(separator: "]").first.map { $0 + "]" } ?? "?"
        }
    }

    /// Whether OpenSSL would take the name for what it says. A leading dot means "any subdomain" to
    /// it, and a zero byte would end the name early.
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
    /// A proxy and an origin of the same name must not share sessions.
    package enum Role: Sendable, Hashable { case origin, proxy }

    package let name: TLSPeerName
    package let port: UInt16
    package let role: Role
    /// Offered instead of the configuration's protocols, for connections that can speak only one.
    package let applicationProtocols: [String]?
    /// The handshake stops to ask whether the server is to be trusted, and who we are.
    package var asksTrust = false
    package var asksIdentity = false
    /// Who reads and writes then looks for questions that come later (``TLSTransport/laterQuestion``).
    package var asksIdentityLater = false
    /// On which link the address is, if it is no good elsewhere (RFC 4007): there it is another peer's.
    package var zone: String?
    /// By whose decisions: sessions of one group are never resumed in another.
    package var group = 0

    package init(_ name: TLSPeerName, port: UInt16, role: Role = .origin, applicationProtocols: [String]? = nil) {
        self.name = name
        self.port = port
        self.role = role
        self.applicationProtocols = applicationProtocols
    }
}

/// What a finished handshake agreed on.
package struct TLSNegotiated: Sendable, Hashable {
    package let version: TLSVersion
    /// As OpenSSL calls it.
    package let cipher: String
    /// As the registry does (RFC 8446 B.4), and its number there.
    package let cipherSuite: String
    package let cipherSuiteNumber: UInt16
    package let applicationProtocol: String?
    /// The keys come from an earlier connection: the peer proved that it is the same one.
    package let isResumed: Bool
    /// The name the client asked for; none for an address.
    package let serverName: String?
    /// What a client has said of itself: the subject of its certificate.
    package let clientSubject: String?
}
