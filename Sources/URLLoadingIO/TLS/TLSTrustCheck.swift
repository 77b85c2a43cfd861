// SPDX-License-Identifier: Apache-2.0

// Verifies the server's certificate in one handshake: OpenSSL's checks, then the pins, then a pause if a decision is
// needed. OpenSSL calls it again after the pause (SSL_set_retry_verify, OpenSSL 3.0), when the answer is there.
//
// Rule 1: a decision cannot override a pin. A caller that wants to judge keys itself sets no pins.
// Rule 2: only a successful verification proves the issuers. Where it failed, pins are compared with the server's own
// certificate only: the other certificates are merely presented, not proven.

import URLLoadingCOpenSSL

final class TLSTrustCheck {
    let name: TLSPeerName
    private let verification: TLSConfiguration.Verification
    /// One of these must match; `nil` if the peer is not pinned.
    let pins: [TLSPin]?
    /// Whether a decision is needed.
    let asks: Bool
    private let staples: TLSConfiguration.Staples
    private let chains: ProvenChains
    /// The limits of a peer with concessions.
    private let limits: TLSLimits?
    /// The search for issuers that the server did not send.
    var search: TLSIssuerSearch
    /// Whether a certificate of the proven chain is below the configuration's level.
    private var hasWeakCertificate = false
    /// The address of the missing issuer, if a search was not enabled.
    private var missingIssuer: String?

    /// The result of the verification: set if a decision is needed, if it failed, or for the sessions of a pinned
    /// server.
    private(set) var trust: TLSTrust?
    private(set) var answer: Bool?
    /// True while it waits for the decision.
    private(set) var isPending = false
    private var failures: [TLSTrust.Failure] = []
    private var firstError = X509_V_OK
    /// The proven chain, with which a stapled status is checked: the server's certificate, and its issuers, at least
    /// one, the nearest first.
    private var issued: (leaf: X509Certificate, issuers: [X509Certificate])?
    /// Expiry of the stapled status, in seconds since 1970.
    private(set) var statusEnd: Int64?

    private static let failureLimit = 32

    /// - Parameter mayPause: whether the handshake may wait for a decision or a missing issuer.
    init(
        _ peer: TLSPeer, _ configuration: TLSConfiguration, _ chains: ProvenChains, _ limits: TLSLimits?,
        mayPause: Bool = true
    ) {
        self.chains = chains
        self.limits = limits
        let isSearched = configuration.fetchesMissingIssuers && peer.role == .origin && mayPause
        search = TLSIssuerSearch(isEnabled: isSearched && configuration.verification == .full)
        name = peer.name
        verification = configuration.verification
        pins = configuration.pins(for: peer.name)
        asks = peer.asksTrust && configuration.verification == .full && mayPause
        staples = configuration.verification == .full ? configuration.staples : .ignored
    }

    /// Whether the server's sessions must keep the verification result.
    var keeps: Bool { asks || pins != nil }

    func answer(_ trusts: Bool) {
        answer = trusts
        isPending = false
    }

    /// Whether a certificate or the handshake is below the configuration's level, which only a concession permits.
    func isWeak(_ ssl: OpaquePointer) -> Bool {
        guard let limits else { return false }
        return hasWeakCertificate || limits.isHandshakeWeak(ssl)
    }

    /// The check that failed, if the certificate was the reason.
    var failure: TLSTrust.Failure? {
        if answer == true { return nil }
        return failures.first
            ?? (answer == false ? TLSTrust.Failure(.refused, depth: 0, words: "refused by a decision") : nil)
    }

    // MARK: Verification

