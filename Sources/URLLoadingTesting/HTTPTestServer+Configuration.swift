// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import URLLoading
import URLLoadingIO

extension HTTPTestServer {
    /// The configuration of an origin: address, TLS and records.
    ///
    /// ```swift
    /// let authority = try TestCertificateAuthority(commonName: "Test root")
    /// try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in … }
    /// ```
    public struct Configuration: Sendable {
        /// The address to listen on.
        public enum Address: Sendable, Hashable {
            /// 127.0.0.1, on a port that the system chooses.
            case ipv4
            /// ::1, on a port that the system chooses.
            case ipv6
            /// All present and future IPv4 addresses of this machine, on a port that the system chooses, for tests of
            /// changing networks. Reachable from other machines. The origin's URLs use 127.0.0.1.
            case everyIPv4
            /// A Unix socket at a path of at most 107 bytes that does not exist yet; the test must remove it.
            case unix(String)
        }

        /// The address to listen on.
        public var address = Address.ipv4
        /// The host in the origin's URLs; `nil` for its address, or for `localhost` with TLS or a Unix socket.
        public var name: String?
        /// The TLS settings; `nil` for cleartext.
        public var tls: TLS?
        /// Sent on every connection in place of HTTP, whatever the request, to simulate servers of other protocols.
        public var greeting: Response.Script?
        /// The clock for pauses and delays of responses; `nil` for the system's.
        public var clock: ManualClock?
        /// The maximum number of requests that are recorded, at least 0; the oldest are dropped first.
        public var recordedRequests = 10_000
        /// The maximum number of bytes of a request's body that are kept for its handler and the record, at least 0.
        public var recordedBodySize = 64 * 1024

        /// Creates a configuration; by default for 127.0.0.1, in cleartext and with the system's clock.
        ///
        /// ```swift
        /// let clock = ManualClock()
        /// try await withHTTPTestServer(.init(clock: clock)) { origin in … }
        /// ```
        public init(
            address: Address = .ipv4, name: String? = nil, tls: TLS? = nil, clock: ManualClock? = nil
        ) {
            self.address = address
            self.name = name
            self.tls = tls
            self.clock = clock
        }
    }

    /// The TLS settings of an origin.
    public struct TLS: Sendable {
        /// The certificate, followed by the intermediate authorities, in PEM.
        public var certificatePEM: [UInt8]
        /// The private key in PEM, unencrypted.
        public var keyPEM: [UInt8]
        /// The lowest version that is accepted. Below TLS 1.2, the server also accepts weak signatures and keys.
        public var minimumVersion = URLLoading.Configuration.TLS.Version.tls12
        /// The highest version that is supported.
        public var maximumVersion = URLLoading.Configuration.TLS.Version.tls13
        /// The ALPN protocols in order of preference (RFC 7301); a client that offers only others is refused. If empty,
        /// ALPN is not used.
        public var applicationProtocols: [String] = ["http/1.1"]
        /// Whether clients may resume sessions.
        public var issuesSessionTickets = true
        /// Simulates a faulty server that closes without close_notify, so that a truncated response cannot be told from
        /// a complete one that ends with the connection (RFC 8446 §6.1).
        public var omitsCloseNotify = false

        /// The trusted issuers of client certificates, in PEM; if empty, clients are not asked for one.
        public var clientRootsPEM: [UInt8] = []
        /// Whether clients without a certificate are refused, if one is requested.
        public var requiresClientCertificate = true
        /// The stapled status of the certificate for clients that request it (OCSP, in DER): see
        /// ``TestCertificateAuthority/status(of:_:)``.
        public var stapledOCSPResponse: [UInt8] = []
        /// Whether the server may use a key that is too weak for clients to accept.
        public var allowsWeakKeys = false

        /// Creates TLS settings with an identity of a test authority.
        ///
        /// ```swift
        /// let tls = HTTPTestServer.TLS(try authority.issue(.init(names: ["localhost"], validity: .past)))
        /// ```
        public init(_ identity: TestIdentity) {
            self.init(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
        }

        /// Creates TLS settings with an identity in PEM.
        public init(certificatePEM: [UInt8], keyPEM: [UInt8]) {
            self.certificatePEM = certificatePEM
            self.keyPEM = keyPEM
        }
    }
}

extension HTTPTestServer.Configuration.Address {
    /// Returns the host and port in a server's URLs; `host` takes precedence over the address.
    func authority(host: String?, isSecure: Bool, port: UInt16) -> String {
        switch self {
        case .unix: host ?? "localhost"
        case .ipv4, .everyIPv4: "\(host ?? (isSecure ? "localhost" : "127.0.0.1")):\(port)"
        case .ipv6: "\(host ?? (isSecure ? "localhost" : "[::1]")):\(port)"
        }
    }

    /// Returns the URL of a server of HTTP, without a path.
    func baseURL(host: String?, isSecure: Bool, port: UInt16) throws(HTTPTestServerError) -> URL {
        let authority = authority(host: host, isSecure: isSecure, port: port)
        guard let url = URL(string: "\(isSecure ? "https" : "http")://\(authority)") else {
            throw HTTPTestServerError(authority)
        }
        return url
    }

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
    init(_ tls: HTTPTestServer.TLS) {
        self.init(certificateChain: tls.certificatePEM, privateKey: tls.keyPEM)
        minimumVersion = TLSVersion(tls.minimumVersion)
        maximumVersion = TLSVersion(tls.maximumVersion)
        applicationProtocols = tls.applicationProtocols
        tickets = tls.issuesSessionTickets ? 2 : 0
        omitsCloseNotify = tls.omitsCloseNotify
        clientRoots = tls.clientRootsPEM
        requiresIdentity = tls.requiresClientCertificate
        staple = tls.stapledOCSPResponse
        securityLevel = tls.allowsWeakKeys || tls.minimumVersion < .tls12 ? 0 : 2
    }
}
