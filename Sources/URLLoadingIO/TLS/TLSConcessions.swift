// SPDX-License-Identifier: Apache-2.0

// What a handshake accepts of its peer: the configuration's limits, lowered by the concessions to that peer.
//
// Rule 1: a concession holds only for the hosts that its pattern matches. The configuration itself cannot accept less
// than TLS 1.2 and OpenSSL's security level 2.
// Rule 2: conceding TLS 1.0 or 1.1 also lowers the security level of the handshake, which these versions sign with MD5
// and SHA-1. It does not lower the level of certificates.

import URLLoadingCOpenSSL

/// What a client accepts of an old server; `nil` and false accept no more than the configuration.
package struct TLSConcessions: Sendable, Hashable {
    package var minimumVersion: TLSVersion?
    package var maximumVersion: TLSVersion?
    /// OpenSSL's security level, for the handshake and for the certificates.
    package var securityLevel: Int32?
    /// A server without secure renegotiation (RFC 5746).
    package var allowsInsecureRenegotiation = false
    /// A connection that ends without close_notify after a response without a length.
    package var allowsMissingCloseNotify = false

    package init() {}

    /// The concessions that a connection has used.
    package struct Used: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// TLS 1.0 or 1.1.
        package static let version = Used(rawValue: 1)
        /// A key or a signature below the configuration's level.
        package static let strength = Used(rawValue: 2)
        /// No secure renegotiation.
        package static let renegotiation = Used(rawValue: 4)
        /// An end without close_notify.
        package static let missingCloseNotify = Used(rawValue: 8)
    }
}

/// A setting with which a failed handshake could succeed.
package enum TLSRemedy: Sendable, Hashable {
    /// A lower `TLSConcessions.minimumVersion`.
    case version
    /// A lower `TLSConcessions.securityLevel`.
    case strength
    case renegotiation
    case missingCloseNotify
    /// `TLSConfiguration.fetchesMissingIssuers`; with the address that the certificate names.
    case missingIssuer(String)
}

/// The limits of one handshake.
struct TLSLimits: Equatable {
    let minimum: TLSVersion
    let maximum: TLSVersion
    /// The security level of the handshake: cipher suites, groups and its signature.
    let handshakeLevel: Int32
    /// The security level of the keys and signatures of certificates.
    let certificateLevel: Int32
    let allowsInsecureRenegotiation: Bool
    /// The level without concessions.
    let fullLevel: Int32

    init(_ configuration: TLSConfiguration, _ concessions: TLSConcessions) {
        minimum = concessions.minimumVersion ?? configuration.minimumVersion
        maximum = concessions.maximumVersion ?? configuration.maximumVersion
        certificateLevel = concessions.securityLevel ?? configuration.securityLevel
        // OpenSSL 3 rates the signature of these versions at 67 bits, below level 1.
        handshakeLevel = minimum < .tls12 ? 0 : certificateLevel
        allowsInsecureRenegotiation = concessions.allowsInsecureRenegotiation
        fullLevel = configuration.securityLevel
    }

    /// Sets the limits for one connection.
    func apply(to ssl: OpaquePointer) throws(TLSFailure) {
        guard minimum <= maximum else { throw .noVersions(minimum, maximum) }
        guard c_SSL_set_min_proto_version(ssl, minimum.rawValue) == 1,
            c_SSL_set_max_proto_version(ssl, maximum.rawValue) == 1
        else { throw .local(.unusableVersions, "OpenSSL was built without \(minimum.name) or \(maximum.name)") }
        SSL_set_security_level(ssl, handshakeLevel)
        if allowsInsecureRenegotiation { SSL_set_options(ssl, c_SSL_OP_LEGACY_SERVER_CONNECT()) }
    }

