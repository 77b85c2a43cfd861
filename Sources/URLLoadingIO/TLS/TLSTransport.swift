// SPDX-License-Identifier: Apache-2.0

// In this folder: TLS over any byte stream, and the trust in certificates (27 files: each side of OpenSSL's interface)

// TLS over any transport, client and server.
//
// Rule 1: no `await` between an SSL call and the inspection of its error, because the error queue belongs to the
// thread. All SSL calls are in `perform`, under the lock.
// Rule 2: no names and certificates here; OpenSSL knows the expected peer before the first byte (`TLSVerification`).
// Rule 3: the stream has ended properly only if the peer said so (close_notify, RFC 8446 §6.1).

import Synchronization
import URLLoadingCOpenSSL
import URLLoadingCSystem

package final class TLSTransport: Transport, @unchecked Sendable {
    // Unchecked: `ssl`, `link` and the properties after them are accessed only under `lock`. One task may read while
    // another writes, which an SSL object does not support by itself.
    let lock = Lock<Void>(())
    let ssl: OpaquePointer
    let link: TLSLink
    let side: Side
    private(set) var agreed: TLSNegotiated?
    /// An error found after a read had already moved bytes; thrown by the next read.
    private var deferred: IOFailure?
    /// No close_notify is sent after a failure, or between the halves of a blocked write.
    private var isBroken = false
    private var hasPartialWrite = false
    private var isGoodbyeBlocked = false
    private(set) var isClosed = false
    private var turns = TLSWaitingGates()
    /// True if the server was told in the handshake that it may request a client certificate later. If not, no read has
    /// to check for such a request, which would take the lock.
    private let identityMayComeLater: Bool

    package let slot: PollSlot

    /// What is accepted of the peer beyond the configuration; `nil` for nothing, and for servers.
    package let concessions: TLSConcessions?
    let limits: TLSLimits?

    enum Side {
        case client(TLSContext, TLSPeer, TLSSessionCache.Key, offersSession: Bool)
        case server(TLSServerContext)

        var name: TLSPeerName? {
            if case .client(_, let peer, _, _) = self { peer.name } else { nil }
        }
    }

    /// Creates the client side. Nothing is sent before `handshake`.
    /// - Parameter other: a connection to the same peer, whose session this one resumes if possible.
    package init(
        client context: TLSContext, peer: TLSPeer, over inner: any Transport, continuing other: TLSTransport? = nil
    ) throws(IOFailure) {
        let key = TLSSessionCache.Key(
            name: peer.name, port: peer.port, role: peer.role,
            applicationProtocols: peer.applicationProtocols ?? context.configuration.applicationProtocols,
            group: peer.group,
            zone: peer.zone)
        ssl = try Self.make(context.pointer)
        let concessions = context.configuration.concessions(to: peer.name)
        self.concessions = concessions
        let limits = TLSLimits(context.configuration, concessions ?? TLSConcessions())
        self.limits = limits
        let link = TLSLink(inner, to: peer, context, key, concessions == nil ? nil : limits)
        self.link = link
        slot = inner.slot
        let verified = context.configuration.verification == .full
        let session =
            other?.session(for: peer.name, verified: verified)
            ?? context.sessions.take(for: key, verified: verified, recalled: link.check?.keeps == true)
        link.resumed = session
        side = .client(context, peer, key, offersSession: session != nil)
        identityMayComeLater = link.giving?.mayComeLater == true
        guard link.attach(to: ssl) else { throw IOFailure.handshakeRefusal(.other, peer.name, "BIO_new") }
        guard TLSVerification.expect(peer.name, of: ssl)
        else {
            throw IOFailure.handshakeRefusal(
                .unusableName, peer.name, "certificates cannot be verified for the name \(peer.name)")
        }
        do throws(TLSFailure) {
            if concessions != nil { try limits.apply(to: ssl) }
            if let own = peer.applicationProtocols { try TLSContext.offer(own) { SSL_set_alpn_protos(ssl, $0, $1) } }
        } catch { throw IOFailure(.tls(error), .handshake) }
        if let session { SSL_set_session(ssl, session.pointer) }
        if identityMayComeLater { SSL_set_post_handshake_auth(ssl, 1) }
        SSL_set_connect_state(ssl)
    }

    /// Creates the server side.
    package init(server context: TLSServerContext, over inner: any Transport) throws(IOFailure) {
        ssl = try Self.make(context.pointer)
        link = TLSLink(inner)
        slot = inner.slot
        side = .server(context)
        identityMayComeLater = false
        (concessions, limits) = (nil, nil)
        guard link.attach(to: ssl) else { throw IOFailure.handshakeRefusal(.other, nil, "BIO_new") }
        SSL_set_accept_state(ssl)
    }

    deinit { SSL_free(ssl) }

    private static func make(_ context: OpaquePointer) throws(IOFailure) -> OpaquePointer {
        ERR_clear_error()
        guard let ssl = SSL_new(context) else { throw IOFailure.handshakeRefusal(.other, nil, "SSL_new") }
        return ssl
    }

    /// Returns the session that another connection to the same peer can resume; in TLS 1.3 only once a ticket was read.
    private func session(for name: TLSPeerName, verified: Bool) -> TLSSession? {
        lock.withLock { _ in
            guard agreed != nil, !isClosed, let pointer = SSL_get_session(ssl),
                let session = TLSSession(
                    copying: pointer, trust: link.check?.trust ?? link.resumed?.trust,
                    until: link.check?.statusEnd ?? link.resumed?.statusEnd, isIdentified: link.isIdentified,
                    isWeak: link.isWeak(ssl)),
                session.isStillValid(for: name, verified: verified, now: Int(csys_wall_clock()))
            else { return nil }
            return session
        }
    }

    // MARK: The handshake

    /// Negotiates keys and verifies a peer without decisions. The caller has attached `slot` to `token`.
    package func handshake(_ token: StopToken) async throws(IOFailure) {
        guard try await handshakeUntilQuestion(token) == nil
        else {
            let detail = "no challenge decision is set for this session"
            throw IOFailure(.tls(TLSFailure(.refused, name: side.name, detail: detail)), .handshake)
        }
    }

    /// Performs the handshake until a decision is needed: the caller answers and calls this again, or closes. Returns
    /// `nil` when the handshake is over.
    package func handshakeUntilQuestion(_ token: StopToken) async throws(IOFailure) -> TLSQuestion? {
        while true {
            try token.check(.handshake)
            let progress = try lock.withLock { (_) throws(IOFailure) -> Progress in try advance() }
            if let question = lock.withLock({ _ in question }) { return question }
            switch progress {
            case .moved, .end: return nil
            case .blocked(let interest): await Poller.shared.park(slot, interest, token)
            }
        }
    }

    /// Supplies the decision on the server's trust.
    /// - Parameter isForced: whether the peer is trusted although a check failed.
    package func answer(trusts: Bool, isForced: Bool = false) {
        if isForced { forced.store(true, ordering: .relaxed) }
        lock.withLock { _ in link.check?.answer(trusts) }
    }
    /// True if the peer is trusted by a decision alone.
    package var isForced: Bool { forced.load(ordering: .relaxed) }
    private let forced = Atomic<Bool>(false)

    /// Supplies the client certificate; `nil` presents none.
    package func answer(identity: TLSIdentity?) { lock.withLock { _ in link.giving?.answer(identity) } }

    /// Supplies the result of the search for an issuer.
    package func answer(issuers: TLSFoundIssuers) { lock.withLock { _ in link.check?.search.answer(issuers) } }

    /// Whether a client certificate was presented, on this connection or on the one whose session it resumes.
    package var isIdentified: Bool { lock.withLock { _ in link.isIdentified } }

    /// The client certificate that the configuration proposes for this peer.
    package var proposedIdentity: TLSIdentity? { link.giving?.proposed }

    /// A server's request for a client certificate after the handshake (RFC 8446 §4.6.2). Reads and writes report that
    /// they are blocked until `answer(identity:)` is called.
    package var lateQuestion: (TLSPeer, TLSQuestion)? {
        guard identityMayComeLater, case .client(_, let peer, _, _) = side, peer.asksIdentityLater else { return nil }
        return lock.withLock { _ in link.giving?.pending.map { (peer, .identity($0)) } }
    }

    /// Stops waiting for decisions after the handshake; later requests are answered without one.
    package func stopAsking() { lock.withLock { _ in link.giving?.stopAsking() } }

    private var question: TLSQuestion? {
        if let check = link.check {
            if let issuer = check.search.pending { return .issuer(issuer) }
            if check.isPending, let trust = check.trust { return .trust(trust) }
            // The server was verified when the session was created; the decision whether to trust it is made again.
            if agreed?.isResumed == true, check.asks, check.answer == nil, var trust = link.resumed?.trust {
                trust.isResumed = true
                return .trust(trust)
            }
        }
        return link.giving?.pending.map { .identity($0) }
    }

    private func advance() throws(IOFailure) -> Progress {
        do throws(IOFailure) {
            let progress = try perform(.handshake) { ssl, _ in SSL_do_handshake(ssl) }
            if case .moved = progress, agreed == nil {
                agreed = TLSNegotiated(of: ssl)
                if concessions != nil, let limits {
                    agreed?.concessions = limits.used(by: ssl, isWeak: link.isWeak(ssl))
                }
                link.giving?.isOver = true
                // RFC 9113 §9.2.3: HTTP/2 forbids authentication after the handshake.
                link.giving?.isNotAsked = agreed?.applicationProtocol == "h2"
            }
            return progress
        } catch {
            // The peer may have failed because of the offered session.
            if case .client(let context, _, let key, offersSession: true) = side { context.sessions.forget(key) }
            throw error
        }
    }

    // MARK: Data

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress {
        try lock.withLock { (_) throws(IOFailure) in
            try turn(.reader) { () throws(IOFailure) in try readRecords(buffer) }
        }
    }

    /// Reads as many buffered records as fit: OpenSSL returns one record a call, which would waste a large buffer.
    private func readRecords(_ buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress {
        if let failure = deferred { throw failure }
        var total = 0
        repeat {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[total...])
            do throws(IOFailure) {
                switch try perform(.read, { SSL_read_ex($0, rest.baseAddress, rest.count, $1) }) {
                case .moved(let count): total += count
                case let other:
                    guard total > 0 else { return other }
                    prepareNextRead(after: total)
                    return .moved(total)
                }
            } catch {
                guard total > 0 else { throw error }
                deferred = error
            }
        } while deferred == nil && total < buffer.count && hasBufferedBytes
        prepareNextRead(after: total)
        return .moved(total)
    }

    /// Whether records, or parts of one, were read from the transport and not yet returned to the reader.
    private var hasBufferedBytes: Bool { SSL_has_pending(ssl) == 1 || !link.ahead.isEmpty }

    /// After a read of a whole record or more, which others follow, the next one may read several at once, and OpenSSL
    /// keeps its buffer from record to record; a connection that waits for a small response holds none.
    private func prepareNextRead(after count: Int) {
        let expectsMuch = count >= Self.flood
        guard expectsMuch != link.ahead.expectsMuch else { return }
        link.ahead.expectsMuch = expectsMuch
        let change = expectsMuch ? SSL_CTRL_CLEAR_MODE : SSL_CTRL_MODE
        SSL_ctrl(ssl, change, Int(SSL_MODE_RELEASE_BUFFERS), nil)
    }
    private static let flood = 16 * 1024

    package func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress {
        try lock.withLock { (_) throws(IOFailure) in
            try turn(.writer) { () throws(IOFailure) in try writeRecords(bytes) }
        }
    }

    private func writeRecords(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress {
        var total = 0
        while total < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[total...])
            let progress = try perform(.write) { SSL_write_ex($0, rest.baseAddress, rest.count, $1) }
            guard case .moved(let count) = progress else {
                hasPartialWrite = true
                return total > 0 ? .moved(total) : progress
            }
            hasPartialWrite = false
            total += count
        }
        return .moved(total)
    }

    /// Makes sure that a reader and a writer never wait at the same gate; see `TLSWaitingGates`.
    private func turn(_ side: TLSWaitingGates.Side, _ body: () throws(IOFailure) -> Progress) throws(IOFailure)
        -> Progress
    {
        do throws(IOFailure) {
            let progress = try body()
            if case .blocked(let interest) = progress { return .blocked(turns.wait(side, interest)) }
            if turns.endWait(side) { slot.wake() }
            return progress
        } catch {
            if turns.endWait(side) { slot.wake() }
            throw error
        }
    }

    /// Makes one SSL call and translates its outcome.
    private func perform(
        _ operation: IOFailure.Operation, _ call: (OpaquePointer, UnsafeMutablePointer<Int>) -> Int32
    ) throws(IOFailure) -> Progress {
        guard !isClosed else { throw IOFailure(.system(EBADF), operation) }
        var moved = 0
        link.failure = nil
        link.takenInCall = 0
        ERR_clear_error()
        let result = call(ssl, &moved)
        link.ahead.releaseIfEmpty()
        if result == 1 { return .moved(moved) }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .blocked(link.blocked)
        // OpenSSL waits for a decision, not for data: see `question`.
        case SSL_ERROR_WANT_RETRY_VERIFY, SSL_ERROR_WANT_X509_LOOKUP: return .blocked(.read)
        case SSL_ERROR_ZERO_RETURN where operation == .read: return .end
        case let error:
            isBroken = true
            throw link.failure(of: operation, error, ssl, side.name, limits)
        }
    }

    // MARK: Closing

    package func finishWriting() { lock.withLock { _ in sendCloseNotify() } }

    private func sendCloseNotify() {
        if case .server(let context) = side, context.configuration.omitsCloseNotify { return }
        guard agreed != nil, !isBroken, !hasPartialWrite, !isClosed,
            SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN == 0
        else { return }
        ERR_clear_error()
        _ = SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Sends close_notify. On a full socket the result is `.blocked`, and the next call sends the rest and nothing
    /// else: a second SSL_shutdown after the first has been sent would read.
    package func endWriting() throws(IOFailure) -> Progress {
        try lock.withLock { (_) throws(IOFailure) in
            try turn(.writer) { () throws(IOFailure) in
                if case .server(let context) = side, context.configuration.omitsCloseNotify { return .moved(0) }
                guard agreed != nil, !isBroken, !hasPartialWrite else { throw IOFailure(.closedByPeer, .write) }
                guard isGoodbyeBlocked || SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN == 0 else { return .moved(0) }
                isGoodbyeBlocked = false
                // SSL_shutdown also returns 0, "sent", if it wrote nothing because the socket was full or has failed.
                let progress = try perform(.write) { ssl, _ in
                    SSL_shutdown(ssl)
                    return link.failure != nil || SSL_want(ssl) == SSL_WRITING ? -1 : 1
                }
                if case .blocked = progress { isGoodbyeBlocked = true }
                return progress
            }
        }
    }

    package func close() {
        lock.withLock { _ in
            sendCloseNotify()
            isClosed = true
        }
        link.inner.close()
    }

    /// Whether the peer ended the connection without close_notify, after a whole record: what it sent before may be
    /// complete.
    package var hasEndedAfterRecord: Bool {
        lock.withLock { _ in
            agreed != nil && link.hasEnded && !hasBufferedBytes
                && SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN == 0
        }
    }

    // MARK: Properties

    /// Session tickets may arrive at any time after a TLS 1.3 handshake (RFC 8446 §4.6.1) and are not a response: this
    /// method reads them, and only data after them counts as input.
    package func hasPendingInput(askingKernel asks: Bool) -> Bool {
        lock.withLock { _ in
            guard agreed != nil, !isClosed, deferred == nil, SSL_pending(ssl) == 0 else { return true }
            guard hasBufferedBytes || link.inner.hasPendingInput(askingKernel: asks) else { return false }
            var byte: UInt8 = 0
            do throws(IOFailure) {
                if case .blocked = try perform(.read, { SSL_peek_ex($0, &byte, 1, $1) }) { return false }
            } catch { deferred = error }
            return true
        }
    }

    package var mayHoldMore: Bool {
        link.inner.mayHoldMore
            || lock.withLock { _ in
                // A close_notify read after data is reported only by the next read.
                deferred != nil || hasBufferedBytes || SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0
            }
    }

    /// The negotiated parameters; `nil` before the end of the handshake.
    package var negotiated: TLSNegotiated? { lock.withLock { _ in agreed } }
    /// See `peerDigest`.
    let knownDigest = Lock<String?>(nil)
}
