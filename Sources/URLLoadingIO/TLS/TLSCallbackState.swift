// SPDX-License-Identifier: Apache-2.0

// The state behind an SSL object that OpenSSL's callbacks use. A class to inherit from, and not a part of `TLSLink`:
// the SSL object of a QUIC connection has no transport below it.

import URLLoadingCOpenSSL

package class TLSCallbackState {
    /// For clients: the verification of the server, and the client certificate.
    final let check: TLSTrustCheck?
    final let giving: TLSIdentitySelection?

    /// The session that this connection resumes, if the server accepted it.
    final var resumed: TLSSession?
    /// Where the layer above notes what it remembers of the server, beside the sessions of this connection.
    final var memory: TLSMemory?

    /// The cache for new sessions; `nil` for servers.
    private let cache: TLSSessionCache?
    private let key: TLSSessionCache.Key?

    /// Creates the state of a server connection.
    init() { (cache, key, check, giving) = (nil, nil, nil, nil) }

    /// - Parameter mayPause: whether the handshake may wait for a decision or a missing issuer.
    init(
        to peer: TLSPeer, _ context: TLSContext, _ key: TLSSessionCache.Key, _ limits: TLSLimits?,
        mayPause: Bool = true
    ) {
        cache = context.sessions
        self.key = key
        check = TLSTrustCheck(peer, context.configuration, context.chains, limits, mayPause: mayPause)
        giving = TLSIdentitySelection(peer, context.configuration)
    }

    #if HTTP3
    /// The place in an SSL object. The first one, which needs no call to find, belongs to ngtcp2's helper.
    private static let place = CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL, 0, nil, nil, nil, nil)
    #else
    private static let place: Int32 = 0
    #endif

    /// Makes OpenSSL's callbacks for `ssl` find this state, which must outlive it.
    final func receiveCallbacks(of ssl: OpaquePointer) -> Bool {
        SSL_set_ex_data(ssl, Self.place, Unmanaged.passUnretained(self).toOpaque()) == 1
    }

    final class func of(_ ssl: OpaquePointer?) -> TLSCallbackState? {
        guard let ssl, let state = SSL_get_ex_data(ssl, place) else { return nil }
        return Unmanaged<TLSCallbackState>.fromOpaque(state).takeUnretainedValue()
    }

    /// Returns the state and the connection whose certificate is being verified.
    final class func of(store: OpaquePointer) -> (TLSCallbackState, OpaquePointer)? {
        guard let data = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            case let ssl = OpaquePointer(data), let state = of(ssl)
        else { return nil }
        return (state, ssl)
    }

    /// Whether a client certificate was presented. Also true if the offered session stands for one and the server did
    /// not resume it: erring on the safe side.
    final var isIdentified: Bool { giving?.wasGiven == true || resumed?.isIdentified == true }

    /// Whether a certificate or the handshake was below the configuration's level, on this connection or on the one
    /// whose session it resumes.
    final func isWeak(_ ssl: OpaquePointer) -> Bool { check?.isWeak(ssl) == true || resumed?.isWeak == true }

    final func keep(_ session: OpaquePointer, of ssl: OpaquePointer) {
        guard let cache, let key,
            let copy = TLSSession(
                copying: session, trust: check?.trust ?? resumed?.trust, until: check?.statusEnd ?? resumed?.statusEnd,
                isIdentified: isIdentified, isWeak: isWeak(ssl), memory: memory)
        else { return }
        cache.store(copy, for: key)
    }
}
