// What the opening of a WebSocket offers the server (RFC 6455 §4.1, RFC 8441 §5).

import URLLoadingIO
import URLLoadingWire

struct WebSocketOffer: Sendable {
    let protocols: [String]
    let offersDeflate: Bool
    let forgets: Bool

    init(_ protocols: [String], _ options: WebSocketOptions) {
        self.protocols = protocols
        offersDeflate = options.compression.isOffered
        forgets = options.compression.forgets
    }

    /// Completes a request that is about to be sent with what must be new each time: a key is used once (RFC 6455
    /// §4.1); over HTTP/2 there is none, and nothing to upgrade (RFC 8441 §5).
    /// - Returns: the opening that the response is checked against.
    func complete(_ request: inout PreparedRequest, isHTTP2: Bool) throws(LoadError) -> WebSocketHandshake {
        if isHTTP2 {
            request.remove([.secWebSocketKey, .upgrade, .connection])
            return try handshake([])
        }
        guard let random = secureRandomBytes(16) else {
            throw LoadError(.badRequest, phase: .preparing, party: .system, detail: "no randomness for a key")
        }
        let handshake = try handshake(random)
        request.set([.secWebSocketKey: handshake.key])
        return handshake
    }

    /// - Parameter random: 16 bytes; none for a handshake without a key.
    func handshake(_ random: [UInt8]) throws(LoadError) -> WebSocketHandshake {
        do throws(WireViolation) {
            return try WebSocketHandshake(
                random: random, protocols: protocols, offersDeflate: offersDeflate, forgets: forgets)
        } catch {
            throw LoadError(error, .preparing)
        }
    }
}
