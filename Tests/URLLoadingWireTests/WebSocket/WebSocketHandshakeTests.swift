// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 6455 §4.1. Security 70.
@Suite struct WebSocketHandshakeTests {
    /// The accept value for the only key used here (RFC 6455 §1.3).
    let sha1: ([UInt8]) -> [UInt8] = { input in
        String(decoding: input, as: UTF8.self) == "dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            ? [
                0xB3, 0x7A, 0x4F, 0x2C, 0xC0, 0x62, 0x4F, 0x16, 0x90, 0xF6, 0x46, 0x06, 0xCF, 0x38, 0x59, 0x45, 0xB2,
                0xBE, 0xC4, 0xEA,
            ] : []
    }
    let random = Array("the sample nonce".utf8)

    func answer(_ change: (inout Headers) -> Void = { _ in }) -> Headers {
        var headers: Headers = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        ]
        change(&headers)
        return headers
    }

    @Test("The example of the specification is accepted (§1.3)")
    func example() throws {
        let handshake = try WebSocketHandshake(random: random, protocols: ["chat", "superchat"])
        let fields = handshake.fields(isHTTP2: false)
        #expect(fields[.secWebSocketKey] == "dGhlIHNhbXBsZSBub25jZQ==" && fields[.secWebSocketVersion] == "13")
        #expect(
            fields[.secWebSocketProtocol] == "chat, superchat" && fields[.upgrade] == "websocket"
                && fields[.connection] == "Upgrade")
        let agreement = try handshake.agreement(
            answer { $0[.secWebSocketProtocol] = "chat" }, isHTTP2: false, sha1: sha1)
        #expect(agreement == WebSocketHandshake.Agreement(subprotocol: "chat", deflate: nil))
    }

    @Test(
        "Responses with other spellings are accepted",
        arguments: [("WebSocket", "keep-alive, upgrade"), ("WEBSOCKET", "UPGRADE ,x")])
    func spellings(upgrade: String, connection: String) throws {
        let headers = answer { ($0[.upgrade], $0[.connection]) = (upgrade, connection) }
        _ = try WebSocketHandshake(random: random).agreement(headers, isHTTP2: false, sha1: sha1)
    }

    @Test(
        "Invalid responses are refused",
        arguments: [
            ("Upgrade", nil), ("Upgrade", "h2c"), ("Upgrade", "websocket, h2c"), ("Connection", nil),
            ("Connection", "keep-alive"),
            ("Sec-WebSocket-Accept", nil), ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOO="),
            ("Sec-WebSocket-Accept", "S3PPLMBITXAQ9KYGZZHZRBK+XOO="), ("Sec-WebSocket-Protocol", "chat"),
            ("Sec-WebSocket-Extensions", "permessage-deflate"), ("Sec-WebSocket-Extensions", ""),
        ] as [(String, String?)])
    func refused(name: String, value: String?) throws {
        let handshake = try WebSocketHandshake(random: random)
        let headers = answer { $0[FieldName(name)] = value }
        #expect(
            violation { _ = try handshake.agreement(headers, isHTTP2: false, sha1: sha1) }
                == .malformedWebSocketHandshake)
    }

    @Test("A repeated accept, protocol or upgrade field is refused")
    func twice() throws {
        let handshake = try WebSocketHandshake(random: random, protocols: ["a", "b"])
        for name: FieldName in [.secWebSocketAccept, .upgrade] {
            let headers = answer { $0.append(name, $0[name] ?? "") }
            #expect(
                violation { _ = try handshake.agreement(headers, isHTTP2: false, sha1: sha1) }
                    == .malformedWebSocketHandshake)
        }
        let headers = answer { $0[.secWebSocketProtocol] = "a, b" }
        #expect(
            violation { _ = try handshake.agreement(headers, isHTTP2: false, sha1: sha1) }
                == .malformedWebSocketHandshake)
    }

    @Test("Over HTTP/2 there is no key, no upgrade and no accept (RFC 8441 §5)")
    func http2() throws {
        let handshake = try WebSocketHandshake(random: random, offersDeflate: true)
        let fields = handshake.fields(isHTTP2: true)
        #expect(fields[.secWebSocketKey] == nil && fields[.upgrade] == nil && fields[.connection] == nil)
        #expect(fields[.secWebSocketVersion] == "13")
        let agreement = try handshake.agreement(
            ["sec-websocket-extensions": "permessage-deflate"], isHTTP2: true, sha1: sha1)
        #expect(agreement.deflate == MessageDeflate())
    }

    @Test(
        "Subprotocols that could forge a field, and duplicates, are refused",
        arguments: [["a b"], ["a\r\nX: y"], [""], ["a,b"], ["a", "a"]])
    func badProtocols(names: [String]) {
        #expect(throws: WireViolation.self) { _ = try WebSocketHandshake(random: random, protocols: names) }
    }
}
