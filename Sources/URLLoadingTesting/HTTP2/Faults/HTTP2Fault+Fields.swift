// SPDX-License-Identifier: Apache-2.0

// Malformed messages: stream errors of type PROTOCOL_ERROR (RFC 9113 §8.1.1).

extension HTTP2Fault {
    /// Fields that are forbidden in every message (§8.2, §8.3).
    public static let fields: [HTTP2Fault] = HTTP2Fields.malformedHeads.map { head($0, $1) }

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

extension HTTP2Fields {
    /// Heads of responses that are malformed, in HTTP/3 too (RFC 9114 §4.2, §4.3).
    static let malformedHeads: [(name: String, fields: HTTP2Fields)] = [
        ("an upper-case name", [":status": "200", "Upper": "x"]),
        ("a name with a blank", [":status": "200", "a b": "x"]),
        ("a name with a colon", [":status": "200", "a:b": "x"]),
        ("a name with CR LF", [":status": "200", "a\r\nb": "x"]),
        ("a name with NUL", [":status": "200", "a\0b": "x"]),
        ("an empty name", [":status": "200", "": "x"]),
        ("a name beyond ASCII", [":status": "200", "ä": "x"]),
        ("a value with CR LF", [":status": "200", "x": "a\r\nset-cookie: b=c"]),
        ("a value with CR", [":status": "200", "x": "a\rb"]),
        ("a value with LF", [":status": "200", "x": "a\nb"]),
        ("a value with NUL", [":status": "200", "x": "a\0b"]),
        ("a value with a blank before it", [":status": "200", "x": " a"]),
        ("a value with a blank behind it", [":status": "200", "x": "a "]),
        ("Connection", [":status": "200", "connection": "close"]),
        ("Keep-Alive", [":status": "200", "keep-alive": "timeout=5"]),
        ("Proxy-Connection", [":status": "200", "proxy-connection": "keep-alive"]),
        ("Transfer-Encoding", [":status": "200", "transfer-encoding": "chunked"]),
        ("Upgrade", [":status": "200", "upgrade": "h2c"]),
        ("a second :status", [":status": "200", ":status": "404"]),
        ("no :status", ["content-type": "text/plain"]),
        ("an empty field section", [:]),
        (":status after a field", ["server": "x", ":status": "200"]),
        ("an unknown pseudo-field", [":status": "200", ":color": "red"]),
        ("a pseudo-field of requests", [":status": "200", ":path": "/"]),
        (":status with letters", [":status": "2oo"]),
        (":status of two digits", [":status": "20"]),
        (":status of four digits", [":status": "2000"]),
        ("an empty :status", [":status": ""]),
        ("two lengths", [":status": "200", "content-length": "2", "content-length": "3"]),
        ("a length of letters", [":status": "200", "content-length": "two"]),
        ("a negative length", [":status": "200", "content-length": "-2"]),
    ]
}
