// How the peer's certificate is held against its name. The handshake asks through OpenSSL's own
// parameters; a session that may be offered again is asked directly.

import URLLoadingCOpenSSL

enum TLSVerification {
    /// subjectAltName only (RFC 9525 6.3: the common name is no name), and a wildcard is a whole label.
    private static let hostFlags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

    /// Sets up `ssl` to accept nobody but `name`, and to say it to the server unless it is an address
    /// (RFC 6066 3). Returns false if OpenSSL refuses the name.
    static func expect(_ name: TLSPeerName, of ssl: OpaquePointer, _ verification: TLSConfiguration.Verification) -> Bool {
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
        switch verification {
        case .full: SSL_set_verify(ssl, SSL_VERIFY_PEER, record)
        case .unsafeNone: SSL_set_verify(ssl, SSL_VERIFY_NONE, nil)
        }
        return true
    }

    static func matches(_ certificate: OpaquePointer, _ name: TLSPeerName) -> Bool {
        switch name {
        case .dns(let host): X509_check_host(certificate, host, host.utf8.count, hostFlags, nil) == 1
        case .ip(let address): X509_check_ip(certificate, address, address.count, hostFlags) == 1
        }
    }

    /// Changes no verdict; keeps the first bad one with the chain, which OpenSSL forgets.
    private static let record: @convention(c) (Int32, OpaquePointer?) -> Int32 = { verdict, store in
        guard verdict != 1, let store else { return verdict }
        let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())
        guard let link = TLSLink.of(ssl.map { OpaquePointer($0) }), link.verdict == nil else { return verdict }
        let error = X509_STORE_CTX_get_error(store)
        link.verdict = TLSLink.Verdict(
            error: error, depth: X509_STORE_CTX_get_error_depth(store),
            chain: PEM.der(stack: X509_STORE_CTX_get0_untrusted(store)))
        return verdict
    }
}
