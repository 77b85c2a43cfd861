import URLLoadingIO

/// What a server has shown to prove who it is, and what came of checking it.
///
/// A ``Challenge`` with the method `ServerTrust` brings one, and so does a load that failed for it
/// (``LoadError/serverTrust``).
///
/// ```swift
/// catch let error where error.serverTrust != nil {
///     print(error.reason, error.serverTrust?.certificates.first?.subject ?? "")
/// }
/// ```
public struct ServerTrust: Sendable, Hashable, CustomStringConvertible {
    /// One check that failed.
    public struct Failure: Sendable, Hashable, CustomStringConvertible {
        /// Which.
        public let reason: LoadError.Reason
        /// Whose: 0 is the server's own certificate, 1 its issuer's, and so on along ``ServerTrust/chain``.
        public let depth: Int
        /// In the words of the check.
        public let detail: String
        /// `certificateExpired at depth 1: certificate has expired`.
        public var description: String { "\(reason) at depth \(depth): \(detail)" }
    }

    /// The name, or address, that the certificate must be for: what the URL says, in normal form.
    public let host: String
    /// What the server has shown, its own certificate first.
    public let certificates: [Certificate]
    /// From its own to a root, as far as issuers were found: among what it has shown, and among the roots.
    public let chain: [Certificate]
    /// Every check that failed, in the order they were made; empty if all were passed. Where the chain does not lead to
    /// a root, what is said of the rest of it is worth no more than that.
    public let failures: [Failure]
    /// The connection goes on with the keys of an earlier one, to which all of this was shown.
    public let isResumed: Bool

    /// Whether it would be accepted if nobody were asked.
    public var isTrusted: Bool { failures.isEmpty }

    init(_ trust: TLSTrust) {
        host = trust.name.description
        certificates = trust.shown.map { Certificate($0) }
        chain = trust.built.map { Certificate($0) }
        failures = trust.failures.map { Failure(reason: LoadError.Reason($0.kind), depth: $0.depth, detail: $0.words) }
        isResumed = trust.isResumed
    }

    /// `example.org: trusted`, or the checks that failed.
    public var description: String {
        host + ": " + (isTrusted ? "trusted" : failures.map(\.description).joined(separator: "; "))
    }
}

/// A server wants to know who we are (RFC 8446 §4.3.2).
public struct ClientCertificateRequest: Sendable {
    /// Whose word the server takes, each a distinguished name in DER, to compare with the issuer of a certificate; empty if
    /// it does not say. At most 1024.
    public let issuers: [[UInt8]]
    /// Who we are by the configuration (``Configuration/TLS/clientIdentities``), and by default; `nil` for nobody.
    public let proposed: ClientIdentity?
}
