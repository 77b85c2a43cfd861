// SPDX-License-Identifier: Apache-2.0

// Compares a peer's certificate with its name. Handshakes use OpenSSL's own parameters; sessions that may be offered
// again are checked directly.

import URLLoadingCOpenSSL

enum TLSVerification {
    /// Only subjectAltName counts (RFC 9525 §6.3 ignores the common name), and a wildcard must be a whole label.
    private static let hostFlags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

    /// Configures `ssl` to accept only a certificate for `name`, and to send the name to the server unless it is an
    /// address (RFC 6066 §3). Returns false if OpenSSL refuses the name.
    static func expect(_ name: TLSPeerName, of ssl: OpaquePointer) -> Bool {
        guard name.isUsable else { return false }
        let parameters = SSL_get0_param(ssl)
        X509_VERIFY_PARAM_set_hostflags(parameters, hostFlags)
        switch name {
        case .dns(let host):
            // Not SSL_set1_host, which would treat a name that looks like an address as one.
            guard X509_VERIFY_PARAM_set1_host(parameters, host, 0) == 1, c_SSL_set_tlsext_host_name(ssl, host) == 1
            else { return false }
        case .ip(let address):
            guard X509_VERIFY_PARAM_set1_ip(parameters, address, address.count) == 1 else { return false }
        }
        // Set even without verification: `check` then accepts everything but a violated pin.
        SSL_set_verify(ssl, SSL_VERIFY_PEER, nil)
        return true
    }

    static func matches(_ certificate: OpaquePointer, _ name: TLSPeerName) -> Bool {
        switch name {
        case .dns(let host): X509_check_host(certificate, host, host.utf8.count, hostFlags, nil) == 1
        case .ip(let address): X509_check_ip(certificate, address, address.count, hostFlags) == 1
        }
    }

    /// Replaces OpenSSL's own verification (SSL_CTX_set_cert_verify_callback).
    static let check: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { store, _ in
        guard let store, let (state, ssl) = TLSCallbackState.of(store: store), let check = state.check else { return 0 }
        return check.run(store, ssl)
    }

    /// Called by OpenSSL when all of the server's messages have arrived, to check the stapled status.
    static let status: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
        guard let ssl, let check = TLSCallbackState.of(ssl)?.check else { return 1 }
        return check.acceptsStatus(ssl) ? 1 : 0
    }

    /// Called by OpenSSL when the server requests a client certificate.
    static let identity: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
        guard let ssl, let giving = TLSCallbackState.of(ssl)?.giving else { return 1 }
        return giving.run(ssl)
    }
}
