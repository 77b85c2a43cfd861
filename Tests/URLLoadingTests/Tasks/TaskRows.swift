// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Sessions and their tasks in the async API.
@Suite(.timeLimit(.minutes(4)))
struct TaskRows {
    @Test("a session's kind is fixed by the configuration it was made with (checklist 1, 9)")
    func kinds() {
        var configuration = Configuration.ephemeral
        let session = Session(configuration)
        configuration = .default
        #expect(
            session.configuration.isEphemeral && !configuration.isEphemeral && !Session.shared.configuration.isEphemeral
        )
    }

    @Test("a body is delivered piece by piece as it arrives, or complete at the end (checklist 7, 36)")
    func incrementally() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.chunks(["one"])) }
            origin.route("/slow", faults: [HTTPTestServer.Fault(.responseBody(after: 8), .stall)]) { _ in
                .ok(.chunks(["one", "two"]))
            }
            let session = Session()
            let task = session.dataTask(from: origin.url("/slow")).resumed()
            let body = try await task.body
            var iterator = body.makeAsyncIterator()
            // The second piece is sent after the first was received.
            try await expect({ try await iterator.next().map { String(decoding: [UInt8]($0), as: UTF8.self) } }, "one")
            #expect(task.snapshot.received == 3)
            origin.releaseStalls()
            task.cancel()
            try await expect({ try await session.data(from: origin.url()).0 }, Data("one".utf8))
        }
    }

    @Test("many sessions with many tasks each run side by side (checklist 8)")
    func many() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok($0.path) }
            let sessions = (0..<10).map { _ in Session() }
            let tasks = sessions.enumerated().flatMap { number, session in
                (0..<20).map {
                    (path: "/\(number)/\($0)", task: session.dataTask(from: origin.url("/\(number)/\($0)")))
                }
            }
            for (_, task) in tasks { task.resume() }
            for (path, task) in tasks { try await expect({ try await task.value }, Data(path.utf8)) }
            #expect(Set(tasks.map(\.task.id)).count == 200)
        }
    }

    @Test("a session has ended after the last event of its last task, once (checklist 15, 16)")
    func ended() async throws {
        final class Last: LoadObserver {
            let completed = Atomic<Int>(0)
            func observe(_ event: LoadEvent, of load: LoadIdentity) {
                if case .completed = event { completed.add(1, ordering: .relaxed) }
            }
        }
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.chunks(["one", .pause(.milliseconds(20)), "two"])) }
            let last = Last()
            let session = Session(.default.with { $0.observers = [last] })
            let tasks = (0..<20).map { _ in session.dataTask(from: origin.url()) }
            for task in tasks { task.resume() }
            session.finishTasksAndInvalidate()
            await session.invalidated()
            #expect(last.completed.load(ordering: .relaxed) == 20)
            for task in tasks { try await expect({ try await task.value.count }, 6) }
        }
    }

    @Test("a session without references finishes its tasks; a scope ends with its session (checklist 17)")
    func scopes() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.chunks(["one", .pause(.milliseconds(20)), "two"])) }
            func orphan() -> LoadTask<Data> {
                let task = Session().dataTask(from: origin.url()).resumed()
                return task
            }
            // Only the handle retains the session here.
            try await expect({ try await orphan().value.count }, 6)
            let left = try await withSession { session in
                let task = session.dataTask(from: origin.url()).resumed()
                return task
            }
            // The scope has waited for the session.
            guard case .completed(nil) = left.snapshot.state else {
                Issue.record("\(left)")
                return
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("a handle reports upload and download progress without observers (checklist 35)")
    func progress() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok(.bytes($0.body)) }
            let session = Session()
            var request = Request(url: origin.url(), method: .put, body: .data(Data(count: 50_000)))
            let task = session.dataTask(request)
            #expect(task.snapshot.expectedToSend == 50_000 && task.snapshot.expectedToReceive == nil)
            task.resume()
            _ = try await task.value
            #expect(
                task.snapshot.sent == 50_000 && task.snapshot.received == 50_000
                    && task.snapshot.expectedToReceive == 50_000)
            request.body = .stream {
                AsyncStream { pieces in
                    for _ in 0..<10 { pieces.yield([UInt8](repeating: 1, count: 100)) }
                    pieces.finish()
                }
            }
            let streamed = session.dataTask(request)
            let events = streamed.events
            streamed.resume()
            _ = try await streamed.value
            #expect(streamed.snapshot.sent == 1000 && streamed.snapshot.expectedToSend == nil)
            var totals: [Int64] = []
            for await case .bodySent(let bytes) in events { totals.append(bytes.total) }
            #expect(totals.last == 1000 && totals == totals.sorted())
        }
    }

    @Test("two tasks that iterate one sequence of events both come to its end")
    func sharedEvents() async throws {
        try await withHTTPTestServer { origin in
            let gate = Watched(false)
            origin.route("/") { _ in
                try await gate.wait { $0 }
                return .ok("x")
            }
            let session = Session()
            let task = session.dataTask(from: origin.url())
            let events = task.events
            let readers = (0..<3).map { number in
                Task {
                    var count = 0
                    for await _ in events {
                        count += 1
                        if number == 0 { break }
                    }
                    return count
                }
            }
            task.resume()
            try await origin.wait { $0.open == 1 }
            gate.change { $0 = true }
            var count = 0
            for reader in readers { count += await reader.value }
            #expect(count > 3)
            await expectEmpty(session)
        }
    }

    @Test("received bytes belong to their reader (checklist 43)")
    func notRetained() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 10_000_000)) }
            let session = Session()
            let task = session.dataTask(from: origin.url()).resumed()
            var count = 0
            for try await chunk in try await task.body { count += chunk.count }
            #expect(count == 10_000_000)
            await expectFailure(.bodyUnavailable) { try await task.value }
            await expectFailure(.bodyUnavailable) { for try await _ in try await task.body {} }
        }
    }

}
