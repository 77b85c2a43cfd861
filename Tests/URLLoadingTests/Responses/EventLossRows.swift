// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Streams of events that are lost anywhere, and one whose reader stops.
@Suite(.timeLimit(.minutes(4)))
struct EventLossRows {
    private static let type: Headers = [.contentType: "text/event-stream"]

    /// The pieces of a stream, each with the identifier of its end, and the event that it is; one has no data.
    private static let pieces: [(id: String, text: String, event: ServerSentEvent?)] = [
        ("1", "\u{FEFF}id: 1\ndata: one\n\n", ServerSentEvent(data: "one", lastEventID: "1")),
        (
            "2", ": note\r\nid: 2\r\nevent: price\r\ndata: é\r\ndata: 7\r\n\r\n",
            ServerSentEvent(type: "price", data: "é\n7", lastEventID: "2")
        ),
        ("3", "retry: 0\rid: 3\r\r", nil),
        ("4", "data: last\nid: 4\n\n", ServerSentEvent(data: "last", lastEventID: "4")),
    ]
    private static let events = pieces.compactMap(\.event)
    private static let whole = Array(pieces.map(\.text).joined().utf8)

    private static let eager: ServerSentEvents.Reconnection = {
        var reconnection = ServerSentEvents.Reconnection.default
        reconnection.delayBounds = .zero ... .zero
        return reconnection
    }()

    /// How a server ends a response early.
    enum Ending: CaseIterable {
        /// As if it were complete: chunked, or without a length.
        case regular, close
        /// By the end of the connection, or its reset, where more chunks are due.
        case cut, reset

        func response(_ bytes: [UInt8], _ headers: Headers) -> HTTPTestServer.Response {
            let pieces: [HTTPTestServer.Response.Piece] = bytes.isEmpty ? [] : [.bytes(bytes)]
            let fields = headers.map { "\($0)\r\n" }.joined()
            let head = "HTTP/1.1 200 OK\r\n\(fields)Transfer-Encoding: chunked\r\n\r\n"
            let chunk = bytes.isEmpty ? [] : Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes
            return switch self {
            case .regular: .ok(.chunks(pieces), headers: headers)
            case .close: .ok(.untilClose(pieces), headers: headers)
            case .cut: .raw([.bytes(Array(head.utf8) + chunk)])
            case .reset: .raw([.bytes(Array(head.utf8) + chunk)], then: .reset)
            }
        }
    }

    /// Serves the stream below `/`, cut at the byte that the path names, and then its rest after the identifier that
    /// the client names, in a coding.
    private static func serve(
        _ origin: HTTPTestServer, _ ending: Ending, _ headers: Headers = [:],
        coding code: @escaping @Sendable ([UInt8]) -> [UInt8] = { $0 }
    ) {
        var fields = type
        for field in headers { fields.append(field.name, field.value) }
        let visits = Watched<[String: Int]>([:])
        origin.route("/*") { [fields] request in
            let last = request.headers["Last-Event-ID"]
            if last == pieces.last?.id { return .status(.noContent) }
            let isFirst = visits.change { visits in
                visits[request.path, default: 0] += 1
                return visits[request.path] == 1
            }
            if isFirst {
                let end = Int(request.path.dropFirst()) ?? 0
                return ending.response(Array(code(whole)[..<end]), fields)
            }
            let rest =
                last.flatMap { last in pieces.firstIndex { $0.id == last } }.map { pieces[($0 + 1)...] } ?? pieces[...]
            return .ok(.bytes(code(Array(rest.map(\.text).joined().utf8))), headers: fields)
        }
    }

