// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// Handles of loads: their values, waits and ends.
@Suite(.timeLimit(.minutes(4)))
struct TaskTests {
    @Test("a task gives response, value and events in the legal order (checklist 34, 36, 47)")
    func value() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            try await withSession { session in
                let task = session.dataTask(from: origin.url())
                let events = task.events
                #expect("\(task.snapshot)" == "suspended 0/?")
                task.resume()
                try await expect({ try await task.response.http?.status }, .ok)
                try await expect({ try await task.value }, Data("hello".utf8))
                try await expect({ try await task.value }, Data("hello".utf8))
                var order = LoadEventOrder()
                for await event in events {
                    let isLegal = order.accept(event)
                    #expect(isLegal, "\(order)")
                }
                #expect("\(order)" == "responded received metrics completed")
                #expect("\(task.snapshot)" == "completed 5/5")
                await expectFailure(.bodyUnavailable) { for try await _ in try await task.body {} }
            }
        }
    }

    @Test("a task sends no byte before it is resumed, and waits for ever (checklist 33)")
    func suspendedAtFirst() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            try await withSession { session in
                let task = session.dataTask(from: origin.url())
                let waiting = Task { try await task.value }
                try await Task.sleep(for: .milliseconds(20))
                #expect(origin.requests.isEmpty && origin.counts.accepted == 0)
                waiting.cancel()
                await expectFailure(.cancelled) { try await waiting.value }
                task.resume()
                try await expect({ try await task.value.count }, 5)
            }
        }
    }

    @Test(
        "a large body is read ahead so far and pulled by its reader, every byte",
        arguments: [0, 1, 1_000, 64 * 1024, 1 << 20])
    func readAhead(_ readAhead: Int) async throws {
        let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) }
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes(bytes)) }
            try await withSession(.default.with { $0.readAhead = readAhead }) { session in
                let task = session.dataTask(from: origin.url()).resumed()
                _ = try await task.response
                try await Task.sleep(for: .milliseconds(5))
                #expect(task.snapshot.received <= max(readAhead, 0))
                var body: [UInt8] = []
                for try await chunk in try await task.body { body += [UInt8](chunk) }
                #expect(body == bytes)
                #expect("\(task.snapshot)" == "completed 300000/300000")

                let whole = session.dataTask(from: origin.url()).resumed()
                _ = try await whole.response
                try await Task.sleep(for: .milliseconds(5))
                try await expect({ try await [UInt8](whole.value) }, bytes)
            }
        }
    }

    @Test("cancel ends a task wherever it is (checklist 34; security 84)")
    func cancel() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 10_000_000)) }
            origin.route("/stall", faults: [HTTPTestServer.Fault(.requestHead, .stall)]) { _ in .ok("") }
            try await withSession { session in
                let never = session.dataTask(from: origin.url())
                never.cancel()
                await expectFailure(.cancelled) { try await never.value }
                never.resume()
                #expect("\(never.snapshot)" == "failed(cancelled) 0/?")

                let waiting = session.dataTask(from: origin.url("/stall")).resumed()
                try await origin.wait { $0.stalled > 0 }
                waiting.cancel()
                await expectFailure(.cancelled) { try await waiting.response }

                let resting = session.dataTask(from: origin.url()).resumed()
                _ = try await resting.response
                try await Task.sleep(for: .milliseconds(5))
                resting.cancel()
                await expectFailure(.cancelled) { try await resting.value }
                #expect("\(resting.snapshot)".hasPrefix("failed(cancelled)"))
            }
        }
    }

    @Test("a task without references to its handle closes its connection")
    func dropped() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 10_000_000)) }
            try await withSession { session in
                var task: LoadTask<Data>? = session.dataTask(from: origin.url())
                let events = try #require(task?.events)
                task?.resume()
                _ = try await task?.response
                task = nil
                var last: LoadEvent?
                for await event in events { last = event }
                guard case .completed(let error?)? = last else {
                    Issue.record("\(String(describing: last))")
                    return
                }
                #expect(error.reason == .cancelled)
                _ = session.dataTask(from: origin.url())
            }
        }
    }

    @Test("a suspended task moves no byte, and continues where it was (checklist 34)")
    func suspended() async throws {
        let clock = ManualClock()
        try await withHTTPTestServer(.init(clock: clock)) { origin in
            let part = HTTPTestServer.Response.Piece.bytes([UInt8](repeating: 1, count: 500_000))
            origin.route("/") { _ in .ok(.chunks([part, .pause(.seconds(1)), part])) }
            var configuration = Configuration.default
            configuration.readAhead = 1 << 20
            configuration.use(clock)
            try await withSession(configuration) { session in
                let task = session.dataTask(from: origin.url()).resumed()
                try await task.received(500_000)
                task.suspend()
                #expect("\(task.snapshot)".hasPrefix("suspended"))
                // The rest is sent; and longer than the idle timeout: the peer's silence does not count.
                try await clock.untilSleeping()
                clock.advance(by: .seconds(600))
                try await Task.sleep(for: .milliseconds(20))
                #expect(task.snapshot.received == 500_000)
                task.resume()
                try await expect({ try await task.value.count }, 1_000_000)
            }
        }
    }

    @Test(
        "100 resumed tasks without readers do not block the 101st; read later, every byte is there",
        arguments: [1_000, 64 * 1024, 1 << 20])
    func unread(_ size: Int) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: Int64(size))) }
            try await withSession { session in
                let unread = (0..<100).map { _ in session.dataTask(from: origin.url()) }
                for task in unread { task.resume() }
                let last = session.dataTask(from: origin.url()).resumed()
                try await expect({ try await last.value.count }, size)
                for task in unread { _ = try await task.response }
                // The session holds of each body no more than it may read ahead.
                #expect(unread.allSatisfy { $0.snapshot.received <= 64 * 1024 })
                for task in unread { try await expect({ try await task.value.count }, size) }
                #expect(
                    session.connectionsDescription.contains("0 leased")
                        && !session.connectionsDescription.contains("resting"))
            }
        }
    }

    @Test("suspended tasks take up no connection's place")
    func suspendedPlaces() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 1 << 20)) }
            try await withSession { session in
                let suspended = (0..<10).map { _ in session.dataTask(from: origin.url()) }
                for task in suspended {
                    task.resume()
                    _ = try await task.response
                    task.suspend()
                }
                try await expect({ try await session.data(from: origin.url()).0.count }, 1 << 20)
                for task in suspended {
                    task.resume()
                    try await expect({ try await task.value.count }, 1 << 20)
                }
            }
        }
    }

    @Test("small bodies and ends that come at once: HEAD, 204, trailers, exactly readAhead (checklist 36)")
    func edges() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 64 * 1024)) }
            origin.route("/204") { _ in .status(.noContent) }
            origin.route("/chunks") { _ in .ok(.chunks(["one", "two"], trailers: ["Sum": "3"])) }
            try await withSession { session in
                for (path, method, count) in [
                    ("/", Method.get, 65_536), ("/", .head, 0), ("/204", .get, 0), ("/chunks", .get, 6),
                ] {
                    let task = session.dataTask(Request(url: origin.url(path), method: method))
                    let events = task.events
                    task.resume()
                    // There is no reader: a small body completes all the same.
                    for await _ in events {}
                    let body = try await task.body
                    var read = 0
                    for try await chunk in body { read += chunk.count }
                    #expect(
                        read == count && body.trailers["Sum"] == (path == "/chunks" ? "3" : nil), "\(method) \(path)")
                }
            }
        }
    }

    @Test("a cancelled waiter does not affect others: ten wait for the value, five give up (checklist 34)")
    func manyWaiters() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.chunks(["one", .pause(.milliseconds(30)), "two"])) }
            try await withSession { session in
                let task = session.dataTask(from: origin.url())
                let waiting = (0..<10).map { _ in Task { try await task.value } }
                task.resume()
                for waiter in waiting[..<5] { waiter.cancel() }
                for waiter in waiting[..<5] { await expectFailure(.cancelled) { try await waiter.value } }
                for waiter in waiting[5...] { try await expect({ try await waiter.value }, Data("onetwo".utf8)) }
            }
        }
    }

    @Test("the task-local values and the priority are those of the task that resumed it")
    func locals() async throws {
        enum Local { @TaskLocal static var name = "nobody" }
        try await withHTTPTestServer(answering: "") { origin in
            let seen = ObserverTests.Box<String>()
            var decisions = Decisions()
            decisions.response = Decision { _ in
                seen.add(Local.name)
                return .allow
            }
            let session = Session(.default, decisions: decisions)
            let task = session.dataTask(from: origin.url())
            let events = task.events
            // Not awaited: that would raise its priority.
            Task(priority: .background) { Local.$name.withValue("resumer") { task.resume() } }
            for await _ in events {}
            _ = try await Local.$name.withValue("waiter") { try await task.value }
            #expect(seen.all == ["resumer"] && task.snapshot.priority == .background)
        }
    }

    @Test("sessions end their tasks; those never resumed do not hold them (checklist 14-16)")
    func invalidation() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 1 << 20)) }
            let session = Session()
            let never = session.dataTask(from: origin.url())
            let going = session.dataTask(from: origin.url()).resumed()
            session.finishTasksAndInvalidate()
            await expectFailure(.cancelled) { try await never.value }
            try await expect({ try await going.value.count }, 1 << 20)
            await session.invalidated()
            let late = session.dataTask(from: origin.url()).resumed()
            await expectFailure(.sessionInvalidated) { try await late.value }

            let other = Session()
            let tasks = (0..<20).map { _ in other.dataTask(from: origin.url()) }
            for task in tasks.dropLast(5) { task.resume() }
            other.invalidateAndCancel()
            for task in tasks { await expectFailure(.cancelled) { try await task.value } }
            await other.invalidated()
            #expect(other.connectionsDescription == "empty")
        }
    }

    @Test("descriptions show no secrets")
    func secrets() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [HTTPTestServer.Fault(.responseBody(after: 0), .stall)]) { _ in .ok("hello") }
            let session = Session()
            let task = session.dataTask(from: origin.url("/?token=secret"))
            #expect(!"\(task)".contains("secret"))
            task.cancel()
        }
        let url = URL(string: "data:,secret")!
        let session = Session()
        let (_, response) = try await session.data(from: url)
        #expect("\(response)" == "data:… text/plain; charset=US-ASCII, 6 bytes")
    }
}
