// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// The certificates that a server presented, and the result of verifying them.
///
/// Part of a ``Challenge`` with the method `ServerTrust`, and of the error of a load whose server failed the checks
/// (``LoadError/serverTrust``).
///
/// ```swift
/// if let trust = error.serverTrust { print(error.reason, trust.certificates.first?.subject ?? "") }
/// ```
public struct ServerTrust: Sendable, Hashable, CustomStringConvertible {
    /// One check that failed.
    public struct Failure: Sendable, Hashable, CustomStringConvertible {
        /// The error of the check.
        public let reason: LoadError.Reason
        /// The position in ``ServerTrust/chain``: 0 is the server's own certificate, 1 its issuer's, and so on.
        public let depth: Int
        /// The description by the check.
        public let detail: String
        /// The reason, the depth and the detail: `certificateExpired at depth 1: certificate has expired`.
        public var description: String { "\(reason) at depth \(depth): \(detail)" }
    }

    /// The host name or address of the URL, in normal form, which the certificate must match.
    public let host: String
    /// The certificates that the server presented, its own first.
    public let certificates: [Certificate]
    /// The chain from the server's certificate to a root, as far as issuers were found among the presented certificates
    /// and the trusted roots.
    public let chain: [Certificate]
    /// The failed checks, in the order in which they were made; empty if all passed. If the chain does not lead to a
    /// trusted root, nothing else in it is trustworthy either.
    public let failures: [Failure]
    /// The connection resumes an earlier session, in which the server presented these certificates.
    public let isResumed: Bool

    /// Whether the server is accepted without a decision.
    public var isTrusted: Bool { failures.isEmpty }

    init(_ trust: TLSTrust) {
        host = trust.name.description
        certificates = trust.shown.map { Certificate($0) }
        chain = trust.built.map { Certificate($0) }
        failures = trust.failures.map { Failure(reason: LoadError.Reason($0.kind), depth: $0.depth, detail: $0.words) }
        isResumed = trust.isResumed
    }

    /// Creates the trust that another process has found.
    init(host: String, certificates: [Certificate], chain: [Certificate], failures: [Failure], isResumed: Bool) {
        (self.host, self.certificates, self.chain) = (host, certificates, chain)
        (self.failures, self.isResumed) = (failures, isResumed)
    }

    /// The host and the result: `example.org: trusted`, or the checks that failed.
    public var description: String {
        host + ": " + (isTrusted ? "trusted" : failures.map(\.description).joined(separator: "; "))
    }
}

/// A server's request for a client certificate (RFC 8446 §4.3.2).
public struct ClientCertificateRequest: Sendable {
    /// The certificate authorities that the server accepts, each a distinguished name in DER, to compare with the
    /// issuer of a certificate; empty if the server names none. At most 1024.
    public let issuers: [[UInt8]]
    /// The identity of the configuration (``Configuration/TLS/clientIdentities``), which default handling presents;
    /// `nil` without one.
    public let proposed: ClientIdentity?
}
