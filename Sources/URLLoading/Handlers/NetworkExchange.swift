// An exchange with a server: what `HTTPHandler` needs of it, whichever version of HTTP it speaks.

import URLLoadingIO
import URLLoadingWire

protocol NetworkExchange: Exchange {
    /// Sends the request and waits for the head of the answer.
    func start(_ request: PreparedRequest) async throws(LoadError)
    /// A failure that only says that the peer had closed a kept connection before we used it.
    var failedStale: Bool { get }
    /// The peer has not looked at the request, and will not: nothing speaks against sending it again.
    var failedUnprocessed: Bool { get }
    /// The peer says that it must be asked in HTTP/1.1, and is from now on.
    func fallsBack() -> Bool
    /// Others use its connection. If the server says that it is none for this request, another is made.
    var isShared: Bool { get }
    func leaveConnection()
    /// The identity that its request carried beyond the caller's fields.
    var carried: CarriedIdentity { get }
    /// The address of its server.
    var source: AnswerSource { get }
    /// A resolver or a proxy of the configuration's own led to its server.
    var isPrivatelyRouted: Bool { get }
    /// A decision trusts the server, and the checks do not.
    var isForced: Bool { get }
    /// The server knows by a certificate who asks.
    var isIdentified: Bool { get }
    /// The certificate that the server, or a proxy that gets the requests themselves, has shown.
    var serverDigest: String? { get }
    /// What became of it, for the metrics.
    func note(_ error: LoadError)
    /// It went over a connection that had been opened by a proof, and its server does not remember.
    var hasLostProof: Bool { get }
    /// What names its connection to a proof for the origin, or for the proxy that gets the requests themselves (RFC 5929);
    /// `nil` without TLS with just that one.
    func binding(toProxy: Bool) -> [UInt8]?
    /// The body is to end as the server has proved it.
    func prove(_ proof: DigestProof)
    /// The proxy that answers in the origin's place; `nil` if the origin does.
    var forwarder: Proxy? { get }
    /// The content coding of the answer is undone.
    var isDecoding: Bool { get }
    /// The opening of a WebSocket that the request has offered; nil without one.
    var handshake: WebSocketHandshake? { get }
    /// Gives the connection, or the stream, away; nil if it is released already.
    func surrender() -> SurrenderedConnection?
}

/// A connection, or a stream of one, that an exchange has given away.
struct SurrenderedConnection {
    let transport: any Transport
    /// Bytes that were received behind the head.
    let received: Chunk?
    let origin: Origin
}

extension NetworkExchange {
    var forwarder: Proxy? { nil }
    var hasLostProof: Bool { false }
    var network: (any NetworkExchange)? { self }
    var hasOwnRecord: Bool { true }
    func marks(for query: CacheQuery) -> AnswerMarks { AnswerMarks(provenance, to: query) }
}

extension NetworkExchange {
    var provenance: Provenance {
        Provenance(
            carried: carried, hasCertificate: isIdentified, isForced: isForced, server: serverDigest, source: source,
            isPrivatelyRouted: isPrivatelyRouted)
    }
}
