// SPDX-License-Identifier: Apache-2.0

// Makes OpenSSL sign certificates that no authority would. The extensions are encoded in DER here, because OpenSSL's
// builders refuse or repair deliberate errors.

import URLLoadingCOpenSSL

/// A certificate before it is signed.
struct TestCertificateForm {
    var commonName: String
    var names: [String] = []
    var addresses: [[UInt8]] = []
    var validFrom = -86_400
    var validUntil = 86_400
    var isAuthority = false
    var pathLength: Int?
    var permittedNames: [String] = []
    /// The extended key usage; `nil` for none.
    var isForServers: Bool?
    var issuerLocations: [String] = []

    init(commonName: String) { self.commonName = commonName }

    init(_ options: TestCertificateOptions) {
        commonName = options.commonName
        names = options.names
        addresses = options.addresses
        isForServers = options.isForServers
        issuerLocations = options.issuerLocations
        switch options.validity {
        case .present: break
        case .past: (validFrom, validUntil) = (-172_800, -86_400)
        case .future: (validFrom, validUntil) = (86_400, 172_800)
        case .seconds(let from, let until): (validFrom, validUntil) = (from, until)
        }
    }

    /// The number, criticality and value of each extension (RFC 5280 §4.2.1).
    var extensions: [(kind: Int32, isCritical: Bool, value: [UInt8])] {
        var all: [(kind: Int32, isCritical: Bool, value: [UInt8])] = [
            (NID_basic_constraints, true, basicConstraints),
            // keyCertSign and cRLSign for an authority, digitalSignature for others.
            (NID_key_usage, true, isAuthority ? [0x03, 0x02, 0x01, 0x06] : [0x03, 0x02, 0x07, 0x80]),
        ]
        if !names.isEmpty || !addresses.isEmpty {
            let general = names.map { DER.value(0x82, Array($0.utf8)) } + addresses.map { DER.value(0x87, $0) }
            all.append((NID_subject_alt_name, false, DER.sequence(general)))
        }
        if let isForServers {
            // id-kp-serverAuth is 1.3.6.1.5.5.7.3.1, id-kp-clientAuth ends in 2.
            let purpose = DER.value(0x06, [0x2B, 6, 1, 5, 5, 7, 3, isForServers ? 1 : 2])
            all.append((NID_ext_key_usage, false, DER.sequence([purpose])))
        }
        if !issuerLocations.isEmpty {
            // id-ad-caIssuers is 1.3.6.1.5.5.7.48.2.
            let method = DER.value(0x06, [0x2B, 6, 1, 5, 5, 7, 48, 2])
            let entries = issuerLocations.map { DER.sequence([method, DER.value(0x86, Array($0.utf8))]) }
            all.append((NID_info_access, false, DER.sequence(entries)))
        }
        if !permittedNames.isEmpty {
            let subtrees = permittedNames.map { DER.sequence([DER.value(0x82, Array($0.utf8))]) }
            all.append((NID_name_constraints, true, DER.sequence([DER.value(0xA0, subtrees.flatMap { $0 })])))
        }
        return all
    }

    private var basicConstraints: [UInt8] {
        guard isAuthority else { return DER.sequence([]) }
        let limit = pathLength.map { [DER.value(0x02, [UInt8(truncatingIfNeeded: $0)])] } ?? []
        return DER.sequence([DER.value(0x01, [0xFF])] + limit)
    }
}

private enum DER {
    static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let length: [UInt8] =
            switch count {
            case ..<0x80: [UInt8(count)]
            case ..<0x100: [0x81, UInt8(count)]
            default: [0x82, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
            }
        return [tag] + length + content
    }

    static func sequence(_ parts: [[UInt8]]) -> [UInt8] { value(0x30, parts.flatMap { $0 }) }
}

final class TestKey: Sendable {
    // Unsafe: the key is not changed.
    nonisolated(unsafe) let pointer: OpaquePointer

    init(_ kind: TestCertificateOptions.Key = .ec256) throws {
        let made =
            switch kind {
            case .ec256: c_EVP_EC_gen("P-256")
            case .rsa(let bits): c_EVP_RSA_gen(Int32(clamping: bits))
            }
        guard let made else { throw TestCertificateError(step: "key") }
        pointer = made
    }

    deinit { EVP_PKEY_free(pointer) }

    func pem() throws -> [UInt8] {
        try Memory.bytes("key in PEM") { PEM_write_bio_PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
    }

    func pem(passphrase: String) throws -> [UInt8] {
        let words = Array(passphrase.utf8)
        return try Memory.bytes("encrypted key") {
            PEM_write_bio_PrivateKey($0, pointer, EVP_aes_256_cbc(), words, Int32(words.count), nil, nil)
        }
    }

    func pkcs12(_ certificate: TestCertificate, passphrase: String) throws -> [UInt8] {
        guard let made = PKCS12_create(passphrase, "test", pointer, certificate.pointer, nil, 0, 0, 0, 0, 0)
        else { throw TestCertificateError(step: "PKCS#12") }
        defer { PKCS12_free(made) }
        return try Memory.bytes("PKCS#12") { i2d_PKCS12_bio($0, made) }
    }
}

final class TestCertificate: Sendable {
    // Unsafe: the certificate is not changed after `init`.
    nonisolated(unsafe) let pointer: OpaquePointer
    let pem: [UInt8]

