// SPDX-License-Identifier: Apache-2.0

// The opening handshake of a WebSocket (RFC 6455 §4, RFC 8441 §5). The caller supplies the hash function and the random
// bytes.

package struct WebSocketHandshake: Sendable, Hashable {
    /// Base64 of 16 random bytes, new for every handshake.
    package let key: String
    /// The offered subprotocols, in order of preference.
    package let protocols: [String]
    /// Whether permessage-deflate is offered.
    package let offersDeflate: Bool
    /// Whether it is offered without keeping the window between messages.
    package let forgets: Bool

    /// Creates a handshake.
    /// - Parameter random: 16 bytes.
    /// - Throws: `local` if a subprotocol is not a token, or is listed twice.
    package init(
        random: [UInt8], protocols: [String] = [], offersDeflate: Bool = false, forgets: Bool = false
    ) throws(WireViolation) {
        for name in protocols where name.isEmpty || !name.utf8.allSatisfy({ ByteSet.token.contains($0) }) {
            throw .local(.malformedWebSocketHandshake, "RFC 6455 4.1, subprotocol")
        }
        guard Set(protocols).count == protocols.count else {
            throw .local(.malformedWebSocketHandshake, "RFC 6455 4.1, subprotocol")
        }
        key = Base64.encode(random)
        self.protocols = protocols
        self.offersDeflate = offersDeflate
        self.forgets = forgets
    }

    /// Returns the fields of the request, besides those of any request. Over HTTP/2 there is no key and no Upgrade (RFC
    /// 8441 §5).
    package func fields(isHTTP2: Bool) -> Headers {
        var fields = Headers()
        if !isHTTP2 {
            fields[.upgrade] = "websocket"
            fields[.connection] = "Upgrade"
            fields[.secWebSocketKey] = key
        }
        fields[.secWebSocketVersion] = "13"
        if !protocols.isEmpty { fields[.secWebSocketProtocol] = protocols.joined(separator: ", ") }
        if offersDeflate { fields[.secWebSocketExtensions] = MessageDeflate.offer(forgets: forgets) }
        return fields
    }

    /// The parameters that the server agreed to.
    package struct Agreement: Sendable, Hashable {
        package var subprotocol: String?
        package var deflate: MessageDeflate?
    }

    /// Checks the response, whose status must already have been verified: 101, or 2xx over HTTP/2 (RFC 6455 §4.1; RFC
    /// 8441 §5).
    /// - Parameter sha1: returns the SHA-1 of bytes.
    package func agreement(
        _ headers: Headers, isHTTP2: Bool, sha1: ([UInt8]) -> [UInt8]
    ) throws(WireViolation) -> Agreement {
        if !isHTTP2 {
            let upgrade = headers.values(of: .upgrade)
            guard upgrade.count == 1, upgrade[0].lowercasedASCII == "websocket" else { throw Self.malformed("Upgrade") }
            guard headers.values(of: .connection).contains(where: Self.namesUpgrade) else {
                throw Self.malformed("Connection")
            }
            let accepts = headers.values(of: .secWebSocketAccept)
            guard accepts.count == 1, accepts[0] == Self.accept(key, sha1: sha1) else {
                throw Self.malformed("Sec-WebSocket-Accept")
            }
        }
        var agreement = Agreement()
        let chosen = headers.values(of: .secWebSocketProtocol)
        if let name = chosen.first {
            guard chosen.count == 1, protocols.contains(name) else { throw Self.malformed("Sec-WebSocket-Protocol") }
            agreement.subprotocol = name
        }
        let extensions = headers.values(of: .secWebSocketExtensions)
        if let value = extensions.first {
            guard extensions.count == 1, offersDeflate, let deflate = MessageDeflate.accepted(value, forgets: forgets)
            else { throw Self.malformed("Sec-WebSocket-Extensions") }
            agreement.deflate = deflate
        }
        return agreement
    }

    /// Returns the value of Sec-WebSocket-Accept (RFC 6455 §4.2.2).
    package static func accept(_ key: String, sha1: ([UInt8]) -> [UInt8]) -> String {
        Base64.encode(sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    }

    private static func namesUpgrade(_ value: String) -> Bool {
        value.split(separator: ",").contains { option in
            option.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased() == "upgrade"
        }
    }

    private static func malformed(_ field: String) -> WireViolation {
        .remote(.malformedWebSocketHandshake, "RFC 6455 4.1, \(field)")
    }
}
