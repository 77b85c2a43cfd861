// One configuration made ready: made once, kept by the caller, used for every connection that asks
// for the same. Its sessions are its own.

import URLLoadingCOpenSSL

package final class TLSContext: @unchecked Sendable {
    // Unchecked: the SSL_CTX is set up in `init` and only read afterwards; OpenSSL counts and locks.
    let pointer: OpaquePointer
    package let configuration: TLSConfiguration
    package let sessions = TLSSessionCache()
    let chains = ProvenChains()

    /// A chain of a leaf, two intermediates and a root is common; ten is what browsers allow, and
    /// each link is a signature to check.
    private static let verifyDepth: Int32 = 10
    /// Bytes of certificates a peer may send: the work before anything is known of it.
    private static let certificateBytes = 100 * 1024

    package init(_ configuration: TLSConfiguration) throws(TLSFailure) {
        ERR_clear_error()
        let store = configuration.verification == .full ? try TrustStore.make(configuration.roots) : nil
        guard let pointer = SSL_CTX_new(TLS_client_method()) else { throw .local(.other, "SSL_CTX_new") }
        self.pointer = pointer
        self.configuration = configuration
        try Self.setVersions(pointer, configuration.minimumVersion, configuration.maximumVersion)
        Self.setHabits(pointer)
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
        // Sessions are kept by us, under keys of ours.
        c_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(pointer) { ssl, session in
            if let session { TLSLink.of(ssl)?.keep(session) }
            // Ours is a copy: OpenSSL keeps its own.
            return 0
        }
    }

    deinit { SSL_CTX_free(pointer) }

    /// Contexts made from now on read the system's roots again.
    package static func forgetSystemRoots() { TrustStore.forgetSystem() }

    // MARK: What client and server share

    /// Records are 16 KB: seven come with one call when they are there. Freed whenever it is empty.
    private static let readBuffer = 128 * 1024

    static func setVersions(_ pointer: OpaquePointer, _ minimum: TLSVersion, _ maximum: TLSVersion) throws(TLSFailure) {
        guard minimum <= maximum, c_SSL_CTX_set_min_proto_version(pointer, minimum.rawValue) == 1,
            c_SSL_CTX_set_max_proto_version(pointer, maximum.rawValue) == 1
        else { throw .local(.protocolVersion, "no version between \(minimum) and \(maximum)") }
    }

    static func setHabits(_ pointer: OpaquePointer) {
        SSL_CTX_set_security_level(pointer, 2)
        SSL_CTX_set_options(pointer, c_SSL_OP_NO_RENEGOTIATION() | c_SSL_OP_NO_COMPRESSION())
        // The system's configuration file may set it, and truncation would pass for an end.
        SSL_CTX_clear_options(pointer, c_SSL_OP_IGNORE_UNEXPECTED_EOF())
        c_SSL_CTX_set_mode(
            pointer,
            Int(SSL_MODE_RELEASE_BUFFERS) | Int(SSL_MODE_ENABLE_PARTIAL_WRITE)
                | Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        c_SSL_CTX_set_read_ahead(pointer, 1)
        SSL_CTX_set_default_read_buffer_len(pointer, readBuffer)
    }

    /// Gives `set` the list as it is on the wire (RFC 7301 3.1).
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
            else { throw TLSFailure(.other, detail: "no name of a protocol: \(name)") }
            wire.append(length)
            wire.append(contentsOf: name.utf8)
        }
        return wire
    }
}
