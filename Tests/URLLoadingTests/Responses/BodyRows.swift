// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

/// The body as a sequence: one consumer, one scope, read on demand.
@Suite(.timeLimit(.minutes(4)))
struct BodyRows {
    @Test("a body used after its scope is at its end")
    func escaping() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 4 << 20)) }
            try await withSession(.ephemeral) { session in
                let unread = try await session.load(Request(url: origin.url())) { $1 }
                await expectFailure(.bodyUnavailable, .local, .receiving) { try await unread.collect(upTo: 9) }
                await expectFailure(.bodyUnavailable, .local, .receiving) { for try await _ in unread {} }
                let request = Request(url: origin.url())
                let begun: (ResponseBody.Iterator, Chunk?) = try await session.load(request) { _, body in
                    var iterator = body.makeAsyncIterator()
                    let first = try await iterator.next()
                    return (iterator, first)
                }
                // Delivered chunks stay valid; no more follow.
                let first = try #require(begun.1)
                #expect(first.withBytes { $0.byteCount } == first.count)
                #expect([UInt8](first).allSatisfy { $0 == 0x61 })
                await expectFailure(.bodyUnavailable, .local) {
                    var iterator = begun.0
                    return try await iterator.next()?.count
                }
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a body still being read when its scope ends is cancelled")
    func escapingReader() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 5), .stall)]) { _ in .ok("0123456789") }
            try await withSession(.ephemeral) { session in
                let reader = try await session.load(Request(url: origin.url())) { _, body in
                    let hasRead = Latch()
                    let reader = Task {
                        for try await _ in body { hasRead.open() }
                    }
                    await hasRead.wait()
                    return reader
                }
                let error = await #expect(throws: LoadError.self) { try await reader.value }
                #expect(error?.reason == .cancelled || error?.reason == .bodyUnavailable)
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a second consumer gets an error, the first its body")
    func secondConsumer() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("body") }
            try await withSession(.ephemeral) { session in
                try await session.load(Request(url: origin.url())) { _, body in
                    var first: ResponseBody.Iterator = body.makeAsyncIterator()
                    await expectFailure(.bodyUnavailable, .local) { for try await _ in body {} }
                    await expectFailure(.bodyUnavailable, .local) { try await body.collect(upTo: 100) }
                    let chunk = try await first.next()
                    #expect(chunk.map { Data($0) } == Data("body".utf8))
                    for _ in 1...2 {
                        let end = try await first.next()
                        #expect(end == nil)
                    }
                }
                try await session.load(Request(url: origin.url())) { _, body in
                    let data = try await body.collect(upTo: 4)
                    #expect(data == Data("body".utf8))
                    await expectFailure(.bodyUnavailable, .local) { try await body.collect(upTo: 4) }
                }
            }
        }
    }

    @Test("collect(upTo:) enforces its limit to the byte")
    func collect() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/known") { _ in .ok(.repeated(count: 100_000)) }
            origin.route("/unknown") { _ in .ok(.repeated(count: 100_000, chunked: true)) }
            origin.route("/empty") { _ in .ok("") }
            try await withSession(.ephemeral) { session in
                for path in ["/known", "/unknown"] {
                    let count = try await session.load(Request(url: origin.url(path))) {
                        try await $1.collect(upTo: 100_000).count
                    }
                    #expect(count == 100_000)
                    await expectFailure(.bodyTooLarge, .local, .receiving, path) {
                        try await session.load(Request(url: origin.url(path))) {
                            try await $1.collect(upTo: 99_999).count
                        }
                    }
                }
                let empty = try await session.load(Request(url: origin.url("/empty"))) { try await $1.collect(upTo: 0) }
                #expect(empty.isEmpty)
            }
        }
    }

    @Test("bytes are read on demand only")
    func backPressure() async throws {
        try await withHTTPTestServer { origin in
            let total: Int64 = 256 << 20
            origin.route("/") { _ in .ok(.repeated(count: total)) }
            try await withSession(.ephemeral) { session in
                try await session.load(Request(url: origin.url())) { _, body in
                    var iterator = body.makeAsyncIterator()
                    _ = try await iterator.next()
                    // The origin cannot have sent the whole body: the kernel's buffers are far smaller.
                    try await pollerHasRun()
                    #expect(origin.counts.answered == 0)
                }
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("retained chunks do not change")
    func keptChunks() async throws {
        try await withHTTPTestServer { origin in
            let bytes = (0..<600_000).map { UInt8(truncatingIfNeeded: $0 >> 4) }
            origin.route("/") { _ in .ok(.bytes(bytes)) }
            try await withSession(.ephemeral) { session in
                let chunks = try await session.load(Request(url: origin.url())) { _, body in
                    var chunks: [Chunk] = []
                    for try await chunk in body { chunks.append(chunk) }
                    return chunks
                }
                try await session.load(Request(url: origin.url())) { _, body in for try await _ in body {} }
                #expect(chunks.flatMap { [UInt8]($0) } == bytes)
                #expect(chunks.reduce(into: Data()) { $0.append($1) } == Data(bytes))
            }
        }
    }

    @Test("an error thrown by the closure ends the load and is rethrown unchanged")
    func closureThrows() async throws {
        struct Mine: Error {}
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 4 << 20)) }
            try await withSession(.ephemeral) { session in
                await #expect(throws: Mine.self) {
                    try await session.load(Request(url: origin.url())) { _, _ in throw Mine() }
                }
                let value = try await session.load(Request(url: origin.url())) { response, _ in response.expectedLength
                }
                #expect(value == 4 << 20)
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("cancelling the caller ends the reads inside the closure")
    func cancelledInside() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 5), .stall)]) { _ in .ok("0123456789") }
            try await withSession(.ephemeral) { session in
                let load = Task {
                    try await session.load(Request(url: origin.url())) { _, body in for try await _ in body {} }
                }
                try await origin.wait { $0.stalled == 1 }
                load.cancel()
                await expectFailure(.cancelled, .local) { try await load.value }
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("trailers are available when the body has ended")
    func trailers() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.chunks(["a", "b"], trailers: ["Sum": "1", "Sum": "2"])) }
            try await withSession(.ephemeral) { session in
                try await session.load(Request(url: origin.url())) { _, body in
                    #expect(body.trailers.isEmpty)
                    for try await _ in body {}
                    #expect(body.trailers.values(of: "sum") == ["1", "2"])
                }
            }
        }
    }
}
