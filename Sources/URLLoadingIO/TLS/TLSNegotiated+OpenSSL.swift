// SPDX-License-Identifier: Apache-2.0

import URLLoadingCOpenSSL
import URLLoadingCSystem

extension TLSNegotiated {
    init(of ssl: OpaquePointer) {
        version = TLSVersion(rawValue: SSL_version(ssl)) ?? .tls12
        let suite = SSL_get_current_cipher(ssl)
        cipher = SSL_CIPHER_get_name(suite).map { String(cString: $0) } ?? ""
        cipherSuite = SSL_CIPHER_standard_name(suite).map { String(cString: $0) } ?? cipher
        // OpenSSL reads the number without a check; before the end of a handshake there may be no suite.
        cipherSuiteNumber = suite.map { SSL_CIPHER_get_protocol_id($0) } ?? 0
        keyExchangeGroup = c_SSL_get0_group_name(ssl).map { Self.registered(group: String(cString: $0)) }
        signature = Signature(
            key: c_SSL_get_peer_signature_type_nid(ssl), digest: c_SSL_get_peer_signature_nid(ssl))
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &bytes, &count)
        applicationProtocol =
            count == 0 ? nil : String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
        isResumed = SSL_session_reused(ssl) == 1
        serverName = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
        let client = SSL_is_server(ssl) == 1 ? SSL_get0_peer_certificate(ssl) : nil
        clientSubject = client.map { DistinguishedName.text(X509_get_subject_name($0)) }
    }

    /// The registered name of a group (RFC 8446 §4.2.7), which OpenSSL calls otherwise before 3.2.
    private static func registered(group: String) -> String {
        switch group {
        case "prime256v1": "secp256r1"
        case "X25519", "X448": group.lowercased()
        default: group
        }
    }

    /// The algorithm of the peer's signature of the handshake, as in RFC 8446 §4.2.3 without the curve or the kind of
    /// certificate: `rsa_pss_sha256`, `ecdsa_sha384`, `ed25519`. `nil` without one, as in a resumed session.
    package var signatureAlgorithm: String? {
        switch signature.key {
        case NID_undef: nil
        case NID_rsaEncryption: "rsa_pkcs1_\(digest)"
        case NID_rsassaPss: "rsa_pss_\(digest)"
        case NID_X9_62_id_ecPublicKey: "ecdsa_\(digest)"
        case NID_ED25519: "ed25519"
        case NID_ED448: "ed448"
        default: OBJ_nid2sn(signature.key).map { String(cString: $0).lowercased() }
        }
    }

    private var digest: String { OBJ_nid2sn(signature.digest).map { String(cString: $0).lowercased() } ?? "" }
}