    @Test(
        "a stream that is lost after any byte loses no event and repeats none, however it ends",
        arguments: Ending.allCases)
    func everyEnd(_ ending: Ending) async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, ending)
            try await withSession(.ephemeral) { session in
                for end in 0...Self.whole.count {
                    let request = Request(url: origin.url("/\(end)"))
                    var seen: [ServerSentEvent] = []
                    for try await event in session.serverSentEvents(for: request, reconnection: Self.eager) {
                        seen.append(event)
                    }
                    #expect(seen == Self.events, "\(end)")
                }
            }
        }
    }

    @Test("a compressed stream that is lost after any byte is continued", arguments: [Ending.regular, .cut])
    func codedEnd(_ ending: Ending) async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, ending, [.contentEncoding: "gzip"]) { Compressed.gzip($0) }
            try await withSession(.ephemeral) { session in
                for end in 0...Compressed.gzip(Self.whole).count {
                    let request = Request(url: origin.url("/\(end)"))
                    var seen: [ServerSentEvent] = []
                    for try await event in session.serverSentEvents(for: request, reconnection: Self.eager) {
                        seen.append(event)
                    }
                    #expect(seen == Self.events, "\(end)")
                }
            }
        }
    }

    @Test("an event whose empty line has not arrived is discarded (WHATWG HTML 9.2.6)")
    func halfAnEvent() async throws {
        let ends = Self.pieces.indices.map { Self.pieces[...$0].map(\.text.utf8.count).reduce(0, +) }
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                .ok(.bytes(Array(Self.whole[..<(Int(request.path.dropFirst()) ?? 0)])), headers: Self.type)
            }
            try await withSession(.ephemeral) { session in
                for end in 0...Self.whole.count {
                    var seen: [ServerSentEvent] = []
                    let request = Request(url: origin.url("/\(end)"))
                    for try await event in session.serverSentEvents(for: request, reconnection: .never) {
                        seen.append(event)
                    }
                    // Of CR LF, the CR ends the line.
                    let complete = zip(Self.pieces, ends).filter { piece, bound in
                        bound <= end + (piece.text.hasSuffix("\r\n") ? 1 : 0)
                    }
                    #expect(seen == complete.compactMap(\.0.event), "\(end)")
                }
            }
        }
    }

    @Test("a stream of HTTP/2 that its server or a proxy resets is continued on the same connection")
    func resetStream() async throws {
        try await withHTTP2 { server, session in
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                try await peer.respond(
                    to: first.stream, .ok, Self.type, body: Array("id: 1\ndata: a\n\nid: 2\ndata: ha".utf8),
                    endStream: false)
                try await peer.reset(first.stream, .internalError)
                let second = try await peer.expectRequest()
                #expect(second.fields["last-event-id"] == "1")
                try await peer.respond(to: second.stream, .ok, Self.type, body: Array("id: 2\ndata: half\n\n".utf8))
                let third = try await peer.expectRequest()
                try await peer.respond(to: third.stream, .noContent, [:], body: [])
                _ = await peer.untilClosed()
            }
            var seen: [String] = []
            let request = Request(url: server.url("/"))
            for try await event in session.serverSentEvents(for: request, reconnection: Self.eager) {
                seen.append(event.data)
            }
            #expect(seen == ["a", "half"])
        }
    }

    // The buffers of the sockets hold some megabytes, the relay 64 KiB; a connection that reads ahead would hold more.
    @Test("a reader that stops within 100,000 tokens stops the server, and then reads each of them once")
    func tokens() async throws {
        let count = 100_000
        let filling = String(repeating: "x", count: 400)
        try await withHTTPTestServer { origin in
            origin.route("/tokens") { _ in
                let pieces = stride(from: 0, to: count, by: 1_000).map { start in
                    (start..<start + 1_000).map { "id: \($0)\ndata: {\"token\": \"\(filling)\"}\n\n" }.joined()
                }
                return .ok(.chunks(pieces.map { .bytes(Array($0.utf8)) }), headers: Self.type)
            }
            let conditions = NetworkConditions(queueLimit: 1 << 16)
            try await withNetworkRelay(to: origin.url(), conditions) { relay in
                let session = Session(.ephemeral)
                let request = Request(url: relay.url("/tokens"), method: .post, body: .form([("prompt", "tell")]))
                var events = session.serverSentEvents(for: request).makeAsyncIterator()
                var next = 0
                func read(_ count: Int) async throws {
                    for _ in 0..<count {
                        let event = try await events.next()
                        guard event?.lastEventID == "\(next)" else {
                            throw Surprise(description: "\(event?.lastEventID ?? "nothing") for \(next)")
                        }
                        next += 1
                    }
                }
                try await read(10)
                let arrived = try await Self.rest(of: relay)
                #expect(arrived < 24 << 20)
                try await read(count - 10)
                #expect(try await events.next() == nil)
                #expect(relay.counts.toClient.delivered > 40 << 20)
            }
        }
    }

    private struct Surprise: Error, CustomStringConvertible { let description: String }

    /// Returns how many bytes the client of a relay was sent, once no more are sent: nothing tells of that moment.
    private static func rest(of relay: NetworkRelay) async throws -> Int64 {
        var last: Int64 = -1
        while relay.counts.toClient.delivered != last {
            last = relay.counts.toClient.delivered
            try await Task.sleep(for: .milliseconds(500))
        }
        return last
    }
}
