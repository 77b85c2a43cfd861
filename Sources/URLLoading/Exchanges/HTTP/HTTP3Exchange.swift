// SPDX-License-Identifier: Apache-2.0

// An exchange over HTTP/3: what differs from HTTP/2, which is the server and its way to refuse.

#if HTTP3

import URLLoadingIO
import URLLoadingWire

final class HTTP3Exchange: StreamExchange<HTTP3Connection>, NetworkExchange, @unchecked Sendable {
    /// - Parameters:
    ///   - connection: a connection on which a stream is reserved for this exchange.
    ///   - early: the request, if the connection may have sent it as early data.
    init(
        _ connection: HTTP3Connection, isReused: Bool, _ load: LoadContext, _ request: PreparedRequest,
        over route: Route, early: EarlyRequest?, _ record: TransactionRecord?
    ) {
        super.init(connection, isReused: isReused, load, request, over: route, record)
        stream.early = early
        if let facts = connection.facts { record?.lease(facts, connection.route, isReused: isReused, .http3) }
    }

    /// Whether the server wants the request over another version of HTTP (RFC 9114 §8.1).
    func fallsBack() -> Bool {
        guard case .http3(.reset(.versionFallback))? = received.failure, owner.stopReason == nil else { return false }
        return owner.core.pool.avoidHTTP3(route)
    }
    func leaveConnection() {
        connection.retire()
        owner.core.pool.leaveHTTP3(route)
    }

    var wasEarly: Bool { connection.wasEarly(stream) }

    // MARK: The server

    var tls: TLSTransport? { nil }
    private var peer: QUICPeerFacts? { connection.peer }
    var isProven: Bool { peer?.isProven == true }
    var serverDigest: String? { peer?.digest }
    var source: AnswerSource { AnswerSource([connection.remote]) }
    var provenance: Provenance {
        Provenance(
            carried: carried, hasCertificate: peer?.isIdentified ?? false, isForced: false,
            settingsNumber: peer?.settingsNumber, bodyEnd: .marked, server: peer?.digest, source: source,
            isPrivatelyRouted: isPrivatelyRouted, isRepaired: head?.tolerated.isEmpty == false)
    }
}

#endif
