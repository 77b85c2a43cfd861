import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
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

    @Test("after a fast part, each small part of a body of known length is delivered before the next is sent")
    func slow() async throws {
        let places = (0..<8).map { Self.fast + 10 * $0 }
        try await withHTTPTestServer { origin in
            origin.route("/", faults: Self.pauses(places)) { _ in .ok(.bytes([UInt8](Self.content))) }
            try await withSession(.ephemeral) { session in
                let received = try await session.load(Request(url: origin.url())) { _, body in
                    var received = Data()
                    var places = places[...]
                    for try await chunk in body {
                        received.append(contentsOf: [UInt8](chunk))
                        // The peer sends on only when all that it has sent has come through the loop.
                        while let next = places.first, received.count >= next {
                            try await origin.wait { $0.stalled == 1 }
                            origin.releaseStalls()
                            places.removeFirst()
                        }
                    }
                    return received
                }
                #expect(received == Self.content)
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
                let task = session.dataTask(Request(url: origin.url()))
                task.resume()
                let value = Task { try await task.value }
                while task.snapshot.received < Self.fast { try await Task.sleep(for: .microseconds(200)) }
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
