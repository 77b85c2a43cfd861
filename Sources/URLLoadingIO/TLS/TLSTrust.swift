// What was found out about a server's certificate: what it showed, what was built of it, and every check that failed.

import URLLoadingCOpenSSL

package struct TLSTrust: Sendable, Hashable {
    package struct Failure: Sendable, Hashable {
        package let kind: TLSFailure.Kind
        /// 0 is the server's own certificate, 1 its issuer, and so on; of the chain as far as it was built.
        package let depth: Int
        /// OpenSSL's words.
        package let words: String

        package init(_ kind: TLSFailure.Kind, depth: Int, words: String) {
            self.kind = kind
            self.depth = depth
            self.words = words
        }
    }

    package let name: TLSPeerName
    /// What the server showed, its own first.
    package let shown: [CertificateFacts]
    /// From its own to the root, or as far as issuers were found.
    package let built: [CertificateFacts]
    /// In the order they were found; none if it passes.
    package var failures: [Failure]
    /// The certificate was shown to an earlier connection, whose keys this one goes on with.
    package var isResumed = false
}

/// What a server must be besides trusted: one of these is in its chain.
package enum TLSPin: Sendable, Hashable {
    /// The SHA-256 of a SubjectPublicKeyInfo (RFC 7469 2.4).
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

/// Which peers something is for.
package struct TLSHostPattern: Sendable, Hashable {
    /// A name in normal form, or an address; `*.example.org` for every name below `example.org`; `*` for all.
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

/// Something for some peers.
package struct TLSRule<Value: Sendable & Hashable>: Sendable, Hashable {
    package let pattern: TLSHostPattern
    package let value: Value

    package init(_ pattern: TLSHostPattern, _ value: Value) {
        self.pattern = pattern
        self.value = value
    }
}

/// What a handshake stops for until somebody has decided.
package enum TLSQuestion: Sendable {
    /// Whether the server is to be trusted; see `TLSTransport.answer(trusts:)`.
    case trust(TLSTrust)
    /// Who we are; see `TLSTransport.answer(identity:)`. With the names, in DER, of those whose word the server takes.
    case identity([[UInt8]])
}
