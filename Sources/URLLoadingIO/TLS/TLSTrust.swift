// SPDX-License-Identifier: Apache-2.0

// The result of verifying a server's certificate: the presented certificates, the chain built from them, and every
// check that failed.

package struct TLSTrust: Sendable, Hashable {
    package struct Failure: Sendable, Hashable {
        package let kind: TLSFailure.Kind
        /// Position in the chain as far as it was built: 0 is the server's own certificate, 1 its issuer, and so on.
        package let depth: Int
        /// OpenSSL's message, and why an issuer was not found.
        package fileprivate(set) var words: String

        package init(_ kind: TLSFailure.Kind, depth: Int, words: String) {
            self.kind = kind
            self.depth = depth
            self.words = words
        }
    }

    package let name: TLSPeerName
    /// The certificates that the server presented, its own first.
    package let shown: [CertificateFacts]
    /// The chain from the server's certificate to the root, or as far as issuers were found.
    package let built: [CertificateFacts]
    /// In the order in which they were found; empty if the certificate passes.
    package var failures: [Failure]
    /// True if the certificate was presented to an earlier connection, whose session this one resumes.
    package var isResumed = false
}

extension TLSTrust.Failure {
    /// Adds why the search for an issuer found none.
    mutating func add(_ reason: String) { words += "; " + reason }
}

/// A pinned key or certificate: one of a peer's pins must be in its chain, besides the usual verification.
package enum TLSPin: Sendable, Hashable {
    /// The SHA-256 of a SubjectPublicKeyInfo (RFC 7469 §2.4).
    case publicKey([UInt8])
    /// The SHA-256 of a certificate in DER.
    case certificate([UInt8])

    func matches(_ certificate: OpaquePointer) -> Bool {
        switch self {
        case .publicKey(let digest): CertificateFacts.publicKeySHA256(certificate) == digest
        case .certificate(let digest): CertificateFacts.sha256(PEM.der(certificate)) == digest
        }
    }
}

/// Matches the peers that a setting applies to.
package struct TLSHostPattern: Sendable, Hashable {
    /// A host name in normal form, or an address; `*.example.org` for every name below `example.org`; `*` for all
    /// peers.
    package let text: String

    package init(_ text: String) { self.text = text }

    package func matches(_ name: TLSPeerName) -> Bool {
        if text == "*" { return true }
        guard case .dns(let host) = name else { return text == name.description || "[\(text)]" == name.description }
        guard text.hasPrefix("*.") else { return text == host }
        let suffix = text.utf8.dropFirst()
        return host.utf8.count > suffix.count && host.utf8.suffix(suffix.count).elementsEqual(suffix)
    }
}

/// A setting for the peers that match a pattern.
package struct TLSRule<Value: Sendable & Hashable>: Sendable, Hashable {
    package let pattern: TLSHostPattern
    package let value: Value

    package init(_ pattern: TLSHostPattern, _ value: Value) {
        self.pattern = pattern
        self.value = value
    }
}

/// A decision for which the handshake pauses.
package enum TLSQuestion: Sendable {
    /// Whether to trust the server; see `TLSTransport.answer(trusts:)`.
    case trust(TLSTrust)
    /// The client certificate to present; see `TLSTransport.answer(identity:)`. With the names of the issuers that the
    /// server accepts, in DER.
    case identity([[UInt8]])
    /// An issuer that the server did not send; see `TLSTransport.answer(issuers:)`.
    case issuer(TLSMissingIssuer)
}
