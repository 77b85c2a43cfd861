// SPDX-License-Identifier: Apache-2.0

// Sessions that allow a resumed handshake, at half the cost of a full one.
//
// Rule 1: a cache belongs to one context, so two configurations never share a session. Within a cache, a session
// belongs to one peer: name, port, role and offered protocols.
// Rule 2: early data is never sent over TCP (RFC 8446 §8: it can be replayed). Over QUIC it needs a session of a server
// that was verified and never knew the client, and what the layer above remembers of that server (`TLSMemory`).
// Rule 3: a session is offered only if the certificate it stands for would still pass. Resumption skips the checks, so
// they are made beforehand.

import Synchronization
import URLLoadingCOpenSSL
import URLLoadingCSystem

final class TLSSession: Sendable {
    // Unsafe: the session is not changed. A connection that ends without close_notify marks the session it holds as
    // unusable, so connections get copies.
    nonisolated(unsafe) let pointer: OpaquePointer
    /// The result of the certificate's verification, kept if a later decision may need it.
    let trust: TLSTrust?
    /// Expiry of the stapled status, if one was required; in seconds since 1970.
    let statusEnd: Int64?
    /// True if a client certificate was presented when the session was created, so that the server knows the client by
    /// it.
    let isIdentified: Bool
    /// True if a certificate or the handshake was below the configuration's level.
    let isWeak: Bool
    /// What the layer above remembers of the server beside the session; `nil` over TCP.
    let memory: TLSMemory?

    init?(
        copying session: OpaquePointer, trust: TLSTrust? = nil, until statusEnd: Int64? = nil,
        isIdentified: Bool = false, isWeak: Bool = false, memory: TLSMemory? = nil
    ) {
        guard let pointer = SSL_SESSION_dup(session) else { return nil }
        self.pointer = pointer
        self.isIdentified = isIdentified
        self.isWeak = isWeak
        self.memory = memory
        self.trust = trust
        self.statusEnd = statusEnd
    }

    init?(copying other: TLSSession) {
        guard let pointer = SSL_SESSION_dup(other.pointer) else { return nil }
        self.pointer = pointer
        (trust, statusEnd) = (other.trust, other.statusEnd)
        (isIdentified, isWeak, memory) = (other.isIdentified, other.isWeak, other.memory)
    }

    deinit { SSL_SESSION_free(pointer) }

    /// TLS 1.3 tickets are used once; otherwise an observer could link two connections to one client (RFC 8446 §C.4).
    var isUsedOnce: Bool { SSL_SESSION_get_protocol_version(pointer) >= TLSVersion.tls13.rawValue }

    func isStillValid(for name: TLSPeerName, verified: Bool, now: Int) -> Bool {
        guard SSL_SESSION_is_resumable(pointer) == 1,
            now - Int(c_SSL_SESSION_get_time(pointer)) < Int(SSL_SESSION_get_timeout(pointer))
        else { return false }
        if let statusEnd, statusEnd < now { return false }
        guard verified else { return true }
        guard let leaf = SSL_SESSION_get0_peer(pointer) else { return false }
        var moment = time_t(now)
        guard X509_cmp_time(X509_get0_notAfter(leaf), &moment) > 0 else { return false }
        return TLSVerification.matches(leaf, name)
    }
}

/// What the layer above remembers of a server beside the sessions of one connection. It may be known only after the
/// sessions were stored.
final class TLSMemory: Sendable {
    private let state = Lock<(any Sendable)?>(nil)

    var content: (any Sendable)? { state.withLock { $0 } }
    func keep(_ content: any Sendable) { state.withLock { $0 = content } }
}

package final class TLSSessionCache: Sendable {
    /// Enough for a crawler. A session with its chain takes some 6 KB, so a full cache takes 12 MB.
    static let peerLimit = 128
    /// Each of several parallel connections uses a ticket of its own; this is as many as are usually opened at once.
    static let sessionsPerPeer = 16

    struct Key: Hashable, Sendable {
        let name: TLSPeerName
        let port: UInt16
        let role: TLSPeer.Role
        let applicationProtocols: [String]
        var group = 0
        var zone: String?
    }

    private struct Entry: Sendable {
        var sessions: [TLSSession]
        var lastUse: UInt64
    }
    private struct State: Sendable {
        var entries: [Key: Entry] = [:]
        var clock: UInt64 = 0

        mutating func next(_ key: Key) -> TLSSession? {
            guard var entry = entries[key], let session = entry.sessions.last else { return nil }
            clock += 1
            entry.lastUse = clock
            if session.isUsedOnce { entry.sessions.removeLast() }
            entries[key] = entry.sessions.isEmpty ? nil : entry
            return session
        }
    }
    private let state = Lock(State())

    func store(_ session: TLSSession, for key: Key) {
        state.withLock { state in
            state.clock += 1
            var sessions = state.entries[key]?.sessions ?? []
            // The newest TLS 1.2 session replaces the older ones, because it can be used many times.
            if !session.isUsedOnce { sessions.removeAll() }
            sessions.append(session)
            if sessions.count > Self.sessionsPerPeer { sessions.removeFirst() }
            state.entries[key] = Entry(sessions: sessions, lastUse: state.clock)
            guard state.entries.count > Self.peerLimit else { return }
            if let oldest = state.entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
                state.entries[oldest.key] = nil
            }
        }
    }

    /// Returns the newest session that may be offered to this peer.
    /// - Parameter recalled: whether a decision needs the verification result of the session's certificate again.
    func take(for key: Key, verified: Bool, recalled: Bool = false, now: Int = Int(csys_wall_clock())) -> TLSSession? {
        while let session = state.withLock({ $0.next(key) }) {
            if !recalled || session.trust != nil, session.isStillValid(for: key.name, verified: verified, now: now) {
                return session.isUsedOnce ? session : TLSSession(copying: session)
            }
            if !session.isUsedOnce { forget(key) }
        }
        return nil
    }

    /// Removes the sessions of a peer that failed when one was offered.
    func forget(_ key: Key) { state.withLock { _ = $0.entries.removeValue(forKey: key) } }

    package func removeAll() { state.withLock { $0.entries.removeAll() } }

    /// The number of sessions held for all peers.
    package var count: Int { state.withLock { $0.entries.values.reduce(0) { $0 + $1.sessions.count } } }
}
