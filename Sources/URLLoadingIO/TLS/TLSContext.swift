// SPDX-License-Identifier: Apache-2.0

// A TLS configuration prepared for use: created once, kept by the caller, and used for every connection with that
// configuration. It has its own session cache.

import URLLoadingCExit
import URLLoadingCOpenSSL

package final class TLSContext: Sendable {
    // Unsafe: the SSL_CTX is configured in `init` and only read afterwards; OpenSSL does its own reference counting and
    // locking.
    nonisolated(unsafe) let pointer: OpaquePointer
    package let configuration: TLSConfiguration
    package let sessions = TLSSessionCache()
    let chains = ProvenChains()

    /// A leaf, two intermediates and a root are common; browsers allow ten, and each link costs a signature check.
    private static let verifyDepth: Int32 = 10
    /// Limit of the bytes of certificates that a peer may send: work done before anything is known about the peer.
    private static let certificateBytes = 100 * 1024

    /// Keeps OpenSSL usable while the process exits. A constructor in the same C file has done so before `main`; this
    /// reference makes the linker keep that file.
    private static let isUsableAtExit = cexit_keep_openssl()

    package init(_ configuration: TLSConfiguration) throws(TLSFailure) {
        _ = Self.isUsableAtExit
        ERR_clear_error()
        let store = configuration.verification == .full ? try TrustStore.make(configuration.roots) : nil
        guard let pointer = SSL_CTX_new(TLS_client_method()) else { throw .local(.other, "SSL_CTX_new") }
        self.pointer = pointer
        self.configuration = configuration
        guard configuration.minimumVersion >= .tls12
        else { throw .noVersions(configuration.minimumVersion, configuration.maximumVersion) }
        try Self.setVersions(pointer, configuration.minimumVersion, configuration.maximumVersion)
        Self.setCommonOptions(pointer)
        SSL_CTX_set_security_level(pointer, configuration.securityLevel)
        try Self.offer(configuration.applicationProtocols) { SSL_CTX_set_alpn_protos(pointer, $0, $1) }
        if let store { SSL_CTX_set1_cert_store(pointer, store.pointer) }
        SSL_CTX_set_verify_depth(pointer, Self.verifyDepth)
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MAX_CERT_LIST, Self.certificateBytes, nil)
        SSL_CTX_set_cert_verify_callback(pointer, TLSVerification.check, nil)
        SSL_CTX_set_cert_cb(pointer, TLSVerification.identity, nil)
        if configuration.staples != .ignored {
            _ = c_SSL_CTX_set_tlsext_status_type(pointer, TLSEXT_STATUSTYPE_ocsp)
            c_SSL_CTX_set_tlsext_status_cb(pointer, TLSVerification.status)
        }
        // Sessions are stored in `TLSSessionCache`, under its own keys.
        c_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(pointer) { ssl, session in
            if let ssl, let session { TLSCallbackState.of(ssl)?.keep(session, of: ssl) }
            // 0: `keep` made a copy, and OpenSSL retains its reference.
            return 0
        }
    }

    deinit { SSL_CTX_free(pointer) }

    /// Makes contexts created from now on reread the system's roots.
    package static func forgetSystemRoots() { TrustStore.forgetSystem() }

    // MARK: Shared by client and server

    static func setVersions(_ pointer: OpaquePointer, _ minimum: TLSVersion, _ maximum: TLSVersion) throws(TLSFailure) {
        guard minimum <= maximum, c_SSL_CTX_set_min_proto_version(pointer, minimum.rawValue) == 1,
            c_SSL_CTX_set_max_proto_version(pointer, maximum.rawValue) == 1
        else { throw .noVersions(minimum, maximum) }
    }

    static func setCommonOptions(_ pointer: OpaquePointer) {
        SSL_CTX_set_security_level(pointer, 2)
        SSL_CTX_set_options(pointer, c_SSL_OP_NO_RENEGOTIATION() | c_SSL_OP_NO_COMPRESSION())
        // The system's configuration file may set this option, with which a truncated connection would pass as properly
        // closed.
        SSL_CTX_clear_options(pointer, c_SSL_OP_IGNORE_UNEXPECTED_EOF())
        c_SSL_CTX_set_mode(
            pointer,
            Int(SSL_MODE_RELEASE_BUFFERS) | Int(SSL_MODE_ENABLE_PARTIAL_WRITE)
                | Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
    }

    /// Passes the protocol list to `set` in its wire format (RFC 7301 §3.1).
    static func offer(
        _ protocols: [String], _ set: (UnsafePointer<UInt8>?, UInt32) -> Int32
    ) throws(TLSFailure) {
        let wire = try wireForm(protocols)
        guard set(wire, UInt32(wire.count)) == 0 else { throw .local(.other, "SSL_set_alpn_protos") }
    }

    static func wireForm(_ protocols: [String]) throws(TLSFailure) -> [UInt8] {
        var wire: [UInt8] = []
        for name in protocols {
            guard let length = UInt8(exactly: name.utf8.count), length > 0
            else { throw TLSFailure(.other, detail: "not a valid ALPN protocol name: \(name)") }
            wire.append(length)
            wire.append(contentsOf: name.utf8)
        }
        return wire
    }
}
