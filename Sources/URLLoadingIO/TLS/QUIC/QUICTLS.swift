// SPDX-License-Identifier: Apache-2.0

// In this folder: the TLS inside of QUIC connections, in builds with HTTP/3

// The TLS of one QUIC connection (RFC 9001): an SSL object with the settings, the trust and the sessions of a
// `TLSContext`, which ngtcp2 drives in place of a transport. The codec of the wire layer is handed this object.
//
// Rule: the handshake never waits for a decision, because ngtcp2's helper for OpenSSL does not know such a pause. A
// peer for which decisions are to be made is refused here.

#if HTTP3

import URLLoadingCNgtcp2
import URLLoadingCOpenSSL

package final class QUICTLS: TLSCallbackState {
    private let ssl: OpaquePointer
    /// The object of ngtcp2's helper, and how the helper finds the connection from `ssl`.
    private let helper: OpaquePointer
    private let reference: UnsafeMutablePointer<ngtcp2_crypto_conn_ref>
    private let side: Side

    private enum Side {
        case client(TLSContext, TLSPeer, TLSSessionCache.Key, offersSession: Bool)
        // The context answers callbacks, so it must live as long as the connection.
        case server(TLSServerContext)
    }

    /// What was noted with ``remember(_:)`` on the connection whose session this one resumes, if early data may be
    /// sent; `nil` if not.
    package private(set) var remembered: (any Sendable)?

    /// Creates the client side.
    /// - Parameters:
    ///   - peer: with the ALPN protocols that are offered; QUIC requires at least one (RFC 9001 §8.1).
    ///   - sendsEarlyData: whether early data is sent if the session permits it.
    package init(client context: TLSContext, peer: TLSPeer, sendsEarlyData: Bool = false) throws(IOFailure) {
        guard !peer.asksTrust, !peer.asksIdentity else {
            throw IOFailure.handshakeRefusal(.other, peer.name, "decisions are not supported over QUIC")
        }
        guard context.configuration.maximumVersion >= .tls13 else {
            let detail = "QUIC requires TLS 1.3"
            throw IOFailure(.tls(TLSFailure(.unusableVersions, name: peer.name, detail: detail)), .handshake)
        }
        let protocols = peer.applicationProtocols ?? []
        let key = TLSSessionCache.Key(
            name: peer.name, port: peer.port, role: peer.role, applicationProtocols: protocols, group: peer.group,
            zone: peer.zone)
        let made = try Made(context.pointer, peer.name) { ngtcp2_crypto_ossl_configure_client_session($0) }
        (ssl, helper, reference) = (made.ssl, made.helper, made.reference)
        let verified = context.configuration.verification == .full
        let isRecalled = context.configuration.pins(for: peer.name) != nil
        let session = context.sessions.take(for: key, verified: verified, recalled: isRecalled)
        side = .client(context, peer, key, offersSession: session != nil)
        super.init(to: peer, context, key, nil, mayPause: false)
        resumed = session
        memory = TLSMemory()
        guard receiveCallbacks(of: ssl), TLSVerification.expect(peer.name, of: ssl) else {
            throw IOFailure.handshakeRefusal(
                .unusableName, peer.name, "certificates cannot be verified for the name \(peer.name)")
        }
        do throws(TLSFailure) {
            try TLSContext.offer(protocols) { SSL_set_alpn_protos(ssl, $0, $1) }
        } catch { throw IOFailure(.tls(error), .handshake) }
        if let session { SSL_set_session(ssl, session.pointer) }
        SSL_set_connect_state(ssl)
        if sendsEarlyData, verified, giving?.proposed == nil, let session, session.takesEarlyData,
            let content = session.memory?.content, SSL_set_quic_tls_early_data_enabled(ssl, 1) == 1
        {
            remembered = content
        }
    }

    /// Creates the server side, for test servers.
    /// - Parameter acceptsEarlyData: whether early data is accepted; the tickets permit it in either case. With `nil`
    ///   they do not, and OpenSSL holds the session in the ticket, not in a cache.
    package init(server context: TLSServerContext, acceptsEarlyData: Bool? = nil) throws(IOFailure) {
        let made = try Made(context.pointer, nil) { ngtcp2_crypto_ossl_configure_server_session($0) }
        (ssl, helper, reference) = (made.ssl, made.helper, made.reference)
        side = .server(context)
        super.init()
        SSL_set_accept_state(ssl)
        guard let acceptsEarlyData else { return }
        SSL_set_quic_tls_early_data_enabled(ssl, 1)
        if !acceptsEarlyData { SSL_set_allow_early_data_cb(ssl, { _, _ in 0 }, nil) }
    }

    deinit {
        // The helper releases what it holds of `ssl`, which must not find a connection any more.
        reference.pointee.user_data = nil
        ngtcp2_crypto_ossl_ctx_del(helper)
        SSL_set_ex_data(ssl, 0, nil)
        // QUIC has no close_notify (RFC 9001 §4.8). A server that has sent none takes back the last session that it
        // gave, if its cache holds it, as it does for tickets that permit early data.
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN)
        SSL_free(ssl)
        reference.deallocate()
    }

    /// The parts that are freed together.
    private struct Made {
        let ssl: OpaquePointer
        let helper: OpaquePointer
        let reference: UnsafeMutablePointer<ngtcp2_crypto_conn_ref>

        init(
            _ context: OpaquePointer, _ name: TLSPeerName?, _ configure: (OpaquePointer) -> Int32
        ) throws(IOFailure) {
            ERR_clear_error()
            _ = QUICTLS.isPrepared
            guard let ssl = SSL_new(context) else { throw IOFailure.handshakeRefusal(.other, name, "SSL_new") }
            var helper: OpaquePointer?
            guard configure(ssl) == 0, c_SSL_set_min_proto_version(ssl, TLSVersion.tls13.rawValue) == 1,
                c_SSL_set_max_proto_version(ssl, TLSVersion.tls13.rawValue) == 1,
                ngtcp2_crypto_ossl_ctx_new(&helper, ssl) == 0, let helper
            else {
                SSL_free(ssl)
                throw IOFailure.handshakeRefusal(.other, name, "SSL_set_quic_tls_cbs")
            }
            let reference = UnsafeMutablePointer<ngtcp2_crypto_conn_ref>.allocate(capacity: 1)
            reference.initialize(
                to: ngtcp2_crypto_conn_ref(
                    get_conn: { reference in (reference?.pointee.user_data).map { OpaquePointer($0) } }, user_data: nil)
            )
            SSL_set_ex_data(ssl, 0, reference)
            (self.ssl, self.helper, self.reference) = (ssl, helper, reference)
        }
    }

    /// Lets ngtcp2's helper look up its algorithms once, and not for each packet.
    private static let isPrepared = ngtcp2_crypto_ossl_init() == 0

    // MARK: For the codec

    /// The handle by which ngtcp2's helper finds the SSL object.
    package var handle: UnsafeMutableRawPointer { UnsafeMutableRawPointer(helper) }

    /// Names the connection that drives this object; `nil` before the connection is freed.
    package func bind(to connection: OpaquePointer?) {
        reference.pointee.user_data = connection.map { UnsafeMutableRawPointer($0) }
    }

    /// Empties the thread's error queue before calls of OpenSSL, which take what it holds for their own errors.
    package func beginCalls() { ERR_clear_error() }

    // MARK: Early data

    /// Notes what early data of a later connection needs to know of the server.
    package func remember(_ content: any Sendable) { memory?.keep(content) }

    /// Whether the server of a finished handshake has accepted early data.
    package var hasAcceptedEarlyData: Bool { SSL_get_early_data_status(ssl) == SSL_EARLY_DATA_ACCEPTED }

    // MARK: The handshake

    /// The application protocol that a finished handshake has agreed on.
    package var applicationProtocol: String? { TLSNegotiated(of: ssl).applicationProtocol }

    /// Returns what a finished handshake agreed on. Throws if the server chose no application protocol, which ends the
    /// connection (RFC 9001 §8.1).
    package func negotiated() throws(IOFailure) -> TLSNegotiated {
        let agreed = TLSNegotiated(of: ssl)
        guard agreed.applicationProtocol != nil else {
            throw IOFailure(.tls(TLSFailure(.alert(120), name: name, detail: "no application protocol")), .handshake)
        }
        return agreed
    }

    /// Returns what a finished handshake has shown of the server. Throws as ``negotiated()`` does.
    package func facts() throws(IOFailure) -> QUICPeerFacts {
        let agreed = try negotiated()
        let chain = PEM.der(stack: SSL_get_peer_cert_chain(ssl))
        var configuration: TLSConfiguration?
        if case .client(let context, _, _, _) = side { configuration = context.configuration }
        return QUICPeerFacts(
            negotiated: agreed, digest: SSL_get0_peer_certificate(ssl).map { Digest.hex(PEM.der($0)) },
            endPointBinding: chain.first.flatMap { TLSTransport.endPointBinding(of: $0) }, isIdentified: isIdentified,
            isProven: configuration?.verification == .full, settingsNumber: configuration?.number)
    }

    /// Returns why the handshake failed, or was refused by a server that had already sent its part of it. Called in the
    /// thread of the call that has failed, before another call.
    /// - Parameters:
    ///   - alert: the alert that the peer sent or was sent, if any (RFC 8446 §6).
    ///   - isReceived: whether the peer sent it.
    package func failure(alert: UInt8?, isReceived: Bool = false) -> IOFailure {
        if case .client(let context, _, let key, offersSession: true) = side { context.sessions.forget(key) }
        let (_, reason, words) = OpenSSLErrors.take()
        let trust = check?.failure == nil ? nil : check?.trust
        // Nothing has failed here after an alert of the peer.
        var kind = check?.failure?.kind ?? (isReceived ? .other : TLSFailure.Kind(reason: reason))
        if kind == .other, let alert { kind = giving?.kind(.alert(alert)) ?? .alert(alert) }
        let received = isReceived ? alert.flatMap { TLSFailure.Kind.alert($0).alertWords } : nil
        let detail = check?.failure.map { "\($0.words) at depth \($0.depth)" } ?? received ?? words
        let chain = trust?.shown.map(\.der) ?? PEM.der(stack: SSL_get_peer_cert_chain(ssl))
        return IOFailure(
            .tls(TLSFailure(kind, name: name, detail: detail, chain: chain, trust: trust)), .handshake)
    }

    private var name: TLSPeerName? {
        if case .client(_, let peer, _, _) = side { peer.name } else { nil }
    }
}

extension TLSSession {
    /// Whether the session permits early data: the server does, in the words of QUIC (RFC 9001 §4.6.1), it was verified
    /// without a concession, and it knows no certificate of the client.
    fileprivate var takesEarlyData: Bool {
        SSL_SESSION_get_max_early_data(pointer) == UInt32.max && !isIdentified && !isWeak
    }
}

/// What a handshake has shown of the server. It does not change any more: QUIC has no later authentication.
package struct QUICPeerFacts: Sendable {
    package let negotiated: TLSNegotiated
    /// SHA-256 of the server's certificate in hexadecimal digits.
    package let digest: String?
    /// The channel binding `tls-server-end-point` (RFC 5929 §4.1); `nil` for a resumed session.
    package let endPointBinding: [UInt8]?
    /// Whether a client certificate was presented.
    package let isIdentified: Bool
    /// Whether the certificate was verified.
    package let isProven: Bool
    /// `TLSConfiguration.number` of a client.
    package let settingsNumber: Int?
}

#endif
