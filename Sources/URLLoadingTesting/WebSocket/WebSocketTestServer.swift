// SPDX-License-Identifier: Apache-2.0

// WebSockets on an origin: the response to a handshake, valid or not, and the data sent after it.

import URLLoadingIO
import URLLoadingWire

/// A WebSocket server on an origin.
///
/// ```swift
/// try await withHTTPTestServer { origin in
///     origin.webSocket("/echo", .echo)
///     origin.webSocket("/count") { socket in
///         for number in 1...3 { try await socket.send(.text("\(number)")) }
///         try await socket.close(WebSocketClose(.normal))
///     }
///     let socket = session.webSocketTask(origin.url("/echo"))
/// }
/// ```
public struct WebSocketTestServer: Sendable {
    /// Controls an open WebSocket; the connection is closed when the script returns.
    public typealias Script = @Sendable (TestWebSocket) async throws -> Void

    /// The supported subprotocols; the first match in the client's order is selected.
    public var subprotocols: Set<String> = []
    /// Whether permessage-deflate is accepted if offered; the server then sends compressed messages.
    public var compresses = false
    /// The fault of the handshake response; `nil` for none.
    public var handshakeFault: WebSocketHandshakeFault?
    /// The script that runs once the WebSocket is open.
    public var script: Script

    /// Creates a server that runs a script for each WebSocket.
    public init(_ script: @escaping Script) { self.script = script }

    /// A server that returns every message until the client closes.
    public static var echo: WebSocketTestServer {
        WebSocketTestServer { socket in
            while let message = try await socket.receive() { try await socket.send(message) }
        }
    }

    /// A server that returns every message, with compression.
    public static var compressedEcho: WebSocketTestServer {
        var server = echo
        server.compresses = true
        return server
    }
}

extension HTTPTestServer {
    /// Serves WebSockets for a path.
    public func webSocket(_ path: String, _ server: WebSocketTestServer) {
        route(path) { (request, connection) async throws(OriginConnection.Ending) in
            try await server.serve(request, connection)
        }
    }

    /// Serves WebSockets for a path with a script.
    public func webSocket(_ path: String, _ script: @escaping WebSocketTestServer.Script) {
        webSocket(path, WebSocketTestServer(script))
    }
}

extension WebSocketTestServer {
    fileprivate func serve(
        _ request: HTTPTestServer.RecordedRequest, _ connection: OriginConnection
    ) async throws(OriginConnection.Ending) {
        var deflate: MessageDeflate?
        var head = answer(to: request, &deflate)
        handshakeFault?.apply(to: &head, request)
        let text = Array(head.text.utf8)
        switch handshakeFault {
        case .endsBeforeHead: throw .close
        case .endsInHead: connection.output += text.prefix(text.count / 2)
        default: connection.output += text
        }
        try await connection.flush()
        if handshakeFault == .endsInHead { throw .close }
        guard handshakeFault == nil else { return try await connection.linger() }
        let way = HTTP1WebSocketStream(connection)
        let socket = TestWebSocket(request, way, deflate)
        do {
            try await script(socket)
        } catch let ending as OriginConnection.Ending {
            throw ending
        } catch {
            throw .close
        }
        if let ending = way.ending { throw ending }
    }

    func answer(to request: HTTPTestServer.RecordedRequest, _ deflate: inout MessageDeflate?) -> WebSocketAnswer {
        var head = WebSocketAnswer(status: "101 Switching Protocols")
        head.fields.append(("Upgrade", "websocket"))
        head.fields.append(("Connection", "Upgrade"))
        let key = request.headers[.secWebSocketKey] ?? ""
        head.fields.append(("Sec-WebSocket-Accept", WebSocketHandshake.accept(key, sha1: DigestHash.sha1.bytes)))
        let offered = (request.headers[.secWebSocketProtocol] ?? "").split(separator: ",").map {
            $0.filter { $0 != " " }
        }
        if let chosen = offered.first(where: { subprotocols.contains($0) }) {
            head.fields.append(("Sec-WebSocket-Protocol", chosen))
        }
        if compresses, let offer = request.headers[.secWebSocketExtensions], offer.contains("permessage-deflate") {
            let forgets = offer.contains("server_no_context_takeover")
            var agreed = MessageDeflate()
            (agreed.serverNoContextTakeover, agreed.clientNoContextTakeover) = (forgets, forgets)
            deflate = agreed
            let parameters = forgets ? "; server_no_context_takeover; client_no_context_takeover" : ""
            head.fields.append(("Sec-WebSocket-Extensions", "permessage-deflate" + parameters))
        }
        return head
    }
}

