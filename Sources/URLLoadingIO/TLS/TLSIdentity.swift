// SPDX-License-Identifier: Apache-2.0

// A client certificate with its issuers and private key.

import URLLoadingCOpenSSL

package final class TLSIdentity: Sendable, Hashable {
    private let certificate: X509Certificate
    // Unsafe: neither is changed after `init`; OpenSSL does its own reference counting and locking.
    /// The issuer certificates, each of which this object frees.
    private nonisolated(unsafe) let chain: OpaquePointer
    private nonisolated(unsafe) let key: OpaquePointer
    /// The certificates in DER, the client's own first.
    package let certificates: [[UInt8]]

    package enum Problem: Error, Sendable, Hashable {
        case noCertificate
        case noKey
        /// The key is encrypted, with another passphrase, or with one where none was given.
        case passphrase
        case keyOfAnother
        case unreadable(String)
    }

    /// Takes ownership of `key`, even on failure.
    private init(_ certificates: [X509Certificate], adopting key: OpaquePointer) throws(Problem) {
        self.key = key
        guard let own = certificates.first, let chain = c_sk_X509_new() else {
            EVP_PKEY_free(key)
            throw .noCertificate
        }
        certificate = own
        self.chain = chain
        self.certificates = certificates.map { PEM.der($0.pointer) }
        // From here on `deinit` frees what was taken.
        for issuer in certificates.dropFirst() {
            X509_up_ref(issuer.pointer)
            if c_sk_X509_push(chain, issuer.pointer) <= 0 { X509_free(issuer.pointer) }
        }
        guard X509_check_private_key(own.pointer, key) == 1 else {
            ERR_clear_error()
            throw .keyOfAnother
        }
    }

    deinit {
        c_sk_X509_free(chain)
        EVP_PKEY_free(key)
    }

    /// Creates an identity from PEM: the certificates, its own first, and the key, which may be in the same text.
    package convenience init(certificates: [UInt8], key: [UInt8], passphrase: [UInt8]?) throws(Problem) {
        let all: [X509Certificate]
        do throws(TLSFailure) { all = try PEM.certificates(certificates) } catch { throw .noCertificate }
        try self.init(all, adopting: Self.key(key, passphrase))
    }

    /// The private key in DER, unencrypted; empty if it cannot be exported.
    package var derKey: [UInt8] { PEM.der { i2d_PrivateKey(key, $0) } }

    /// Creates an identity from ``certificates`` and ``derKey`` of another process.
    package convenience init(certificates: [[UInt8]], derKey: [UInt8]) throws(Problem) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let key: OpaquePointer? = derKey.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return d2i_AutoPrivateKey(nil, &start, bytes.count)
        }
        guard let key else { throw .noKey }
        let all = certificates.compactMap { certificate in
            certificate.withUnsafeBufferPointer { bytes -> X509Certificate? in
                var start = bytes.baseAddress
                return d2i_X509(nil, &start, bytes.count).map { X509Certificate(adopting: $0) }
            }
        }
        try self.init(all.count == certificates.count ? all : [], adopting: key)
    }

    /// Creates an identity from PKCS#12 (RFC 7292).
    package convenience init(pkcs12: [UInt8], passphrase: [UInt8]?) throws(Problem) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let parsed: OpaquePointer? = pkcs12.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return d2i_PKCS12(nil, &start, bytes.count)
        }
        guard let parsed else { throw .unreadable("no PKCS#12") }
        defer { PKCS12_free(parsed) }
        var key: OpaquePointer?
        var own: OpaquePointer?
        var others: OpaquePointer?
        // C's char is signed on x86-64 and unsigned on aarch64.
        let text = (passphrase ?? []).map { CChar(truncatingIfNeeded: $0) } + [0]
        guard PKCS12_verify_mac(parsed, text, -1) == 1 || (passphrase == nil && PKCS12_verify_mac(parsed, nil, 0) == 1)
        else { throw .passphrase }
        guard
            PKCS12_parse(
                parsed, passphrase == nil && PKCS12_verify_mac(parsed, nil, 0) == 1 ? nil : text, &key, &own, &others)
                == 1
        else { throw .unreadable(OpenSSLErrors.take().words) }
        defer { if let others { c_sk_X509_free(others) } }
        guard let key else {
            if let own { X509_free(own) }
            throw .noKey
        }
        guard let own else {
            EVP_PKEY_free(key)
            throw .noCertificate
        }
        var all = [X509Certificate(adopting: own)]
        if let others {
            for index in 0..<max(0, c_sk_X509_num(others)) {
                guard let issuer = c_sk_X509_value(others, index) else { continue }
                X509_up_ref(issuer)
                all.append(X509Certificate(adopting: issuer))
            }
        }
        try self.init(all, adopting: key)
    }

    /// Returns the private key of a PEM text, which the caller frees.
    static func key(_ text: [UInt8], _ passphrase: [UInt8]?) throws(Problem) -> OpaquePointer {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let bio = BIO_new(BIO_s_mem()) else { throw .unreadable("BIO_new") }
        defer { BIO_free(bio) }
        guard text.isEmpty || BIO_write(bio, text, Int32(clamping: text.count)) == text.count else {
            throw .unreadable("BIO_write")
        }
        var reader = PassphraseReader(passphrase: passphrase)
        let key = withUnsafeMutablePointer(to: &reader) { reader in
            PEM_read_bio_PrivateKey(bio, nil, PassphraseReader.give, reader)
        }
        if let key { return key }
        // With a wrong passphrase the text decrypts to nonsense, which may fail in many ways.
        throw reader.wasAsked ? .passphrase : .noKey
    }

    // MARK: Use

    /// Makes `ssl` present this certificate if the server requests one.
    func use(on ssl: OpaquePointer) -> Bool {
        SSL_use_cert_and_key(ssl, certificate.pointer, key, chain, 1) == 1
    }

    package static func == (a: TLSIdentity, b: TLSIdentity) -> Bool { a === b || a.certificates == b.certificates }
    package func hash(into hasher: inout Hasher) { hasher.combine(certificates.first) }
}

