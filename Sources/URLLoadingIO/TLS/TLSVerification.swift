// How the peer's certificate is held against its name. The handshake asks through OpenSSL's own
// parameters; a session that may be offered again is asked directly.

import URLLoadingCOpenSSL

enum TLSVerification {
    /// subjectAltName only (RFC 9525 6.3: the common name is no name), and a wildcard is a whole label.
    private static let hostFlags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

    /// Sets up `ssl` to accept nobody but `name`, and to say it to the server unless it is an address
    /// (RFC 6066 3). Returns false if OpenSSL refuses the name.
    static func expect(_ name: TLSPeerName, of ssl: OpaquePointer) -> Bool {
        guard name.isUsable else { return false }
        let parameters = SSL_get0_param(ssl)
        X509_VERIFY_PARAM_set_hostflags(parameters, hostFlags)
        switch name {
        case .dns(let host):
            // Not SSL_set1_host, which would take a name that looks like an address for one.
            guard X509_VERIFY_PARAM_set1_host(parameters, host, 0) == 1, c_SSL_set_tlsext_host_name(ssl, host) == 1
            else { return false }
        case .ip(let address):
            guard X509_VERIFY_PARAM_set1_ip(parameters, address, address.count) == 1 else { return false }
        }
        // Also without verification: `check` then says yes, but for pins.
        SSL_set_verify(ssl, SSL_VERIFY_PEER, nil)
        return true
    }

    static func matches(_ certificate: OpaquePointer, _ name: TLSPeerName) -> Bool {
        switch name {
        case .dns(let host): X509_check_host(certificate, host, host.utf8.count, hostFlags, nil) == 1
        case .ip(let address): X509_check_ip(certificate, address, address.count, hostFlags) == 1
        }
    }

    /// What OpenSSL calls in place of its own check (SSL_CTX_set_cert_verify_callback).
    static let check: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { store, _ in
        guard let store, let (link, ssl) = TLSLink.of(store: store), let check = link.check else { return 0 }
        return check.run(store, ssl)
    }

    /// What OpenSSL calls when all of the server's messages are there, for what was stapled.
    static let status: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
        guard let ssl, let check = TLSLink.of(ssl)?.check else { return 1 }
        return check.mayGoOn(ssl) ? 1 : 0
    }

    /// What OpenSSL calls when the server asks who we are.
    static let identity: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
        guard let ssl, let giving = TLSLink.of(ssl)?.giving else { return 1 }
        return giving.run(ssl)
    }
}
