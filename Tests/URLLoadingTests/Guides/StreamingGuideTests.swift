// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/streaming.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct StreamingGuideTests {
    @Test("scope, lines, handle and events give the same body")
    func streaming() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("one\ntwo\n") }
            let session = Session()
            let request = Request(url: origin.url())

            let (data, response) = try await session.data(for: request)
            #expect(data.count == 8 && response.expectedLength == 8)

            let count = try await session.load(request) { response, body in
                guard response.http?.status == .ok else { return 0 }
                var count = 0
                for try await chunk in body { count += chunk.count }
                return count
            }
            #expect(count == 8)

            var lines: [String] = []
            try await session.load(request) { _, body in
                for try await line in body.lines { lines.append(line) }
            }
            let task = session.dataTask(request)
            task.resume()
            let head = try await task.response
            for try await line in try await task.body.lines { lines.append(line) }
            #expect(lines == ["one", "two", "one", "two"] && head.http?.status == .ok)
        }
    }

    @Test("a task is watched")
    func watching() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("one\ntwo\n") }
            let session = Session()
            var seen: [String] = []
            let task = session.dataTask(Request(url: origin.url()))
            let events = task.events
            task.resume()
            for await event in events {
                switch event {
                case .responded(let response): seen.append("expecting \(response.expectedLength ?? -1)")
                case .received(let bytes): seen.append("\(bytes.total)")
                case .completed(let error): seen.append(error.map { "\($0)" } ?? "done")
                default: break
                }
            }
            #expect(seen == ["expecting 8", "8", "done"])
        }
    }
}
