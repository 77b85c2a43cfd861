// SPDX-License-Identifier: Apache-2.0

// What a connection knows of its peer: certificates, names, addresses.

import Synchronization
import URLLoadingCOpenSSL

extension TLSTransport {
    /// Returns whether the peer's verified certificate also covers this name: no decision is needed, and pins and
    /// client certificate are the same for both names. Allows HTTP/2 connections to be shared.
    package func covers(_ name: TLSPeerName) -> Bool {
        guard case .client(let context, _, _, _) = side, context.configuration.verification == .full, name.isUsable,
            let check = link.check, !check.asks, check.pins == context.configuration.pins(for: name),
            context.configuration.identity(for: name) == link.giving?.proposed,
            context.configuration.concessions(to: name) == concessions
        else { return false }
        return lock.withLock { _ in
            guard agreed != nil, !isClosed, let certificate = SSL_get0_peer_certificate(ssl) else { return false }
            return TLSVerification.matches(certificate, name)
        }
    }

    /// The certificates that the peer presented, its own first, in DER; for clients.
    package var peerChain: [[UInt8]] { lock.withLock { _ in PEM.der(stack: SSL_get_peer_cert_chain(ssl)) } }

    /// The channel binding `tls-server-end-point` (RFC 5929 §4.1), which keeps an authentication made on this
    /// connection from being relayed to another. `nil` before the end of the handshake.
    package var endPointBinding: [UInt8]? {
        guard let certificate = peerChain.first else { return nil }
        return Self.endPointBinding(of: certificate)
    }

    /// SHA-256 of the peer's certificate, presented on this connection or on the one whose session it resumes, in
    /// hexadecimal digits; `nil` before the end of the handshake.
    package var peerDigest: String? {
        if let known = knownDigest.withLock({ $0 }) { return known }
        let der: [UInt8]? = lock.withLock { _ in
            guard agreed != nil, !isClosed, let certificate = SSL_get0_peer_certificate(ssl) else { return nil }
            return PEM.der(certificate)
        }
        let digest = der.map { Digest.hex($0) }
        knownDigest.withLock { $0 = digest }
        return digest
    }

    /// Returns the channel binding of a server certificate.
    /// - Parameter certificate: in DER.
    package static func endPointBinding(of certificate: [UInt8]) -> [UInt8]? {
        let parsed = certificate.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return d2i_X509(nil, &start, bytes.count)
        }
        guard let parsed else { return nil }
        defer { X509_free(parsed) }
        var hash: Int32 = 0
        // RFC 5929 replaces MD5, SHA-1 and signatures without a hash with SHA-256.
        guard OBJ_find_sigid_algs(X509_get_signature_nid(parsed), &hash, nil) == 1 else { return nil }
        let weak = [NID_undef, NID_md5, NID_sha1, NID_md5_sha1]
        guard let kind = weak.contains(hash) ? EVP_sha256() : EVP_get_digestbyname(OBJ_nid2sn(hash)) else { return nil }
        var result = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(parsed, kind, &result, &count) == 1 else { return nil }
        return Array("tls-server-end-point:".utf8) + result[..<Int(count)]
    }

    package var remoteAddress: SocketAddress? { link.inner.remoteAddress }
    package var localAddress: SocketAddress? { link.inner.localAddress }

    package var description: String {
        let negotiated = negotiated
        let version = negotiated.map { "tls" + $0.version.name.dropFirst(4) } ?? "tls"
        let name = side.name?.description ?? negotiated?.serverName ?? "server"
        return "\(version)(\(name)) over \(link.inner.description)"
    }

    /// Whether the peer's certificate was verified, and no decision overrode the result.
    package var isProven: Bool {
        if case .client(let context, _, _, _) = side {
            context.configuration.verification == .full && !isForced
        } else {
            false
        }
    }
    /// `TLSConfiguration.number` of a client.
    package var settingsNumber: Int? {
        if case .client(let context, _, _, _) = side { context.configuration.number } else { nil }
    }

    package func acknowledge() { link.inner.acknowledge() }

    /// The settings that could help if the connection was reset before the server sent its certificate: some old
    /// servers answer so to a hello that they do not understand.
    package var resetRemedies: [TLSRemedy] {
        guard let limits, negotiated == nil, peerChain.isEmpty else { return [] }
        return TLSRemedy.remedies(.handshakeEndedByPeer, limits, isEarly: true)
    }
}
