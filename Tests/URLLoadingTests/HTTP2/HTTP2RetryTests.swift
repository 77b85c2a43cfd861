// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct HTTP2RetryTests {
    private static let eager: RetryPolicy = {
        var policy = RetryPolicy()
        policy.backoff = .constant(.zero)
        return policy
    }()

    @Test("a stream reset by its server is retried under a policy, on the same connection")
    func again() async throws {
        try await withHTTP2(.init(), { $0.retries.policy = Self.eager }) { server, session in
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                try await peer.reset(first.stream, .internalError)
                let second = try await peer.expectRequest()
                try await peer.respond(to: second.stream, body: Array("ok".utf8))
                _ = await peer.untilClosed()
            }
            try await session.expect(server.url("/"), "ok")
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("a suspended download continues although its stream was reset meanwhile")
    func suspended() async throws {
        try await withHTTP2 { server, session in
            let content = bytes(2000)
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                try await peer.respond(
                    to: first.stream, .ok, [.etag: "\"one\"", .contentLength: "2000"], body: Array(content[..<1000]),
                    endStream: false)
                try await peer.hold()
                try await peer.reset(first.stream, .internalError)
                let rest = try await peer.expectRequest()
                #expect(rest.fields["range"] == "bytes=1000-")
                try await peer.respond(
                    to: rest.stream, .partialContent, [.etag: "\"one\"", .contentRange: "bytes 1000-1999/2000"],
                    body: Array(content[1000...]))
                _ = await peer.untilClosed()
            }
            let task = session.downloadTask(Request(url: server.url("/"))).resumed()
            try await task.received(1000)
            task.suspend()
            server.release()
            task.resume()
            let file = try await task.value
            #expect(contents(file.url) == Data(content))
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("without a policy a reset stream fails the load")
    func never() async throws {
        try await withHTTP2 { server, session in
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                try await peer.reset(first.stream, .internalError)
                _ = await peer.untilClosed()
            }
            let url = server.url("/")
            await expectFailure(.streamReset, .remote) { try await session.data(from: url) }
        }
    }

    // A server that ends each connection after three requests. Those beyond are not processed, and wait for the next
    // connection; their number is learned, so that later connections carry no more at a time.
    @Test("requests that a GOAWAY has refused are sent again as long as others are answered")
    func manyRefusals() async throws {
        try await withHTTP2 { server, session in
            for number in 1...200 {
                server.script(onConnection: number) { peer in
                    try await peer.start()
                    var requests: [HTTP2Peer.Request] = []
                    while requests.count < 3 { requests.append(try await peer.expectRequest()) }
                    try await peer.goAway(last: requests[2].stream)
                    for request in requests { try await peer.respond(to: request.stream, body: Array("ok".utf8)) }
                    _ = await peer.untilClosed()
                }
            }
            let count = 150
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    if number >= 50 { try await group.next() }
                    group.addTask { try await session.expect(server.url("/\(number)"), "ok") }
                }
                try await group.waitForAll()
            }
            // Each connection answers three.
            #expect(server.counts.accepted <= count / 3 + 8)
        }
    }

    // An overloaded server, or a proxy that refuses one route.
    @Test("a request that is refused on a connection that answers others is sent seven times at most")
    func refusedAmongOthers() async throws {
        try await withHTTP2 { server, session in
            server.script(onConnection: 1) { peer in
                let first = try await peer.acceptRequest()
                try await peer.respond(to: first.stream, body: Array("ok".utf8))
                for _ in 0..<7 {
                    let request = try await peer.expectRequest()
                    try await peer.reset(request.stream, .refusedStream)
                }
                let last = try await peer.expectRequest()
                try await peer.respond(to: last.stream, body: Array("other".utf8))
                _ = await peer.untilClosed()
            }
            try await session.expect(server.url("/"), "ok")
            await expectFailure(.connectionLost, .remote) {
                try await session.data(for: Request(url: server.url("/refused"), method: .post))
            }
            try await session.expect(server.url("/"), "other")
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("a final head that comes with the end of its stream is the answer to an expectation")
    func finalHeadWithReset() async throws {
        try await withHTTP2 { server, session in
            server.script(onConnection: 1) { peer in
                let request = try await peer.acceptRequest()
                try await peer.send(
                    .headers(stream: request.stream, [0x48, 3] + Array("413".utf8)),
                    .data(stream: request.stream, Array("too much".utf8)), .resetStream(request.stream, .cancel))
                _ = await peer.untilClosed()
            }
            var request = Request(url: server.url("/"), method: .post, body: .data(Data(count: 100_000)))
            request.headers[.expect] = "100-continue"
            let status = Watched<Status?>(nil)
            await expectFailure(.streamReset, .remote) {
                try await session.load(request) { response, body in
                    status.change { $0 = response.status }
                    return try await body.collect(upTo: 1000)
                }
            }
            #expect(status.value == Status(413))
        }
    }

    @Test("a request that is refused while none is answered is sent four times at most")
    func refusedAlone() async throws {
        try await withHTTP2 { server, session in
            for number in 1...10 {
                server.script(onConnection: number) { peer in
                    try await peer.start()
                    _ = try await peer.expectRequest()
                    try await peer.goAway(last: 0)
                    _ = await peer.untilClosed()
                }
            }
            await expectFailure(.connectionLost, .remote) { try await session.data(from: server.url("/")) }
            #expect(server.counts.accepted == 4)
        }
    }
}
