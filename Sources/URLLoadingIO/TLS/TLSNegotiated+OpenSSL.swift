// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingCOpenSSL
import URLLoadingCSystem

extension TLSNegotiated {
    init(of ssl: OpaquePointer) {
        version = TLSVersion(rawValue: SSL_version(ssl)) ?? .tls12
        let suite = SSL_get_current_cipher(ssl)
        cipher = SSL_CIPHER_get_name(suite).map { String(cString: $0) } ?? ""
        cipherSuite = SSL_CIPHER_standard_name(suite).map { String(cString: $0) } ?? cipher
        cipherSuiteNumber = SSL_CIPHER_get_protocol_id(suite)
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
}
