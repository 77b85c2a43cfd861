// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@Suite(.timeLimit(.minutes(4)))
struct HTTP2LoadTests {
    @Test("a connection is reused for consecutive loads") func getAndReuse() async throws {
        try await withHTTP2 { server, session in
            server.route("/hello") { request in .ok("Hello, \(request.method)") }
            for _ in 0..<3 {
                let (data, response) = try await session.data(from: server.url("/hello?a=b"))
                #expect(String(decoding: data, as: UTF8.self) == "Hello, GET")
                #expect(response.http?.version == .http2 && response.http?.status == .ok)
            }
            #expect(server.counts.accepted == 1 && server.counts.requests == 3)
            #expect(server.requests.first?.headers[.host]?.hasPrefix("127.0.0.1:") == true)
        }
    }

    @Test("many loads share one connection") func manyLoadsShareOneConnection() async throws {
        try await withHTTP2 { server, session in
            server.route("/n/*") { request in .ok(.bytes(Array(request.target.utf8))) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask { try await session.expect(server.url("/n/\(number)"), "/n/\(number)") }
                }
                try await group.waitForAll()
            }
            // The server allows 100 streams at a time; when they are in use, more connections are made.
            #expect(server.counts.accepted <= 6 && server.counts.requests == 300)
        }
    }

    @Test("bodies of any size arrive complete", arguments: [0, 1, 1000, 65_535, 65_536, 300_000, 5_000_000])
    func bodies(_ count: Int) async throws {
        try await withHTTP2 { server, session in
            let body = bytes(count)
            server.route("/body") { _ in .ok(.bytes(body)) }
            server.route("/echo") { request in .ok("\(request.bodyCount)") }
            let (data, response) = try await session.data(from: server.url("/body"))
            #expect([UInt8](data) == body)
            #expect(response.expectedLength == nil || response.expectedLength == Int64(count))
            try await session.expect(
                Request(url: server.url("/echo"), method: .post, body: .data(Data(body))), "\(count)")
        }
    }

    @Test("a head that the limit of its size allows has as many frames as it needs") func largeHead() async throws {
        try await withHTTP2(.init(), { $0.limits.headSize = 1 << 20 }) { server, session in
            server.script { peer in
                let request = try await peer.acceptRequest()
                var fields = Headers()
                for number in 0..<10 { fields.append(FieldName("x-\(number)"), String(repeating: "x", count: 60_000)) }
                try await peer.headers(request.stream, HTTP2Fields(.ok, fields), endStream: true, splitInto: 40)
                await peer.untilClosed()
            }
            let (_, response) = try await session.data(from: server.url("/"))
            #expect(response.http?.headers["x-9"]?.utf8.count == 60_000)
        }
    }

    @Test("a streamed body is followed by trailers") func streamedBodyWithTrailers() async throws {
        try await withHTTP2 { server, session in
            server.route("/echo") { request in .ok("\(request.bodyCount) \(request.trailers["sum"] ?? "-")") }
            let pieces = (0..<50).map { [UInt8](repeating: UInt8($0), count: 3000) }
            let body = RequestBody.stream(trailers: { ["Sum": "1"] }) {
                AsyncStream { stream in
                    for piece in pieces { stream.yield(piece) }
                    stream.finish()
                }
            }
            try await session.expect(Request(url: server.url("/echo"), method: .post, body: body), "150000 1")
        }
    }

    @Test("a file is sent as the body") func fileBody() async throws {
        let path = temporaryURL("h2")
        try Data(bytes(700_000)).write(to: path)
        defer { try? FileManager.default.removeItem(at: path) }
        try await withHTTP2 { server, session in
            server.route("/echo") { request in .ok("\(request.bodyCount)") }
            try await session.expect(Request(url: server.url("/echo"), method: .put, body: .file(path)), "700000")
        }
    }

    @Test("a response has trailers, and its body can be read in a scope") func responseTrailersAndScopedBody()
        async throws
    {
        try await withHTTP2 { server, session in
            server.route("/t") { _ in .ok(.chunks(["a", "b"], trailers: ["sum": "2"])) }
            let (text, trailers) = try await session.load(Request(url: server.url("/t"))) { _, body in
                var text = ""
                for try await chunk in body { text += String(decoding: [UInt8](chunk), as: UTF8.self) }
                return (text, body.trailers)
            }
            #expect(text == "ab" && trailers["sum"] == "2")
        }
    }

    @Test("an unread body resets its stream and keeps the connection") func leavingABodyKeepsTheConnection()
        async throws
    {
        try await withHTTP2 { server, session in
            let large = bytes(3_000_000)
            server.route("/large") { _ in .ok(.bytes(large)) }
            server.route("/small") { _ in .ok("small") }
            for _ in 0..<20 {
                let first = try await session.load(Request(url: server.url("/large"))) { _, body in
                    for try await chunk in body { return chunk.count }
                    return 0
                }
                #expect(first > 0)
                try await session.expect(server.url("/small"), "small")
            }
            #expect(server.counts.accepted == 1)
            #expect(try await server.wait(for: .resetStream).frame.errorCode == .cancel)
        }
    }

    @Test("a slow reader does not block the other streams") func aSlowReaderDoesNotBlockTheOtherStreams() async throws {
        try await withHTTP2 { server, session in
            // More than the window of a stream, which the slow reader leaves full.
            let (megabyte, small) = (bytes(1 << 20), bytes(1 << 16))
            server.route("/m") { _ in .ok(.bytes(megabyte)) }
            server.route("/s") { _ in .ok(.bytes(small)) }
            let latch = Latch()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    let count = try await session.load(Request(url: server.url("/m"))) { _, body in
                        var count = 0
                        for try await chunk in body {
                            if count == 0 { await latch.wait() }
                            count += chunk.count
                        }
                        return count
                    }
                    #expect(count == 1 << 20)
                }
                try await withThrowingTaskGroup(of: Void.self) { others in
                    for _ in 0..<99 {
                        others.addTask {
                            let (data, _) = try await session.data(from: server.url("/s"))
                            #expect([UInt8](data) == small)
                        }
                    }
                    try await others.waitForAll()
                }
                latch.open()
                try await group.waitForAll()
            }
        }
    }

    @Test("a body waits for a 100") func expectContinue() async throws {
        try await withHTTP2 { server, session in
            server.script { peer in
                let request = try await peer.acceptRequest()
                try await peer.headers(request.stream, HTTP2Fields(.continue))
                let body = try await peer.expectBody(of: request.stream)
                try await peer.respond(to: request.stream, body: Array("\(body.count)".utf8))
                await peer.untilClosed()
            }
            var request = Request(url: server.url("/"), method: .post, body: .data(Data(bytes(10_000))))
            request.headers[.expect] = "100-continue"
            try await session.expect(request, "10000")
        }
    }

    @Test("a refusal before the body saves it") func refusalBeforeTheBody() async throws {
        try await withHTTP2 { server, session in
            server.script { peer in
                let request = try await peer.acceptRequest()
                try await peer.respond(to: request.stream, .contentTooLarge, body: Array("no".utf8))
                await peer.untilClosed()
            }
            let request = Request(url: server.url("/"), method: .post, body: .data(Data(bytes(1_000_000))))
            let (data, response) = try await session.data(for: request)
            #expect(response.http?.status == .contentTooLarge && data == Data("no".utf8))
        }
    }

    @Test("a response may begin before the request has ended") func answerBesideTheRequest() async throws {
        try await withHTTP2 { server, session in
            server.script { peer in
                let request = try await peer.acceptRequest()
                try await peer.respond(to: request.stream, body: Array("early ".utf8), endStream: false)
                let body = try await peer.expectBody(of: request.stream)
                try await peer.data(request.stream, Array("\(body.count)".utf8), endStream: true)
                await peer.untilClosed()
            }
            try await session.expect(
                Request(url: server.url("/"), method: .post, body: .data(Data(bytes(1_000_000)))), "early 1000000")
        }
    }

    @Test("the timeout of a stream does not affect the others") func timeoutOfAStreamLeavesTheOthers() async throws {
        let clock = ManualClock()
        try await withHTTP2(clock: clock, { $0.timeouts.idle = .seconds(5) }) { server, session in
            server.script { peer in
                try await peer.start()
                while true {
                    let request = try await peer.expectRequest()
                    if request.path != "/mute" { try await peer.respond(to: request.stream, body: Array("ok".utf8)) }
                }
            }
            async let mute: Void = expectFailure(.idleTimeout) { try await session.data(from: server.url("/mute")) }
            try await session.expect(server.url("/a"), "ok")
            try await clock.untilWaiting()
            clock.advance(by: .seconds(6))
            await mute
            try await session.expect(server.url("/b"), "ok")
            #expect(server.counts.accepted == 1)
        }
    }
}
