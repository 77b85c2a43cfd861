// SPDX-License-Identifier: Apache-2.0

// The fields of a certificate, as a value. All of them come from a peer: nothing here is trusted. OpenSSL does the
// parsing, and the input's size bounds the result.

import URLLoadingCOpenSSL

package struct CertificateFacts: Sendable, Hashable {
    package enum Name: Sendable, Hashable {
        case dns(String)
        /// An IP address of 4 or 16 bytes.
        case ip([UInt8])
        case email(String)
        case uri(String)
        /// A name of another kind (RFC 5280 §4.2.1.6).
        case other(Int)
    }

    package enum KeyKind: Sendable, Hashable {
        case rsa
        /// The curve, by OpenSSL's name.
        case ec(String)
        case ed25519
        case ed448
        case other(String)
    }

    package let der: [UInt8]
    private let certificate: X509Certificate

    /// Parses a certificate; `nil` if the bytes are not exactly one certificate.
    package init?(der: [UInt8]) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let parsed: OpaquePointer? = der.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            guard let made = d2i_X509(nil, &start, bytes.count) else { return nil }
            guard start == bytes.baseAddress.map({ $0 + bytes.count }) else {
                X509_free(made)
                return nil
            }
            return made
        }
        guard let parsed else { return nil }
        certificate = X509Certificate(adopting: parsed)
        self.der = der
    }

    /// Wraps a certificate that OpenSSL has already parsed. Parsing it again would cost a tenth of a millisecond,
    /// mostly for the key.
    init(sharing pointer: OpaquePointer) {
        X509_up_ref(pointer)
        certificate = X509Certificate(adopting: pointer)
        der = PEM.der(pointer)
    }

    /// Adds the certificate to a list that frees it.
    func push(to stack: OpaquePointer) {
        X509_up_ref(certificate.pointer)
        if c_sk_X509_push(stack, certificate.pointer) <= 0 { X509_free(certificate.pointer) }
    }

    static func all(_ stack: OpaquePointer?) -> [CertificateFacts] {
        guard let stack else { return [] }
        return (0..<max(0, c_sk_X509_num(stack))).compactMap {
            c_sk_X509_value(stack, $0).map { CertificateFacts(sharing: $0) }
        }
    }

    package static func == (a: CertificateFacts, b: CertificateFacts) -> Bool { a.der == b.der }
    package func hash(into hasher: inout Hasher) { hasher.combine(der) }

    // MARK: Fields, each computed on access

    /// The subject in the order and escaping of RFC 4514.
    package var subject: String { read { DistinguishedName.text(X509_get_subject_name($0)) } }
    package var issuer: String { read { DistinguishedName.text(X509_get_issuer_name($0)) } }
    package var commonName: String? { read { DistinguishedName.commonName(X509_get_subject_name($0)) } }
    package var names: [Name] { read(Self.names) }
    /// Seconds since 1970.
    package var notBefore: Int64 { read { Self.seconds(X509_get0_notBefore($0)) } }
    package var notAfter: Int64 { read { Self.seconds(X509_get0_notAfter($0)) } }
    package var serialNumber: [UInt8] { read { Self.bytes(X509_get0_serialNumber($0)) } }
    package var key: (kind: KeyKind, bits: Int) { read { Self.key(X509_get0_pubkey($0)) } }
    package var signatureAlgorithm: String {
        read { OBJ_nid2ln(X509_get_signature_nid($0)).map { String(cString: $0) } ?? "unknown" }
    }
    package var isAuthority: Bool { read { X509_check_ca($0) == 1 } }
    package var publicKeySHA256: [UInt8] { read(Self.publicKeySHA256) }
    package var sha256: [UInt8] { Self.sha256(der) }

    /// Reads a field and clears OpenSSL's error queue, which the next user of this thread would otherwise find.
    func read<R>(_ part: (OpaquePointer) -> R) -> R {
        ERR_clear_error()
        defer { ERR_clear_error() }
        return withExtendedLifetime(certificate) { part(certificate.pointer) }
    }

    // MARK: Helpers

    static func publicKeySHA256(_ certificate: OpaquePointer) -> [UInt8] {
        sha256(PEM.der { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), $0) })
    }

    package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { digest, count in
            var size: UInt32 = 0
            let done = EVP_Digest(bytes, bytes.count, digest.baseAddress, &size, EVP_sha256(), nil)
            count = done == 1 ? Int(size) : 0
        }
    }

    private static func names(_ certificate: OpaquePointer) -> [Name] {
        guard let all = c_X509_get0_alternative_names(certificate) else { return [] }
        defer { GENERAL_NAMES_free(all) }
        return (0..<max(0, c_GENERAL_NAMES_count(all))).map { index in
            var start: UnsafePointer<UInt8>?
            var count: Int32 = 0
            let kind = c_GENERAL_NAMES_get(all, index, &start, &count)
            let bytes = UnsafeBufferPointer(start: start, count: start == nil ? 0 : Int(count))
            // Keep zero bytes, so that a displayed name shows where a C string would end.
            return switch kind {
            case GEN_DNS: .dns(String(decoding: bytes, as: UTF8.self))
            case GEN_EMAIL: .email(String(decoding: bytes, as: UTF8.self))
            case GEN_URI: .uri(String(decoding: bytes, as: UTF8.self))
            case GEN_IPADD where bytes.count == 4 || bytes.count == 16: .ip(Array(bytes))
            default: .other(Int(kind))
            }
        }
    }

    /// Returns seconds since 1970; `.min` for an invalid time, so that nothing counts as valid.
    static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
        guard let time, let epoch = ASN1_TIME_set(nil, 0) else { return .min }
        defer { ASN1_TIME_free(epoch) }
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return .min }
        return Int64(days) * 86_400 + Int64(seconds)
    }

    private static func bytes(_ string: UnsafePointer<ASN1_INTEGER>?) -> [UInt8] {
        guard let string, let start = ASN1_STRING_get0_data(string) else { return [] }
        return Array(UnsafeBufferPointer(start: start, count: Int(max(0, ASN1_STRING_length(string)))))
    }

    private static func key(_ key: OpaquePointer?) -> (KeyKind, Int) {
        guard let key else { return (.other("unreadable"), 0) }
        let kind: KeyKind =
            switch EVP_PKEY_get_base_id(key) {
            case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS: .rsa
            case EVP_PKEY_EC: .ec(curve(key))
            case EVP_PKEY_ED25519: .ed25519
            case EVP_PKEY_ED448: .ed448
            default: .other(EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown")
            }
        return (kind, Int(EVP_PKEY_get_bits(key)))
    }

    private static func curve(_ key: OpaquePointer) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 80) { buffer in
            var count = 0
            guard let base = buffer.baseAddress, EVP_PKEY_get_group_name(key, base, buffer.count, &count) == 1 else {
                return ""
            }
            return String(cString: base)
        }
    }
}

enum DistinguishedName {
    static func text(_ name: OpaquePointer?) -> String {
        guard let name, let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        guard X509_NAME_print_ex(bio, name, 0, c_name_flags()) >= 0 else { return "" }
        var start: UnsafeMutablePointer<CChar>?
        let count = c_BIO_get_mem_data(bio, &start)
        guard count > 0, let start else { return "" }
        return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    }

    static func commonName(_ name: OpaquePointer?) -> String? {
        guard let name, case let index = X509_NAME_get_index_by_NID(name, NID_commonName, -1), index >= 0,
            let entry = X509_NAME_get_entry(name, index), let value = X509_NAME_ENTRY_get_data(entry)
        else { return nil }
        var text: UnsafeMutablePointer<UInt8>?
        let count = ASN1_STRING_to_UTF8(&text, value)
        guard count >= 0, let text else { return nil }
        defer { CRYPTO_free(text, nil, 0) }
        return String(decoding: UnsafeBufferPointer(start: text, count: Int(count)), as: UTF8.self)
    }

    static func der(_ name: OpaquePointer) -> [UInt8] { PEM.der { i2d_X509_NAME(name, $0) } }
}
