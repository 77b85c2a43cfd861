// SPDX-License-Identifier: Apache-2.0

// Malformed messages: stream errors of type PROTOCOL_ERROR (RFC 9113 §8.1.1).

extension HTTP2Fault {
    /// Fields that are forbidden in every message (§8.2, §8.3).
    public static let fields: [HTTP2Fault] = [
        head("an upper-case name", [":status": "200", "Upper": "x"]),
        head("a name with a blank", [":status": "200", "a b": "x"]),
        head("a name with a colon", [":status": "200", "a:b": "x"]),
        head("a name with CR LF", [":status": "200", "a\r\nb": "x"]),
        head("a name with NUL", [":status": "200", "a\0b": "x"]),
        head("an empty name", [":status": "200", "": "x"]),
        head("a name beyond ASCII", [":status": "200", "ä": "x"]),
        head("a value with CR LF", [":status": "200", "x": "a\r\nset-cookie: b=c"]),
        head("a value with CR", [":status": "200", "x": "a\rb"]),
        head("a value with LF", [":status": "200", "x": "a\nb"]),
        head("a value with NUL", [":status": "200", "x": "a\0b"]),
        head("a value with a blank before it", [":status": "200", "x": " a"]),
        head("a value with a blank behind it", [":status": "200", "x": "a "]),
        head("Connection", [":status": "200", "connection": "close"]),
        head("Keep-Alive", [":status": "200", "keep-alive": "timeout=5"]),
        head("Proxy-Connection", [":status": "200", "proxy-connection": "keep-alive"]),
        head("Transfer-Encoding", [":status": "200", "transfer-encoding": "chunked"]),
        head("Upgrade", [":status": "200", "upgrade": "h2c"]),
        head("a second :status", [":status": "200", ":status": "404"]),
        head("no :status", ["content-type": "text/plain"]),
        head("an empty field section", [:]),
        head(":status after a field", ["server": "x", ":status": "200"]),
        head("an unknown pseudo-field", [":status": "200", ":color": "red"]),
        head("a pseudo-field of requests", [":status": "200", ":path": "/"]),
        head(":status with letters", [":status": "2oo"]),
        head(":status of two digits", [":status": "20"]),
        head(":status of four digits", [":status": "2000"]),
        head("an empty :status", [":status": ""]),
        head("two lengths", [":status": "200", "content-length": "2", "content-length": "3"]),
        head("a length of letters", [":status": "200", "content-length": "two"]),
        head("a negative length", [":status": "200", "content-length": "-2"]),
    ]

    /// Messages with a wrong structure (§8.1, §8.6).
    public static let messages: [HTTP2Fault] = [
        message("101", [.headers(stream: 0, HTTP2Fields([.init(":status", "101"), .init("x", "y")]).encoded())]),
        message("a length of more than there is", [head([":status": "200", "content-length": "3"]), body]),
        message("a length of less than there is", [head([":status": "200", "content-length": "1"]), body]),
        message("a length and no body", [head([":status": "200", "content-length": "2"], endStream: true)]),
        message("an interim response that ends the stream", [head([":status": "103"], endStream: true)]),
        message("only interim responses, then DATA", [head([":status": "103"]), body]),
        message("DATA before HEADERS", [body]),
        message("trailers with :status", [head([":status": "200"]), part, head([":status": "200"], endStream: true)]),
        message(
            "trailers with an upper-case name", [head([":status": "200"]), part, head(["Sum": "1"], endStream: true)]),
        message("trailers that end nothing", [head([":status": "200"]), part, head(["sum": "1"]), body]),
        message("a second head in place of trailers", [head([":status": "200"]), head([":status": "200"]), body]),
    ]

    private static let body = HTTP2Frame.data(stream: 0, answer, endStream: true)
    private static let part = HTTP2Frame.data(stream: 0, answer)

    private static func head(_ fields: HTTP2Fields, endStream: Bool = false) -> HTTP2Frame {
        .headers(stream: 0, fields.encoded(), endStream: endStream)
    }

    private static func head(_ name: String, _ fields: HTTP2Fields) -> HTTP2Fault {
        message(name, [head(fields), body])
    }

    /// Sends these frames on the stream of the request.
    private static func message(_ name: String, _ frames: [HTTP2Frame]) -> HTTP2Fault {
        instead(name, .streamFails([.protocolError])) { peer, stream in
            try await peer.send(
                frames.map { frame in
                    var frame = frame
                    frame.stream = stream
                    return frame
                })
        }
    }
}
