// SPDX-License-Identifier: Apache-2.0

// The server side of TLS, for the origin that tests load from.

import URLLoadingCOpenSSL

package final class TLSServerContext: Sendable {
    package struct Configuration: Sendable {
        /// PEM certificates: the server's own first, then its issuers.
        package var certificateChain: [UInt8]
        package var privateKey: [UInt8]
        package var minimumVersion = TLSVersion.tls12
        package var maximumVersion = TLSVersion.tls13
        /// In order of preference; a client that offers only others is refused (RFC 7301 §3.2).
        package var applicationProtocols: [String] = []
        /// Session tickets sent to each client; with 0, no client can resume. TLS 1.2 knows only one.
        package var tickets = 2
        /// Limit of accepted early data in bytes. URLLoading's clients never send any.
        package var earlyDataLimit: UInt32 = 0
        /// Simulates a faulty server that closes without close_notify.
        package var omitsCloseNotify = false

        /// Trusted issuers of client certificates, in PEM; if empty, clients are not asked for one.
        package var clientRoots: [UInt8] = []
        /// Refuses clients that present no certificate.
        package var requiresIdentity = true
        /// An OCSP response in DER, stapled for clients that request it.
        package var staple: [UInt8] = []
        /// OpenSSL's security level for keys.
        package var securityLevel: Int32 = 2

        package init(certificateChain: [UInt8], privateKey: [UInt8]) {
            self.certificateChain = certificateChain
            self.privateKey = privateKey
        }
    }

    // Unsafe: as in `TLSContext`.
    nonisolated(unsafe) let pointer: OpaquePointer
    package let configuration: Configuration
    fileprivate let wireProtocols: [UInt8]

    package init(_ configuration: Configuration) throws(TLSFailure) {
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(TLS_server_method()) else { throw .local(.other, "SSL_CTX_new") }
        self.pointer = pointer
        self.configuration = configuration
        wireProtocols = try TLSContext.wireForm(configuration.applicationProtocols)
        try TLSContext.setVersions(pointer, configuration.minimumVersion, configuration.maximumVersion)
        TLSContext.setCommonOptions(pointer)
        SSL_CTX_set_security_level(pointer, configuration.securityLevel)
        try useIdentity()
        try askClients()
        setTickets()
        if !configuration.staple.isEmpty { staple() }
        if !wireProtocols.isEmpty { chooseProtocol() }
    }

    deinit { SSL_CTX_free(pointer) }

    private func useIdentity() throws(TLSFailure) {
        let chain = try PEM.certificates(configuration.certificateChain)
        guard let leaf = chain.first, SSL_CTX_use_certificate(pointer, leaf.pointer) == 1
        else { throw .local(.other, "SSL_CTX_use_certificate") }
        for issuer in chain.dropFirst() {
            X509_up_ref(issuer.pointer)
            guard c_SSL_CTX_add0_chain_cert(pointer, issuer.pointer) == 1
            else { throw .local(.other, "SSL_CTX_add0_chain_cert") }
        }
        let context = pointer
        let used = try PEM.withPrivateKey(configuration.privateKey) { SSL_CTX_use_PrivateKey(context, $0) }
        guard used == 1 else { throw .local(.other, "SSL_CTX_use_PrivateKey") }
    }

    private func askClients() throws(TLSFailure) {
        guard !configuration.clientRoots.isEmpty else { return }
        guard let store = SSL_CTX_get_cert_store(pointer) else { throw .local(.other, "SSL_CTX_get_cert_store") }
        for root in try PEM.certificates(configuration.clientRoots) {
            guard X509_STORE_add_cert(store, root.pointer) == 1, SSL_CTX_add_client_CA(pointer, root.pointer) == 1
            else { throw .local(.other, "SSL_CTX_add_client_CA") }
        }
        SSL_CTX_set_verify(
            pointer, SSL_VERIFY_PEER | (configuration.requiresIdentity ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
        // Resuming sessions of authenticated clients requires a context id (SSL_CTX_set_session_id_context(3)).
        SSL_CTX_set_session_id_context(pointer, [1], 1)
    }

    private func staple() {
        let me = Unmanaged.passUnretained(self).toOpaque()
        c_SSL_CTX_set_tlsext_status_cb(pointer) { ssl, me in
            guard let ssl, let me else { return SSL_TLSEXT_ERR_NOACK }
            return Unmanaged<TLSServerContext>.fromOpaque(me)._withUnsafeGuaranteedRef { context in
                let bytes = context.configuration.staple
                guard let copy = c_OPENSSL_memdup(bytes, bytes.count),
                    c_SSL_set_tlsext_status_ocsp_resp(ssl, copy.assumingMemoryBound(to: UInt8.self), bytes.count) == 1
                else { return SSL_TLSEXT_ERR_NOACK }
                return SSL_TLSEXT_ERR_OK
            }
        }
        c_SSL_CTX_set_tlsext_status_arg(pointer, me)
    }

    private func setTickets() {
        SSL_CTX_set_max_early_data(pointer, configuration.earlyDataLimit)
        SSL_CTX_set_num_tickets(pointer, max(0, configuration.tickets))
        guard configuration.tickets <= 0 else { return }
        SSL_CTX_set_options(pointer, c_SSL_OP_NO_TICKET())
        c_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
    }

    private func chooseProtocol() {
        // The transport holds this context for as long as a handshake can call back.
        let me = Unmanaged.passUnretained(self).toOpaque()
        SSL_CTX_set_alpn_select_cb(
            pointer,
            { _, chosen, chosenLength, offered, offeredLength, me in
                guard let me, let chosen, let chosenLength else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                return Unmanaged<TLSServerContext>.fromOpaque(me)._withUnsafeGuaranteedRef { context in
                    context.select(chosen, chosenLength, offered, offeredLength)
                }
            }, me)
    }

    /// Selects the protocol by the server's preference. The result must stay in place: it points into the client's
    /// offer.
    private func select(
        _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>, _ chosenLength: UnsafeMutablePointer<UInt8>,
        _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32
    ) -> Int32 {
        let offer = UnsafeBufferPointer(start: offered, count: Int(offeredLength))
        for name in configuration.applicationProtocols {
            var position = 0
            while position < offer.count {
                let start = position + 1
                let end = start + Int(offer[position])
                guard end <= offer.count else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                if offer[start..<end].elementsEqual(name.utf8) {
                    chosen.pointee = offer.baseAddress?.advanced(by: start)
                    chosenLength.pointee = offer[position]
                    return SSL_TLSEXT_ERR_OK
                }
                position = end
            }
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }
}
