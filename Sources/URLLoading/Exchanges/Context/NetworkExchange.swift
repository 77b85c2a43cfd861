// SPDX-License-Identifier: Apache-2.0

// An exchange with a server, as `HTTPHandler` uses it, independent of the version of HTTP.

import URLLoadingIO
import URLLoadingWire

protocol NetworkExchange: Exchange {
    /// Sends the request and waits for the head of the response.
    func start(_ request: PreparedRequest) async throws(LoadError)
    /// True if the request failed because the peer had closed an idle connection before it was used (a stale
    /// connection).
    var failedStale: Bool { get }
    /// How the peer refused the request, if it has not processed it and will not: it is then safe to send it again.
    var refusal: RetryPlan.Refusal? { get }
    /// Returns true if the peer requires HTTP/1.1 for this request, and marks the origin accordingly.
    func fallsBack() -> Bool
    /// True if no other request can follow on the connection.
    var isLastOnConnection: Bool { get }
    /// True if other requests use the connection. On 421 (Misdirected Request) another connection is made for the
    /// request.
    var isShared: Bool { get }
    func leaveConnection()
    /// True if the request was sent as early data. After 425 (Too Early) it is repeated.
    var wasEarly: Bool { get }
    /// The identity that the request carried beyond the caller's fields.
    var carried: CarriedIdentity { get }
    /// The time at which the request was sent (RFC 9111 §4.2.3), in seconds since 1970; 0 in a session without a cache.
    var requestTime: Double { get }
    /// The address of the server.
    var source: AnswerSource { get }
    /// True if a resolver or a proxy of the configuration led to the server.
    var isPrivatelyRouted: Bool { get }
    /// TLS to the server, or to a proxy that receives the requests themselves; `nil` in cleartext.
    var tls: TLSTransport? { get }
    /// True if the server's certificate was verified, and no decision overrode the result.
    var isProven: Bool { get }
    /// The digest of the certificate of the server, or of a proxy that receives the requests themselves.
    var serverDigest: String? { get }
    /// Who obtained the response, and from where.
    var provenance: Provenance { get }
    /// Records the failure for the metrics.
    func note(_ error: LoadError)
    /// True if the connection was authenticated, and its peer no longer accepts that authentication.
    var hasLostAuthentication: Bool { get }
    /// Returns the TLS channel binding to the origin, or to the proxy that receives the requests themselves (RFC 5929);
    /// `nil` without a direct TLS connection to it.
    func binding(toProxy: Bool) -> [UInt8]?
    /// Checks the body against the server's digest proof at its end.
    func prove(_ proof: DigestProof)
    /// The proxy that forwards the request; `nil` if the connection leads to the origin.
    var forwarder: Proxy? { get }
    /// True if the response's content coding is decoded.
    var isDecoding: Bool { get }
    /// The WebSocket handshake that the request has offered; nil without one.
    var handshake: WebSocketHandshake? { get }
}

/// A connection, or a stream of one, that an exchange has handed over.
struct SurrenderedConnection {
    let transport: any Transport
    /// Bytes that were received after the head.
    let received: Chunk?
    let origin: Origin
}

extension NetworkExchange {
    var forwarder: Proxy? { nil }
    var wasEarly: Bool { false }
    var hasLostAuthentication: Bool { false }
    var network: (any NetworkExchange)? { self }
    var hasOwnRecord: Bool { true }
    func marks(for query: CacheQuery) -> AnswerMarks { AnswerMarks(provenance, to: query) }
}

extension NetworkExchange {
    /// True if a decision trusts the server although the certificate checks failed.
    var isForced: Bool { tls?.isForced ?? false }
    var isProven: Bool { tls?.isProven == true }
    var serverDigest: String? { tls?.peerDigest }

    var provenance: Provenance {
        let tls = tls
        return Provenance(
            carried: carried, hasCertificate: tls?.isIdentified ?? false, isForced: tls?.isForced ?? false,
            settingsNumber: tls?.settingsNumber, bodyEnd: bodyEnd,
            server: tls?.peerDigest, source: source, isPrivatelyRouted: isPrivatelyRouted,
            isRepaired: head?.tolerated.isEmpty == false)
    }

    private var bodyEnd: Provenance.BodyEnd {
        guard expectedLength == nil, let head, head.version.major == 1, !head.headers.contains(.contentLength),
            !head.headers.contains(.transferEncoding)
        else { return .marked }
        return tls?.concessions?.allowsMissingCloseNotify == true ? .concededConnection : .connection
    }
}
