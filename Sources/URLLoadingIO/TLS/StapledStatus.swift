// SPDX-License-Identifier: Apache-2.0

// Checks the certificate status that a server staples (OCSP, RFC 6960), signed by the issuer or by a responder that it
// authorised.

import URLLoadingCOpenSSL

enum StapledStatus {
    /// Valid until this time, in seconds since 1970.
    case good(until: Int64)
    case revoked
    case missing
    /// Unsigned, outdated, for another certificate, or malformed; with a description.
    case unusable(String)

    /// Tolerated clock difference in seconds.
    private static let clockTolerance = 300
    /// The seconds for which a response is valid that does not say until when: newer information is available at any
    /// time (RFC 6960 §4.2.2.1), so it must not be good for ever.
    private static let lifeWithoutEnd = 86_400

    /// - Parameter issuers: those of the proven chain, the one of `leaf` first.
    static func read(
        _ ssl: OpaquePointer, _ leaf: X509Certificate, _ issuers: [X509Certificate], _ roots: OpaquePointer?
    ) -> StapledStatus {
        var bytes: UnsafePointer<UInt8>?
        let count = c_SSL_get_tlsext_status_ocsp_resp(ssl, &bytes)
        guard count > 0, bytes != nil else { return .missing }
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let response = d2i_OCSP_RESPONSE(nil, &bytes, count) else {
            return .unusable("the stapled OCSP response cannot be parsed")
        }
        defer { OCSP_RESPONSE_free(response) }
        guard OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL,
            let basic = OCSP_response_get1_basic(response)
        else { return .unusable("the stapled OCSP response is an error") }
        defer { OCSP_BASICRESP_free(basic) }
        guard isSigned(basic, issuers, roots) else {
            return .unusable("the stapled OCSP response is not signed by an authorised responder")
        }
        guard let issuer = issuers.first else {
            return .unusable("the chain has no issuer that could sign a stapled OCSP response")
        }
        return status(basic, leaf.pointer, issuer.pointer)
    }

    /// OpenSSL verifies the chain of the signer, too, which leads to a root through all of these issuers.
    private static func isSigned(_ basic: OpaquePointer, _ issuers: [X509Certificate], _ roots: OpaquePointer?) -> Bool
    {
        guard let helpers = c_sk_X509_new() else { return false }
        defer { c_sk_X509_free(helpers) }
        for issuer in issuers {
            X509_up_ref(issuer.pointer)
            guard c_sk_X509_push(helpers, issuer.pointer) > 0 else {
                X509_free(issuer.pointer)
                return false
            }
        }
        return OCSP_basic_verify(basic, helpers, roots, 0) == 1
    }

    private static func status(_ basic: OpaquePointer, _ leaf: OpaquePointer, _ issuer: OpaquePointer) -> StapledStatus
    {
        // A responder may identify the certificate with any digest; SHA-1 is customary.
        for digest in [EVP_sha1(), EVP_sha256()] {
            guard let identifier = OCSP_cert_to_id(digest, leaf, issuer) else { continue }
            defer { OCSP_CERTID_free(identifier) }
            var status: Int32 = 0
            var reason: Int32 = 0
            var revoked: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            var this: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            var next: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            guard OCSP_resp_find_status(basic, identifier, &status, &reason, &revoked, &this, &next) == 1 else {
                continue
            }
            // Revocation is permanent, so an outdated response counts as well.
            if status == V_OCSP_CERTSTATUS_REVOKED { return .revoked }
            let longest = next == nil ? lifeWithoutEnd : -1
            guard let since = this, OCSP_check_validity(since, next, clockTolerance, longest) == 1 else {
                return .unusable("the stapled OCSP response is out of date")
            }
            guard status == V_OCSP_CERTSTATUS_GOOD else { return .unusable("the stapled OCSP response says unknown") }
            return .good(
                until: next.map { CertificateFacts.seconds($0) }
                    ?? CertificateFacts.seconds(since) + Int64(lifeWithoutEnd))
        }
        return .unusable("the stapled OCSP response is for another certificate")
    }
}