struct WebSocketAnswer {
    var version = "HTTP/1.1"
    var status: String
    var fields: [(name: String, value: String)] = []

    mutating func set(_ name: String, _ value: String?) {
        fields.removeAll { $0.name == name }
        if let value { fields.append((name, value)) }
    }

    var text: String { "\(version) \(status)\r\n" + fields.map { "\($0): \($1)\r\n" }.joined() + "\r\n" }
}

/// A fault of the response to a handshake (RFC 6455 §4.1, §4.2.2; RFC 7692 §7.1).
public enum WebSocketHandshakeFault: String, CaseIterable, Sendable {
    /// The status is 200 instead of 101.
    case statusOK
    /// Sec-WebSocket-Accept is the value for another key.
    case wrongAccept
    /// There is no Sec-WebSocket-Accept.
    case noAccept
    /// There are two fields Sec-WebSocket-Accept.
    case twoAccepts
    /// There is no Upgrade.
    case noUpgrade
    /// Upgrade names another protocol.
    case wrongUpgrade
    /// There is no Connection.
    case noConnection
    /// Connection does not say upgrade.
    case wrongConnection
    /// A subprotocol that was not offered is selected.
    case unaskedProtocol
    /// Two subprotocols are selected.
    case twoProtocols
    /// An extension that was not offered is selected.
    case unaskedExtension
    /// permessage-deflate has an unknown parameter.
    case unknownParameter
    /// permessage-deflate has a window of 16 bits.
    case windowTooLarge
    /// permessage-deflate has a window of 7 bits.
    case windowTooSmall
    /// The response is of HTTP/1.0.
    case oldVersion
    /// The connection ends in the middle of the head.
    case endsInHead
    /// The connection ends before the head.
    case endsBeforeHead

    /// Whether the response is a complete one that does not accept the handshake.
    public var isRefusal: Bool { self == .statusOK }

    func apply(to head: inout WebSocketAnswer, _ request: HTTPTestServer.RecordedRequest) {
        let extensions = "Sec-WebSocket-Extensions"
        switch self {
        case .statusOK:
            head.status = "200 OK"
            head.set("Connection", nil)
            head.set("Upgrade", nil)
            head.set("Content-Length", "0")
        case .wrongAccept: head.set("Sec-WebSocket-Accept", "dGhlIHNhbXBsZSBub25jZQ==")
        case .noAccept: head.set("Sec-WebSocket-Accept", nil)
        case .twoAccepts: head.fields += head.fields.filter { $0.name == "Sec-WebSocket-Accept" }
        case .noUpgrade: head.set("Upgrade", nil)
        case .wrongUpgrade: head.set("Upgrade", "h2c")
        case .noConnection: head.set("Connection", nil)
        case .wrongConnection: head.set("Connection", "keep-alive")
        case .unaskedProtocol: head.set("Sec-WebSocket-Protocol", "not.asked")
        case .twoProtocols:
            for name in (request.headers[.secWebSocketProtocol] ?? "a, b").split(separator: ",").prefix(2) {
                head.fields.append(("Sec-WebSocket-Protocol", String(name)))
            }
        case .unaskedExtension: head.set(extensions, "x-not-asked")
        case .unknownParameter: head.set(extensions, "permessage-deflate; unknown=1")
        case .windowTooLarge: head.set(extensions, "permessage-deflate; server_max_window_bits=16")
        case .windowTooSmall: head.set(extensions, "permessage-deflate; client_max_window_bits=7")
        case .oldVersion: head.version = "HTTP/1.0"
        case .endsInHead, .endsBeforeHead: break
        }
    }
}
