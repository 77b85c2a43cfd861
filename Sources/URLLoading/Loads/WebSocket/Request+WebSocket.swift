// SPDX-License-Identifier: Apache-2.0

// Derives the request that opens a WebSocket from the WebSocket's URL (RFC 6455 §3, §4.1).

import FoundationEssentials
import URLLoadingWire

extension Request {
    /// Returns the request that opens a WebSocket.
    func openingWebSocket(_ fields: Headers) throws(LoadError) -> Request {
        guard let http = url.openingWebSocket else {
            throw LoadError(
                .unsupportedScheme, phase: .preparing, party: .local, url: url, detail: "requires ws or wss")
        }
        guard method == .get, body == nil else {
            throw LoadError(
                .badRequest, phase: .preparing, party: .local, url: url, detail: "a WebSocket requires the method GET")
        }
        var request = self
        request.url = http
        // A stored response cannot answer a handshake.
        request.cachePolicy = .reload
        for name in Self.handshakeFields { request.headers.remove(name) }
        for field in fields { request.headers.append(field.name, field.value) }
        return request
    }

    private static let handshakeFields: [FieldName] = [
        .upgrade, .connection, .secWebSocketKey, .secWebSocketVersion, .secWebSocketProtocol, .secWebSocketExtensions,
    ]
}