    /// Creates and signs a certificate; without `issuer` it is its own issuer.
    init(_ form: TestCertificateForm, of key: TestKey, issuer: TestCertificate?, signedBy signer: TestKey) throws {
        guard let pointer = X509_new() else { throw TestCertificateError(step: "certificate") }
        do {
            try Self.fill(pointer, form, key, issuer?.pointer ?? pointer)
            try require(X509_sign(pointer, signer.pointer, EVP_sha256()) > 0, "signature")
            pem = try Memory.bytes("certificate in PEM") { PEM_write_bio_X509($0, pointer) }
        } catch {
            X509_free(pointer)
            throw error
        }
        self.pointer = pointer
    }

    deinit { X509_free(pointer) }

    private static func fill(
        _ pointer: OpaquePointer, _ form: TestCertificateForm, _ key: TestKey, _ issuer: OpaquePointer
    ) throws {
        try require(X509_set_version(pointer, 2) == 1, "version")
        // Serial numbers of one issuer must differ (RFC 5280 §4.1.2.2).
        try require(
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(pointer), .random(in: 1...UInt64(Int64.max))) == 1, "serial")
        try require(X509_gmtime_adj(X509_getm_notBefore(pointer), form.validFrom) != nil, "notBefore")
        try require(X509_gmtime_adj(X509_getm_notAfter(pointer), form.validUntil) != nil, "notAfter")
        let name = Array(form.commonName.utf8)
        try require(
            X509_NAME_add_entry_by_txt(
                X509_get_subject_name(pointer), "CN", MBSTRING_FLAG | 0, name, Int32(name.count), -1, 0) == 1, "subject"
        )
        try require(X509_set_issuer_name(pointer, X509_get_subject_name(issuer)) == 1, "issuer")
        try require(X509_set_pubkey(pointer, key.pointer) == 1, "public key")
        for entry in form.extensions { try add(entry, to: pointer) }
    }

    private static func add(_ entry: (kind: Int32, isCritical: Bool, value: [UInt8]), to pointer: OpaquePointer) throws
    {
        guard let value = ASN1_OCTET_STRING_new() else { throw TestCertificateError(step: "extension") }
        defer { ASN1_OCTET_STRING_free(value) }
        try require(ASN1_OCTET_STRING_set(value, entry.value, Int32(entry.value.count)) == 1, "extension")
        let made = X509_EXTENSION_create_by_NID(nil, entry.kind, entry.isCritical ? 1 : 0, value)
        defer { X509_EXTENSION_free(made) }
        try require(made != nil && X509_add_ext(pointer, made, -1) == 1, "extension")
    }
}

/// Creates OCSP responses, signed by the certificate's issuer (RFC 6960 §4.2).
enum TestOCSPResponse {
    static func bytes(
        _ status: TestCertificateAuthority.Status, of leaf: TestCertificate, _ issuer: TestCertificate, _ key: TestKey
    ) throws -> [UInt8] {
        let (from, until) = status == .outdated ? (-172_800, -86_400) : (-3600, 86_400)
        return try bytes(isRevoked: status == .revoked, from: from, until: until, of: leaf, issuer, key)
    }

    /// - Parameters:
    ///   - from: seconds from now, as `until`.
    ///   - until: `nil` for a response that does not say.
    static func bytes(
        isRevoked: Bool, from: Int, until: Int?, of leaf: TestCertificate, _ issuer: TestCertificate, _ key: TestKey
    ) throws -> [UInt8] {
        guard let basic = OCSP_BASICRESP_new() else { throw TestCertificateError(step: "status") }
        defer { OCSP_BASICRESP_free(basic) }
        let identifier = OCSP_cert_to_id(EVP_sha1(), leaf.pointer, issuer.pointer)
        let this = X509_gmtime_adj(nil, from)
        let next = until.flatMap { X509_gmtime_adj(nil, $0) }
        defer {
            OCSP_CERTID_free(identifier)
            ASN1_TIME_free(this)
            ASN1_TIME_free(next)
        }
        let word = isRevoked ? V_OCSP_CERTSTATUS_REVOKED : V_OCSP_CERTSTATUS_GOOD
        try require(OCSP_basic_add1_status(basic, identifier, word, 0, this, this, next) != nil, "status")
        try require(OCSP_basic_sign(basic, issuer.pointer, key.pointer, EVP_sha256(), nil, 0) == 1, "status signature")
        guard let response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
        else { throw TestCertificateError(step: "status response") }
        defer { OCSP_RESPONSE_free(response) }
        return try Memory.der("status") { i2d_OCSP_RESPONSE(response, $0) }
    }
}

private func require(_ holds: Bool, _ step: String) throws {
    guard holds else { throw TestCertificateError(step: step) }
}

private enum Memory {
    static func der(_ step: String, _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) throws
        -> [UInt8]
    {
        let count = write(nil)
        guard count > 0 else { throw TestCertificateError(step: step) }
        return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, used in
            var end = buffer.baseAddress
            used = Int(max(0, write(&end)))
        }
    }

    /// Returns the bytes that `write` puts into a BIO.
    static func bytes(_ step: String, _ write: (OpaquePointer) -> Int32) throws -> [UInt8] {
        guard let bio = BIO_new(BIO_s_mem()) else { throw TestCertificateError(step: step) }
        defer { BIO_free(bio) }
        var start: UnsafeMutablePointer<CChar>?
        guard write(bio) == 1, case let count = c_BIO_get_mem_data(bio, &start), count > 0, let start
        else { throw TestCertificateError(step: step) }
        return UnsafeRawBufferPointer(start: start, count: count).map { $0 }
    }
}
