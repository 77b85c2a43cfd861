// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// While a fast body gathers in the kernel, its reader is woken for many bytes at once. A slow peer must not notice.
@Suite(.timeLimit(.minutes(2)))
struct GatheringRows {
    /// The peer sends this fast, then pauses: the pause comes while the reader waits for more than the peer has sent.
    private static let fast = 6 << 20
    private static let size = fast + (2 << 20)
    private static let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) })

    private static func pauses(_ places: [Int]) -> [HTTPTestServer.Fault] {
        places.map { .init(.responseBody(after: Int64($0)), .stall) }
    }

    @Test("after a fast part, small parts of a body of known length are delivered before the rest has come")
    func slow() async throws {
        let parts = 8
        var pieces: [HTTPTestServer.Response.Piece] = [
            .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: \(Self.size)\r\n\r\n".utf8)),
            .bytes([UInt8](Self.content[..<Self.fast])),
        ]
        for part in 0..<parts {
            let begin = Self.fast + 10 * part
            pieces += [.pause(.milliseconds(80)), .bytes([UInt8](Self.content[begin..<begin + 10]))]
        }
        let end = Self.fast + 10 * parts
        pieces += [.pause(.milliseconds(80)), .bytes([UInt8](Self.content[end...]))]
        try await withHTTPTestServer { [pieces] origin in
            origin.route("/") { _ in .raw(pieces, then: .next) }
            try await withSession(.ephemeral) { session in
                let (received, early) = try await session.load(Request(url: origin.url())) { _, body in
                    var (received, early) = (Data(), 0)
                    for try await chunk in body {
                        received.append(contentsOf: [UInt8](chunk))
                        if received.count > Self.fast, received.count <= end { early += 1 }
                    }
                    return (received, early)
                }
                #expect(received == Self.content)
                // A reader that waited for as much as the mark would see all of them at once, with the rest.
                #expect(early > 0)
                // The mark of a body does not hold back the next response.
                #expect(try await session.data(from: origin.url("/small")).1.http?.status == .notFound)
            }
        }
    }

    @Test("the idle timeout, a cancellation and a suspension end or stop a gathering wait")
    func endings() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: Self.pauses([Self.fast])) { _ in .ok(.bytes([UInt8](Self.content))) }
            try await withSession(.ephemeral) { session in
                var request = Request(url: origin.url())
                request.idleTimeout = .milliseconds(300)
                await expectFailure(.idleTimeout) { try await session.data(for: request) }
                let task = session.dataTask(Request(url: origin.url())).resumed()
                let value = Task { try await task.value }
                try await task.received(Self.fast)
                task.suspend()
                task.resume()
                task.cancel()
                await expectFailure(.cancelled) { try await value.value }
            }
        }
    }

    @Test("a body that ends early, in the middle of a gathering wait, is reported at once")
    func truncated() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: Int64(Self.fast)), .close)]) { _ in
                .ok(.bytes([UInt8](Self.content)))
            }
            try await withSession(.ephemeral) { session in
                await expectFailure(.truncated) { try await session.data(from: origin.url()) }
            }
        }
    }
}
