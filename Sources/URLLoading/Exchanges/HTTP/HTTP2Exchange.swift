// SPDX-License-Identifier: Apache-2.0

// An exchange over HTTP/2: what differs from HTTP/3, which is the server and its way to refuse.

import URLLoadingIO
import URLLoadingWire

final class HTTP2Exchange: StreamExchange<HTTP2Connection>, NetworkExchange, @unchecked Sendable {
    /// - Parameter connection: a connection on which a stream is reserved for this exchange.
    override init(
        _ connection: HTTP2Connection, isReused: Bool, _ load: LoadContext, _ request: PreparedRequest,
        over route: Route, _ record: TransactionRecord?
    ) {
        super.init(connection, isReused: isReused, load, request, over: route, record)
        record?.lease(connection.facts, connection.route, isReused: isReused, .http2)
    }

    func fallsBack() -> Bool {
        guard case .reset(.http11Required)? = received.failure, owner.stopReason == nil else { return false }
        return owner.core.pool.speakHTTP1(route)
    }
    func leaveConnection() { owner.core.pool.leave(connection, for: route) }

    // MARK: The server

    var source: AnswerSource { AnswerSource(connection.transport, connection.route) }
    var tls: TLSTransport? { connection.transport as? TLSTransport }

    func surrender() -> SurrenderedConnection? {
        guard leaveStream() else { return nil }
        let tunnel = HTTP2Tunnel(
            connection, stream, owner.core.pool, received: received.chunks, hasEnded: received.trailers != nil,
            failure: received.failure)
        return SurrenderedConnection(transport: tunnel, received: nil, origin: route.origin)
    }
}
