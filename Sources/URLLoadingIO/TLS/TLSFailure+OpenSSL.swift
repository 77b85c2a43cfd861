// SPDX-License-Identifier: Apache-2.0

// Translates OpenSSL's error numbers into the check that failed.

import URLLoadingCOpenSSL

extension TLSFailure.Kind {
    /// Translates an `X509_V_ERR_` number.
    init(verifyError: Int32) {
        switch verifyError {
        case X509_V_ERR_CERT_HAS_EXPIRED: self = .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: self = .notYetValid
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: self = .selfSigned
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
            X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_CERT_REJECTED:
            self = .untrustedIssuer
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: self = .nameMismatch
        case X509_V_ERR_INVALID_PURPOSE: self = .wrongPurpose
        case X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE: self = .badSignature
        case X509_V_ERR_CERT_REVOKED: self = .revoked
        case X509_V_ERR_CERT_CHAIN_TOO_LONG, X509_V_ERR_INVALID_CA, X509_V_ERR_INVALID_NON_CA,
            X509_V_ERR_PATH_LENGTH_EXCEEDED, X509_V_ERR_KEYUSAGE_NO_CERTSIGN,
            X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION, X509_V_ERR_SUBTREE_MINMAX,
            X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE, X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX,
            X509_V_ERR_UNSUPPORTED_NAME_SYNTAX, X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION:
            self = .invalidChain
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK:
            self = .weakCryptography
        default: self = .other
        }
    }

    /// Translates an `SSL_R_` number.
    init(reason: Int32) {
        switch reason {
        case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION,
            SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_VERSION_TOO_LOW, SSL_R_VERSION_TOO_HIGH,
            SSL_R_INAPPROPRIATE_FALLBACK:
            // SSL_R_WRONG_VERSION_NUMBER is left out: OpenSSL reports it for bytes that are not a TLS record.
            self = .protocolVersion
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_CIPHERS_AVAILABLE, SSL_R_WRONG_CIPHER_RETURNED,
            SSL_R_UNKNOWN_CIPHER_RETURNED, SSL_R_NO_SUITABLE_KEY_SHARE, SSL_R_NO_SHARED_GROUPS:
            self = .noCommonCipher
        case SSL_R_BAD_SIGNATURE: self = .badSignature
        case SSL_R_EE_KEY_TOO_SMALL, SSL_R_CA_KEY_TOO_SMALL, SSL_R_CA_MD_TOO_WEAK: self = .weakCryptography
        case SSL_R_DH_KEY_TOO_SMALL, SSL_R_WRONG_SIGNATURE_TYPE, SSL_R_UNKNOWN_DIGEST,
            SSL_R_LEGACY_SIGALG_DISALLOWED_OR_UNSUPPORTED:
            self = .weakHandshake
        case SSL_R_UNSAFE_LEGACY_RENEGOTIATION_DISABLED: self = .insecureRenegotiation
        case SSL_AD_REASON_OFFSET..<SSL_AD_REASON_OFFSET + 256:
            self = .alert(UInt8(truncatingIfNeeded: reason - SSL_AD_REASON_OFFSET))
        default: self = .other
        }
    }
}

extension TLSFailure.Kind {
    /// The alert that the peer sent, in words; `nil` for another failure. OpenSSL's own message names it by the version
    /// of the protocol in which it was introduced.
    var alertWords: String? {
        guard case .alert(let number) = self else { return nil }
        return "the server sent the alert \(Self.alerts[number] ?? "") (\(number))".replacing("  ", with: " ")
    }

    /// Names of RFC 8446 §6.
    private static let alerts: [UInt8: String] = [
        10: "unexpected_message", 20: "bad_record_mac", 22: "record_overflow", 40: "handshake_failure",
        42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
        46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error",
        51: "decrypt_error", 70: "protocol_version", 71: "insufficient_security", 80: "internal_error",
        86: "inappropriate_fallback", 90: "user_canceled", 109: "missing_extension", 110: "unsupported_extension",
        112: "unrecognized_name", 113: "bad_certificate_status_response", 115: "unknown_psk_identity",
        116: "certificate_required", 120: "no_application_protocol",
    ]
}

/// The OpenSSL error queue of the current thread, filled by the last call.
enum OpenSSLErrors {
    /// Empties the queue. The first error is the cause; those that follow come from its callers.
    static func take() -> (library: Int32, reason: Int32, words: String) {
        let first = ERR_peek_error()
        var words: [String] = []
        while case let code = ERR_get_error(), code != 0 { words.append(text(code)) }
        return (c_ERR_lib(first), c_ERR_reason(first), words.joined(separator: "; "))
    }

    private static func text(_ code: UInt) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress else { return "" }
            ERR_error_string_n(code, base, buffer.count)
            return String(cString: base)
        }
    }
}

extension TLSFailure {
    /// Creates a failure of a local operation (reading a file, creating a context) from OpenSSL's error queue.
    static func local(_ kind: Kind, _ doing: String) -> TLSFailure {
        let words = OpenSSLErrors.take().words
        return TLSFailure(kind, detail: words.isEmpty ? doing : "\(doing): \(words)")
    }
}
