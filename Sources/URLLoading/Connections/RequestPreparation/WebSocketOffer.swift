// SPDX-License-Identifier: Apache-2.0

// The handshake offer of a WebSocket to the server (RFC 6455 §4.1, RFC 8441 §5).

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

    /// Adds the fields that must be fresh for each request: in HTTP/1.1 a key, which is used once (RFC 6455 §4.1);
    /// HTTP/2 has no key and no Upgrade field (RFC 8441 §5).
    /// - Returns: the handshake that the response is checked against.
    func complete(_ request: inout PreparedRequest, isHTTP2: Bool) throws(LoadError) -> WebSocketHandshake {
        if isHTTP2 {
            request.remove([.secWebSocketKey, .upgrade, .connection])
            return try handshake([])
        }
        guard let random = secureRandomBytes(16) else {
            throw LoadError(.badRequest, phase: .preparing, party: .system, detail: "no random bytes for a key")
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
