// SPDX-License-Identifier: Apache-2.0

// Issuers that a server did not send. A certificate may name an address at which its issuer's can be fetched (Authority
// Information Access, RFC 5280 §4.2.2.1). The handshake pauses, its owner fetches, and the verification begins again.
//
// Rule 1: a fetched certificate is a part of a path, as if the server had sent it: it is never trusted by itself.
// Rule 2: each step must be the issuer of the certificate that named it, and there are few steps: a server can name
// addresses without end.

import URLLoadingCOpenSSL

/// A certificate whose issuer is not among those that the server sent.
package struct TLSMissingIssuer: Sendable {
    package let certificate: CertificateFacts
    /// The addresses of the issuer that the certificate names; any scheme, at least one.
    package let locations: [String]
}

/// The answer to a question for an issuer.
package enum TLSFoundIssuers: Sendable {
    /// The certificates at an address.
    case certificates([CertificateFacts], from: String)
    /// The reason why there are none, as a clause.
    case none(String)
}

/// The search of one handshake, as a value.
struct TLSIssuerSearch {
    enum State {
        /// Not enabled.
        case off
        case ready
        /// The handshake pauses for this issuer.
        case pending(TLSMissingIssuer)
        /// It found nothing more, for this reason.
        case ended(String)
    }
    private(set) var state: State
    /// The certificates found, in the order in which they were.
    private(set) var found: [CertificateFacts] = []
    private var steps = 0

    /// Issuers fetched for one handshake. Chains rarely lack more than one.
    static let stepLimit = 3
    /// Certificates taken from one address: a PKCS#7 file may have many, and each may be compared with every other.
    static let countLimit = 16

    init(isEnabled: Bool) { state = isEnabled ? .ready : .off }

    var pending: TLSMissingIssuer? {
        if case .pending(let issuer) = state { issuer } else { nil }
    }

    /// Begins a step, for the last certificate of a chain that leads to no trusted root. Returns whether there is one.
    mutating func begin(_ last: CertificateFacts) -> Bool {
        guard case .ready = state, !last.isSelfIssued else { return false }
        let locations = last.issuerLocations
        guard !locations.isEmpty else {
            state = .ended("\(last.subject) names no address of its issuer")
            return false
        }
        guard steps < Self.stepLimit else {
            state = .ended("more than \(Self.stepLimit) issuers are missing")
            return false
        }
        steps += 1
        state = .pending(TLSMissingIssuer(certificate: last, locations: locations))
        return true
    }

    mutating func answer(_ answer: TLSFoundIssuers) {
        guard case .pending(let missing) = state else { return }
        switch answer {
        case .none(let words): state = .ended(words)
        case .certificates(let all, let location):
            let some = all.prefix(Self.countLimit)
            if some.contains(where: { $0.isIssuer(of: missing.certificate) }) {
                found += some
                state = .ready
            } else if some.contains(missing.certificate) {
                state = .ended("\(location) is the certificate itself, not its issuer's")
            } else {
                state = .ended("the certificate at \(location) is not the issuer's of \(missing.certificate.subject)")
            }
        }
    }

    /// The reason why a chain is still incomplete; `nil` if the search is not enabled.
    var reason: String? {
        if case .ended(let words) = state { words } else { nil }
    }
}

extension CertificateFacts {
    /// The addresses at which the certificate says that its issuer's is (RFC 5280 §4.2.2.1), at most four.
    package var issuerLocations: [String] { read(Self.issuerLocations) }

    /// Whether the issuer's name is the certificate's own.
    package var isSelfIssued: Bool {
        read { X509_NAME_cmp(X509_get_subject_name($0), X509_get_issuer_name($0)) == 0 }
    }

    /// Whether this certificate is another one's issuer: by its name and key identifier, by the other's signature, and
    /// by its dates.
    package func isIssuer(of other: CertificateFacts) -> Bool {
        guard other != self else { return false }
        ERR_clear_error()
        defer { ERR_clear_error() }
        return read { own in
            guard X509_cmp_current_time(X509_get0_notBefore(own)) < 0,
                X509_cmp_current_time(X509_get0_notAfter(own)) > 0
            else { return false }
            return other.read { issued in
                X509_check_issued(own, issued) == X509_V_OK && X509_verify(issued, X509_get0_pubkey(own)) == 1
            }
        }
    }

    private static func issuerLocations(_ certificate: OpaquePointer) -> [String] {
        guard let all = c_X509_get_info_access(certificate) else { return [] }
        defer { AUTHORITY_INFO_ACCESS_free(all) }
        var found: [String] = []
        for index in 0..<max(0, c_info_access_count(all)) where found.count < 4 {
            var start: UnsafePointer<UInt8>?
            var count: Int32 = 0
            guard c_info_access_issuer(all, index, &start, &count) == 1, let start, count > 0 else { continue }
            found.append(String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self))
        }
        return found
    }

    /// Returns the certificates of a file in DER, or of a PKCS#7 message that only carries certificates (RFC 5280
    /// §4.2.2.1, RFC 2797); `nil` for anything else.
    package static func issuers(in file: [UInt8]) -> [CertificateFacts]? {
        if let one = CertificateFacts(der: file) { return [one] }
        ERR_clear_error()
        defer { ERR_clear_error() }
        let parsed: UnsafeMutablePointer<PKCS7>? = file.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return d2i_PKCS7(nil, &start, bytes.count)
        }
        guard let parsed else { return nil }
        defer { PKCS7_free(parsed) }
        let all = CertificateFacts.all(c_PKCS7_certificates(parsed))
        return all.isEmpty ? nil : all
    }
}
