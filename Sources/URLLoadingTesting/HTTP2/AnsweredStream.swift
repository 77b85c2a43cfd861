// SPDX-License-Identifier: Apache-2.0

// What the routes of HTTP/2 and of HTTP/3 send in answer to a request, whatever the frames.

import URLLoadingWire

/// The stream or connection has ended, so the rest of the response is not needed.
struct StreamEnded: Error {}

/// A stream of HTTP/2 or HTTP/3 on which a route answers a request.
protocol AnsweredStream: Sendable {
    func section(_ fields: HTTP2Fields, endStream: Bool) async throws(StreamEnded)
    /// Waits for the client's windows.
    func data(_ bytes: [UInt8], endStream: Bool) async throws(StreamEnded)
    func pause(_ duration: Duration) async throws(StreamEnded)
    /// Sends bytes in place of frames.
    func insert(_ bytes: [UInt8])
    func end(_ ending: HTTPTestServer.Response.Script.Ending) async
}

extension AnsweredStream {
    func send(
        _ answer: HTTPTestServer.Response, to request: HTTPTestServer.RecordedRequest
    ) async throws(StreamEnded) {
        for interim in answer.interim {
            try await section(HTTP2Fields(interim.status, interim.headers), endStream: false)
            try await pause(interim.pause)
        }
        if let script = answer.script { return try await play(script) }
        var headers = answer.headers
        if let length = answer.body.length, headers[.contentLength] == nil, !answer.status.forbidsContent {
            headers[.contentLength] = "\(length)"
        }
        let hasBody = request.method != .head && !answer.status.forbidsContent && answer.body.hasContent
        try await section(HTTP2Fields(answer.status, headers), endStream: !hasBody)
        if hasBody { try await send(answer.body) }
    }

    private func send(_ body: HTTPTestServer.Response.Body) async throws(StreamEnded) {
        switch body {
        case .none: break
        case .bytes(let bytes), .declared(_, let bytes): try await data(bytes, endStream: true)
        case .untilClose(let pieces): try await data(pieces, trailers: Headers())
        case .chunks(let pieces, let trailers): try await data(pieces, trailers: trailers)
        case .repeated(let byte, let count, _):
            let block = [UInt8](repeating: byte, count: Int(min(max(0, count), 64 * 1024)))
            var left = max(0, count)
            repeat {
                let size = Int(min(left, Int64(block.count)))
                left -= Int64(size)
                try await data(Array(block.prefix(size)), endStream: left == 0)
            } while left > 0
        }
    }

    private func data(
        _ pieces: [HTTPTestServer.Response.Piece], trailers: Headers
    ) async throws(StreamEnded) {
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): try await data(bytes, endStream: false)
            case .pause(let duration): try await pause(duration)
            }
        }
        if trailers.isEmpty { return try await data([], endStream: true) }
        try await section(HTTP2Fields(trailers), endStream: true)
    }

    private func play(_ script: HTTPTestServer.Response.Script) async throws(StreamEnded) {
        for piece in script.pieces {
            switch piece {
            case .bytes(let bytes): insert(bytes)
            case .pause(let duration): try await pause(duration)
            }
        }
        await end(script.ending)
    }
}

extension HTTPTestServer.Route {
    /// Returns the handler's response; 500 if it throws.
    func answer(to request: HTTPTestServer.RecordedRequest) async -> HTTPTestServer.Response {
        do { return try await handler(request) } catch {
            return .status(.internalServerError, body: .bytes(Array("\(error)".utf8)))
        }
    }
}

extension HTTPTestServer.RecordedRequest {
    /// A request of HTTP/2 or HTTP/3, without its body.
    init(_ fields: HTTP2Fields, _ version: HTTPVersion, connection: Int, exchange: Int, tls: HTTPTestServer.TLSInfo?) {
        var headers = fields.headers
        // RFC 9113 §8.3.1, RFC 9114 §4.3.1
        if let authority = fields[":authority"], headers[.host] == nil { headers[.host] = authority }
        self.init(
            method: Method(fields[":method"] ?? ""), target: fields[":path"] ?? fields[":authority"] ?? "",
            version: version, headers: headers, connection: connection, exchange: exchange, tls: tls)
    }
}

extension HTTPTestServer.Response.Body {
    /// The value of content-length; `nil` for no such field.
    fileprivate var length: Int64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .declared(let length, _): length
        case .repeated(_, let count, false): max(0, count)
        case .chunks, .untilClose, .repeated: nil
        }
    }

    fileprivate var hasContent: Bool {
        switch self {
        case .none: false
        case .bytes(let bytes): !bytes.isEmpty
        default: true
        }
    }
}