    func run(_ store: OpaquePointer, _ ssl: OpaquePointer?) -> Int32 {
        if let answer {
            X509_STORE_CTX_set_error(
                store, answer ? X509_V_OK : firstError == X509_V_OK ? X509_V_ERR_CERT_REJECTED : firstError)
            return answer ? 1 : 0
        }
        X509_STORE_CTX_set_verify_cb(store, Self.record)
        if let limits {
            X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(store), limits.certificateLevel)
        }
        if verification == .full {
            prove(store)
            if asks { addMissingIssuerFailure(store) }
        }
        if beginsSearch(store), c_SSL_set_retry_verify(ssl) == 1 {
            (failures, firstError) = ([], X509_V_OK)
            return 1
        }
        let isProven = failures.isEmpty && verification == .full
        if isProven, let limits { hasWeakCertificate = limits.isWeak(X509_STORE_CTX_get0_chain(store)) }
        checkPins(store, isProven: isProven)
        if failures.isEmpty { X509_STORE_CTX_set_error(store, X509_V_OK) }
        if isProven, staples != .ignored { keepChain(store) }
        if keeps || !failures.isEmpty {
            trust = TLSTrust(
                name: name, shown: CertificateFacts.all(X509_STORE_CTX_get0_untrusted(store)),
                built: CertificateFacts.all(X509_STORE_CTX_get0_chain(store)), failures: failures)
        }
        if asks, !failures.contains(where: { $0.kind == .pinMismatch }), c_SSL_set_retry_verify(ssl) == 1 {
            isPending = true
            return 1
        }
        guard failures.isEmpty else {
            X509_STORE_CTX_set_error(store, firstError)
            return 0
        }
        return 1
    }

    private func prove(_ store: OpaquePointer) {
        let key = ProvenChains.Key(name, shown: X509_STORE_CTX_get0_untrusted(store))
        if let key, chains.recall(key, for: store) { return }
        guard verify(store) else {
            if failures.isEmpty { note(store) }
            return
        }
        if failures.isEmpty, let key { chains.keep(key, from: store) }
    }

    /// Verifies the chain, with the issuers that were found besides those that the server sent.
    private func verify(_ store: OpaquePointer) -> Bool {
        guard !search.found.isEmpty, let all = c_sk_X509_new() else { return X509_verify_cert(store) == 1 }
        let shown = X509_STORE_CTX_get0_untrusted(store)
        defer {
            X509_STORE_CTX_set0_untrusted(store, shown)
            c_sk_X509_free(all)
        }
        for certificate in CertificateFacts.all(shown) + search.found { certificate.push(to: all) }
        X509_STORE_CTX_set0_untrusted(store, all)
        return X509_verify_cert(store) == 1
    }

    /// Begins the search for a missing issuer, if that is a fault of the chain. Returns whether the handshake pauses
    /// for it; otherwise the failure says why there is none.
    private func beginsSearch(_ store: OpaquePointer) -> Bool {
        guard let index = failures.firstIndex(where: { $0.kind == .untrustedIssuer }),
            let chain = X509_STORE_CTX_get0_chain(store), case let count = c_sk_X509_num(chain), count > 0,
            let last = c_sk_X509_value(chain, count - 1).map({ CertificateFacts(sharing: $0) })
        else { return false }
        if search.begin(last) { return true }
        if let reason = search.reason { failures[index].add("its issuer was not fetched: \(reason)") }
        if case .off = search.state, !last.isSelfIssued {
            missingIssuer = last.issuerLocations.first { $0.lowercased().hasPrefix("http:") }
        }
        return false
    }

    /// The setting with which the missing issuer would be fetched; `nil` if the certificate names no address.
    var missingIssuerRemedy: TLSRemedy? { failure == nil ? nil : missingIssuer.map { .missingIssuer($0) } }

    private func checkPins(_ store: OpaquePointer, isProven: Bool) {
        guard let pins else { return }
        let leaf = X509_STORE_CTX_get0_cert(store)
        let chain = isProven ? X509_STORE_CTX_get0_chain(store) : nil
        let candidates =
            chain.map { chain in (0..<max(0, c_sk_X509_num(chain))).compactMap { c_sk_X509_value(chain, $0) } }
            ?? [leaf].compactMap(\.self)
        guard !candidates.contains(where: { certificate in pins.contains { $0.matches(certificate) } }) else { return }
        let key = leaf.map { PEM.base64(CertificateFacts.publicKeySHA256($0)) } ?? ""
        let words = "no key in the chain is pinned; the server's is sha256//\(key)"
        failures.append(TLSTrust.Failure(.pinMismatch, depth: 0, words: words))
        if firstError == X509_V_OK { firstError = X509_V_ERR_APPLICATION_VERIFICATION }
    }

    private func note(_ store: OpaquePointer) {
        let error = X509_STORE_CTX_get_error(store)
        guard failures.count < Self.failureLimit else { return }
        if firstError == X509_V_OK { firstError = error == X509_V_OK ? X509_V_ERR_UNSPECIFIED : error }
        let words = X509_verify_cert_error_string(Int(error)).map { String(cString: $0) } ?? ""
        let failure = TLSTrust.Failure(
            TLSFailure.Kind(verifyError: error), depth: Int(X509_STORE_CTX_get_error_depth(store)), words: words)
        // OpenSSL reports one fault several times: a missing issuer also means a signature that cannot be verified.
        guard !failures.contains(where: { $0.kind == failure.kind && $0.depth == failure.depth }) else { return }
        failures.append(failure)
    }

    /// Adds the missing failure for a chain that leads to no trusted root: OpenSSL 3.0 does not report it if it has
    /// already reported the key of the server's own certificate. A decision would otherwise take that key for the only
    /// fault.
    private func addMissingIssuerFailure(_ store: OpaquePointer) {
        guard !failures.isEmpty, !failures.contains(where: { $0.kind == .selfSigned || $0.kind == .untrustedIssuer }),
            let chain = X509_STORE_CTX_get0_chain(store), case let count = c_sk_X509_num(chain), count > 0,
            X509_STORE_CTX_get_num_untrusted(store) >= count, let last = c_sk_X509_value(chain, count - 1)
        else { return }
        let error =
            count == 1 && X509_self_signed(last, 0) == 1
            ? X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT : X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
        let words = X509_verify_cert_error_string(Int(error)).map { String(cString: $0) } ?? ""
        failures.append(TLSTrust.Failure(TLSFailure.Kind(verifyError: error), depth: Int(count) - 1, words: words))
    }

    /// Records each failure and continues if a decision is needed, which must know them all; otherwise the first
    /// failure ends the verification.
    private static let record: @convention(c) (Int32, OpaquePointer?) -> Int32 = { verdict, store in
        guard verdict != 1, let store, let (state, _) = TLSCallbackState.of(store: store), let check = state.check
        else {
            return verdict
        }
        check.note(store)
        return check.asks ? 1 : 0
    }

    // MARK: Revocation

    private func keepChain(_ store: OpaquePointer) {
        guard let chain = X509_STORE_CTX_get0_chain(store) else { return }
        let all = (0..<max(0, c_sk_X509_num(chain))).compactMap { index -> X509Certificate? in
            guard let certificate = c_sk_X509_value(chain, index) else { return nil }
            X509_up_ref(certificate)
            return X509Certificate(adopting: certificate)
        }
        guard let leaf = all.first, all.count > 1 else { return }
        issued = (leaf, Array(all.dropFirst()))
    }

    /// Returns whether the handshake may continue with the stapled status (RFC 6066 §8, RFC 8446 §4.4.2.1).
    func acceptsStatus(_ ssl: OpaquePointer) -> Bool {
        // A decision has already accepted the chain's faults, and the status of an unproven certificate means nothing.
        guard staples != .ignored, SSL_session_reused(ssl) == 0, answer != true || failures.isEmpty else { return true }
        // A self-signed certificate has no issuer that could vouch for its status.
        guard let issued else {
            guard staples == .required else { return true }
            fail(.statusMissing, "the chain has no issuer that could sign a stapled OCSP response")
            return false
        }
        let roots = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl))
        switch StapledStatus.read(ssl, issued.leaf, issued.issuers, roots) {
        case .good(let until):
            statusEnd = until
            return true
        case .missing:
            guard staples == .required else { return true }
            fail(.statusMissing, "the server stapled no OCSP response")
        case .revoked: fail(.revoked, "the stapled OCSP response says revoked")
        case .unusable(let words):
            guard staples == .required else { return true }
            fail(.statusMissing, words)
        }
        return false
    }

    private func fail(_ kind: TLSFailure.Kind, _ words: String) {
        answer = nil
        failures.insert(TLSTrust.Failure(kind, depth: 0, words: words), at: 0)
        if trust == nil, let issued {
            let chain = ([issued.leaf] + issued.issuers).map { CertificateFacts(sharing: $0.pointer) }
            trust = TLSTrust(name: name, shown: chain, built: chain, failures: failures)
        }
        trust?.failures = failures
    }
}
