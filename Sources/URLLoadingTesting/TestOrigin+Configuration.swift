public import URLLoading
import URLLoadingIO

extension TestOrigin {
    /// How an origin listens and what it remembers.
    ///
    /// ```swift
    /// let authority = try TestCertificateAuthority(commonName: "Test root")
    /// try await withTestOrigin(.init(tls: .init(try authority.issue()))) { origin in … }
    /// ```
    public struct Configuration: Sendable {
        /// Where it listens.
        public enum Address: Sendable, Hashable {
            /// 127.0.0.1, on a port the system chooses.
            case ipv4
            /// ::1, on a port the system chooses.
            case ipv6
            /// Every IPv4 address this machine has or will have, on a port the system chooses: for tests of networks
            /// that come and go. Whoever can reach the machine can reach it. Its URLs name 127.0.0.1.
            case everyIPv4
            /// A path of at most 107 bytes that does not exist yet; removing it is up to the test.
            case unix(String)
        }

        /// Where it listens.
        public var address = Address.ipv4
        /// The host in its URLs; `nil` for its address, or for `localhost` if it has TLS or a path.
        public var name: String?
        /// Speaks TLS with this identity; `nil` speaks in the clear.
        public var tls: TLS?
        /// Sent to every connection in place of HTTP, whatever it asks: for servers of other kinds.
        public var greeting: Answer.Script?
        /// Whose time the pauses and delays of its answers take; `nil` for the system's.
        public var clock: ManualClock?
        /// The most requests remembered, at least 0; the oldest are forgotten first.
        public var recordedRequests = 10_000
        /// The most bytes of a request's body that are kept for its handler and the record, at least 0.
        public var recordedBodySize = 64 * 1024

        /// On 127.0.0.1, in the clear.
        public init() {}

        /// On 127.0.0.1, with TLS.
        public init(tls: TLS) { self.tls = tls }
    }

    /// The TLS side of an origin.
    public struct TLS: Sendable {
        /// The certificate, then those between it and the root, in PEM.
        public var certificatePEM: [UInt8]
        /// The private key in PEM, unencrypted.
        public var keyPEM: [UInt8]
        /// The lowest version it accepts.
        public var minimumVersion = URLLoading.Configuration.TLS.Version.tls12
        /// The highest version it speaks.
        public var maximumVersion = URLLoading.Configuration.TLS.Version.tls13
        /// The protocols it chooses from, best first (RFC 7301); a client that offers only others is
        /// refused. Empty: it does not take part.
        public var applicationProtocols: [String] = ["http/1.1"]
        /// Whether clients may come back with a session.
        public var givesTickets = true
        /// A server at fault: it leaves without close_notify, so that a truncated answer cannot be
        /// told from a complete one that ends with the connection (RFC 8446 6.1).
        public var leavesWithoutNotice = false

        /// Whose word it takes for who its clients are, in PEM; it does not ask them if it is empty.
        public var clientRootsPEM: [UInt8] = []
        /// Whether clients that do not say who they are are refused, if it asks.
        public var requiresClientCertificate = true
        /// The status of its certificate for clients that ask for it (OCSP, in DER): see
        /// ``TestCertificateAuthority/status(of:_:)``.
        public var stapledStatus: [UInt8] = []
        /// Whether it uses an identity whose key is too weak for others.
        public var isWeak = false

        /// The identity of an authority made for tests.
        ///
        /// ```swift
        /// let tls = TestOrigin.TLS(try authority.issue(.init(names: ["localhost"], validity: .past)))
        /// ```
        public init(_ identity: TestIdentity) {
            self.init(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
        }

        /// An identity in PEM.
        public init(certificatePEM: [UInt8], keyPEM: [UInt8]) {
            self.certificatePEM = certificatePEM
            self.keyPEM = keyPEM
        }
    }
}

extension TestOrigin.Configuration {
    func authority(port: UInt16) -> String {
        switch address {
        case .unix: return name ?? "localhost"
        case .ipv4, .everyIPv4: return "\(name ?? (tls == nil ? "127.0.0.1" : "localhost")):\(port)"
        case .ipv6: return "\(name ?? (tls == nil ? "[::1]" : "localhost")):\(port)"
        }
    }
}

extension TestOrigin.Configuration.Address {
    var socketAddress: SocketAddress {
        get throws(IOFailure) {
            switch self {
            case .ipv4: .ipv4((127, 0, 0, 1), port: 0)
            case .everyIPv4: .ipv4((0, 0, 0, 0), port: 0)
            case .ipv6: .ipv6([UInt8](repeating: 0, count: 15) + [1], port: 0)
            case .unix(let path): try .unix(path)
            }
        }
    }
}

extension TLSServerContext.Configuration {
    init(_ tls: TestOrigin.TLS) {
        self.init(certificateChain: tls.certificatePEM, privateKey: tls.keyPEM)
        minimumVersion = TLSVersion(tls.minimumVersion)
        maximumVersion = TLSVersion(tls.maximumVersion)
        applicationProtocols = tls.applicationProtocols
        tickets = tls.givesTickets ? 2 : 0
        leavesWithoutNotice = tls.leavesWithoutNotice
        clientRoots = tls.clientRootsPEM
        requiresIdentity = tls.requiresClientCertificate
        staple = tls.stapledStatus
        securityLevel = tls.isWeak ? 0 : 2
    }
}

extension TLSVersion {
    fileprivate init(_ version: URLLoading.Configuration.TLS.Version) {
        self =
            switch version {
            case .tls12: .tls12
            case .tls13: .tls13
            }
    }
}