    /// Returns the concessions that a finished handshake has used.
    /// - Parameter isWeak: whether a certificate or the handshake was below the full level.
    func used(by ssl: OpaquePointer, isWeak: Bool) -> TLSConcessions.Used {
        var used: TLSConcessions.Used = isWeak ? .strength : []
        let version = SSL_version(ssl)
        if version < TLSVersion.tls12.rawValue { used.insert(.version) }
        // TLS 1.3 has no renegotiation.
        if version < TLSVersion.tls13.rawValue, c_SSL_get_secure_renegotiation_support(ssl) == 0 {
            used.insert(.renegotiation)
        }
        return used
    }

    /// Whether the server's key exchange or its signature of the handshake is below the full level.
    func isHandshakeWeak(_ ssl: OpaquePointer) -> Bool {
        // In TLS 1.0 and 1.1 every signature of the handshake is: that is the version, not the server.
        let digest = SSL_version(ssl) < TLSVersion.tls12.rawValue ? NID_undef : c_SSL_get_peer_signature_nid(ssl)
        if digest == NID_sha1 || digest == NID_md5 { return true }
        guard let key = c_SSL_get_peer_tmp_key(ssl) else { return false }
        defer { EVP_PKEY_free(key) }
        return isBelow(EVP_PKEY_get_security_bits(key))
    }

    /// Whether a chain has a key or a signature below the full level. The signature of the last certificate, a trusted
    /// root, proves nothing and does not count.
    func isWeak(_ chain: OpaquePointer?) -> Bool {
        guard let chain, case let count = c_sk_X509_num(chain), count > 0 else { return false }
        return (0..<count).contains { index in
            guard let certificate = c_sk_X509_value(chain, index) else { return false }
            var bits: Int32 = 0
            let isSignatureKnown = X509_get_signature_info(certificate, nil, nil, &bits, nil) == 1
            let isSignatureWeak = index < count - 1 && (!isSignatureKnown || isBelow(bits))
            return isSignatureWeak
                || X509_get0_pubkey(certificate).map { isBelow(EVP_PKEY_get_security_bits($0)) } ?? true
        }
    }

    private func isBelow(_ bits: Int32) -> Bool { bits < Self.bits(fullLevel) }

    /// The bits of a security level (SSL_CTX_set_security_level(3)).
    private static func bits(_ level: Int32) -> Int32 {
        switch level {
        case ...0: 0
        case 1: 80
        case 2: 112
        case 3: 128
        case 4: 192
        default: 256
        }
    }
}

extension TLSRemedy {
    /// Returns the settings with which a handshake that failed in this way could succeed.
    /// - Parameter isEarly: the server ended the handshake before it sent its certificate. An old server may do so
    ///   when it is offered versions, ciphers or extensions that it does not know, or none that it has.
    static func remedies(_ kind: TLSFailure.Kind, _ limits: TLSLimits, isEarly: Bool) -> [TLSRemedy] {
        let version: [TLSRemedy] = limits.minimum == .tls12 ? [.version] : []
        // A configuration that demands more than the default is to be changed itself.
        let strength: [TLSRemedy] = limits.fullLevel <= 2 && limits.certificateLevel > 0 ? [.strength] : []
        return switch kind {
        case .protocolVersion, .alert(70): version
        case .weakCryptography, .weakHandshake: strength
        case .insecureRenegotiation: [.renegotiation]
        case .noCommonCipher: strength
        // handshake_failure, insufficient_security.
        case .alert(40), .alert(71), .handshakeEndedByPeer: isEarly ? version + strength : []
        default: []
        }
    }
}

extension TLSFailure {
    /// The failure of a range of versions that is empty, or begins below TLS 1.2 without a concession.
    static func noVersions(_ minimum: TLSVersion, _ maximum: TLSVersion) -> TLSFailure {
        TLSFailure(
            .unusableVersions,
            detail: minimum <= maximum
                ? "\(minimum.name) is accepted only from hosts to which it is conceded"
                : "no version is left between \(minimum.name) and \(maximum.name)")
    }
}

extension TLSVersion {
    /// The name for people: `TLS 1.2`.
    package var name: String {
        switch self {
        case .tls10: "TLS 1.0"
        case .tls11: "TLS 1.1"
        case .tls12: "TLS 1.2"
        case .tls13: "TLS 1.3"
        }
    }
}
