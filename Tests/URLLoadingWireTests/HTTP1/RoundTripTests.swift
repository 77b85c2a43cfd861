// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Random exchanges between a client and a server codec for many seeds: the same in every run.
@Suite struct RoundTripTests {
    @Test("Random exchanges are read as they were written") func manyExchanges() throws {
        var random = SplitMix(state: 42)
        var client = HTTP1Codec(role: .client)
        var server = HTTP1Codec(role: .server)
        for _ in 0..<150 {
            let request = try message(&random) { framing, headers, wire in
                try client.sendRequest(
                    method: .post, target: bytes("/x"), host: bytes("h"), headers: headers, framing: framing,
                    into: &wire)
            } data: { count, wire in
                try client.sendData(count: count, into: &wire)
            } dataEnd: {
                client.sendDataEnd(into: &$0)
            } end: {
                try client.sendEnd(trailers: $0, into: &$1)
            }
            try check(&server, request, &random)
            let response = try message(&random) { framing, headers, wire in
                try server.sendResponse(status: .ok, headers: headers, framing: framing, into: &wire)
            } data: { count, wire in
                try server.sendData(count: count, into: &wire)
            } dataEnd: {
                server.sendDataEnd(into: &$0)
            } end: {
                try server.sendEnd(trailers: $0, into: &$1)
            }
            try check(&client, response, &random)
            #expect(client.reuse == .yes && server.reuse == .yes)
            try client.startNextExchange()
            try server.startNextExchange()
        }
    }

    struct Message {
        var wire: [UInt8] = []
        var headers = Headers()
        var body: [UInt8] = []
        var trailers = Headers()
    }

    func message(
        _ random: inout SplitMix, head: (HTTP1BodyFraming, Headers, inout [UInt8]) throws -> Void,
        data: (Int, inout [UInt8]) throws -> Void, dataEnd: (inout [UInt8]) -> Void,
        end: (Headers, inout [UInt8]) throws -> Void
    ) throws -> Message {
        var message = Message()
        let pieces = (0..<Int.random(in: 0...4, using: &random)).map { _ in
            (0..<Int.random(in: 1...40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        message.body = pieces.flatMap { $0 }
        for index in 0..<Int.random(in: 0...6, using: &random) {
            message.headers.append(FieldName("X-\(index % 3)"), "v\(UInt16.random(in: 0...999, using: &random))")
        }
        let isChunked = Bool.random(using: &random)
        if isChunked, Bool.random(using: &random) { message.trailers.append("T", "1") }
        try head(isChunked ? .chunked : .length(Int64(message.body.count)), message.headers, &message.wire)
        for piece in pieces {
            try data(piece.count, &message.wire)
            message.wire += piece
            dataEnd(&message.wire)
        }
        try end(message.trailers, &message.wire)
        return message
    }

    func check(_ codec: inout HTTP1Codec, _ message: Message, _ random: inout SplitMix) throws {
        var buffer: [UInt8] = []
        var rest = message.wire[...]
        var body: [UInt8] = []
        var trailers: Headers?
        while trailers == nil, !(rest.isEmpty && buffer.isEmpty) || message.body.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...50, using: &random))
            rest = rest.dropFirst(piece.count)
            buffer += piece
            while trailers == nil {
                var consumed = 0
                guard let event = try codec.next(buffer, &consumed) else {
                    buffer.removeFirst(consumed)
                    break
                }
                switch event {
                case .data(let range): body += buffer[range]
                case .request(let head): expectFields(message.headers, in: head.headers)
                case .response(let head): expectFields(message.headers, in: head.headers)
                case .end(let found): trailers = found
                default: Issue.record("\(event)")
                }
                buffer.removeFirst(consumed)
            }
        }
        #expect(body == message.body)
        #expect(trailers == message.trailers)
        #expect(buffer.isEmpty && rest.isEmpty)
    }

    private func expectFields(_ sent: Headers, in received: Headers) {
        for field in sent { #expect(received.values(of: field.name) == sent.values(of: field.name)) }
    }
}