/// Supplies the passphrase that OpenSSL requests; without it, OpenSSL would prompt on the terminal.
private struct PassphraseReader {
    let passphrase: [UInt8]?
    var wasAsked = false

    static let give: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
        buffer, size, _, me in
        guard let buffer, let me else { return -1 }
        let reader = me.assumingMemoryBound(to: PassphraseReader.self)
        reader.pointee.wasAsked = true
        guard let passphrase = reader.pointee.passphrase, passphrase.count <= Int(size) else { return -1 }
        for (index, byte) in passphrase.enumerated() { buffer[index] = CChar(truncatingIfNeeded: byte) }
        return Int32(passphrase.count)
    }
}

/// Decides whether a server that requests a client certificate gets one, and which. Belongs to one connection.
final class TLSIdentitySelection {
    /// The configuration's identity for this peer.
    private let own: TLSIdentity?
    private let asks: Bool
    private var asksLater: Bool
    private var answer: TLSIdentity??
    private(set) var wasAsked = false
    private(set) var wasGiven = false
    private var wasUsable = true
    /// True once the handshake is over: a request that comes later can wait only if its reader looks for it
    /// (`stopAsking`).
    var isOver = false
    var isNotAsked = false
    /// The issuers that the server named, in DER, while the connection waits for a decision.
    private(set) var pending: [[UInt8]]?

    init(_ peer: TLSPeer, _ configuration: TLSConfiguration) {
        own = configuration.identity(for: peer.name)
        asks = peer.asksIdentity
        asksLater = peer.asksIdentity && peer.asksIdentityLater
    }

    /// Whether the server may also request a certificate after the handshake (RFC 8446 §4.6.2).
    var mayComeLater: Bool { own != nil || asksLater }

    /// Stops waiting for decisions after the handshake, because the connection's reader no longer looks for them.
    func stopAsking() { asksLater = false }

    /// Supplies the decision; `nil` presents no certificate.
    func answer(_ identity: TLSIdentity?) {
        answer = .some(identity)
        pending = nil
    }

    /// The identity that the configuration proposes.
    var proposed: TLSIdentity? { own }

    /// Returns 1 to continue, -1 to wait for a decision, 0 if the identity cannot be used.
    func run(_ ssl: OpaquePointer) -> Int32 {
        guard !isNotAsked else { return 0 }
        wasAsked = true
        if answer == nil, asks, !isOver || asksLater {
            pending = issuers(SSL_get0_peer_CA_list(ssl))
            return -1
        }
        guard let identity = answer ?? own else { return 1 }
        guard identity.use(on: ssl) else {
            wasUsable = false
            return 0
        }
        wasGiven = true
        return 1
    }

    /// Translates an alert, given whether an identity was requested and presented. A server that does not know the
    /// issuer, or rejects the key, may send any of a dozen alerts (RFC 8446 §6.2).
    func kind(_ kind: TLSFailure.Kind) -> TLSFailure.Kind {
        if !wasUsable { return .identityUnusable }
        guard wasAsked, case .alert(let number) = kind else { return kind }
        switch number {
        case 116: return .identityRequired
        case 42, 43, 44, 45, 46, 48, 49, 51: return wasGiven ? .identityRefused : .identityRequired
        // handshake_failure: TLS 1.2 uses it in both cases.
        case 40: return wasGiven ? .identityRefused : .identityRequired
        default: return kind
        }
    }

    /// Limit of the issuer names passed to a decision.
    private static let issuerLimit = 1024

    private func issuers(_ names: OpaquePointer?) -> [[UInt8]] {
        guard let names else { return [] }
        return (0..<min(c_sk_X509_NAME_num(names), Int32(Self.issuerLimit))).compactMap { index in
            c_sk_X509_NAME_value(names, index).map(DistinguishedName.der)
        }
    }
}
