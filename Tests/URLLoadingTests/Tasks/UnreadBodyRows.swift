// SPDX-License-Identifier: Apache-2.0

// Callers that wait for the end of a load whose body has no reader: each wait ends.

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

@Suite(.timeLimit(.minutes(2)))
struct UnreadBodyRows {
    /// More than a task reads ahead.
    private static let size = 3 << 20

    private static func routes(_ origin: HTTPTestServer) {
        origin.route("/large") { _ in .ok(.repeated(count: Int64(size))) }
        origin.route("/endless") { _ in .ok(.repeated(count: 1 << 40)) }
    }

    @Test("metrics of a task whose body is not read: the body is read to its end, and a later consumer gets it")
    func metrics() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = Session(.ephemeral)
            let task = session.dataTask(from: origin.url("/large"))
            task.resume()
            let metrics = try await task.metrics
            #expect(metrics.transactions.count == 1)
            #expect(try await task.value.count == Self.size)
        }
    }

    @Test("metrics of a task that has read ahead and waits for a reader")
    func metricsLater() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = Session(.ephemeral)
            let task = session.dataTask(from: origin.url("/large"))
            task.resume()
            _ = try await task.response
            try await task.received(1000)
            _ = try await task.metrics
            var count = 0
            for try await chunk in try await task.body { count += chunk.count }
            #expect(count == Self.size)
        }
    }

    @Test("a reader that comes while the metrics are awaited gets the whole body")
    func readerBesideMetrics() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = Session(.ephemeral)
            let task = session.dataTask(from: origin.url("/large"))
            task.resume()
            async let metrics = task.metrics
            var count = 0
            for try await chunk in try await task.body { count += chunk.count }
            #expect(count == Self.size)
            #expect(try await metrics.transactions.count == 1)
        }
    }

    @Test("a body larger than a collected one is dropped while the metrics are awaited, and value says so")
    func tooLarge() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = Session(Configuration.ephemeral.with { $0.limits.collectedBodySize = 1 << 20 })
            let task = session.dataTask(from: origin.url("/large"))
            task.resume()
            _ = try await task.metrics
            guard case .completed(nil) = task.snapshot.state else {
                Issue.record("the load did not succeed: \(task)")
                return
            }
            await #expect(throws: LoadError.self) { _ = try await task.value }
            do throws(LoadError) { _ = try await task.value } catch { #expect(error.reason == .bodyTooLarge) }
        }
    }

    @Test("metrics after a reader has left its loop: the rest is read and dropped")
    func readerLeft() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = Session(.ephemeral)
            let task = session.dataTask(from: origin.url("/large"))
            task.resume()
            func readOne() async throws {
                for try await _ in try await task.body { break }
            }
            try await readOne()
            _ = try await task.metrics
            do throws(LoadError) {
                _ = try await task.value
                Issue.record("value returned a body of which a part was read")
            } catch { #expect(error.reason == .bodyUnavailable) }
        }
    }

    @Test("withSession ends although a task's body was not read, and its handle lives on")
    func scope() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let task = try await withSession(.ephemeral) { session in
                let task = session.dataTask(from: origin.url("/large"))
                task.resume()
                _ = try await task.response
                return task
            }
            #expect(try await task.value.count == Self.size)
        }
    }

    @Test("a session that finishes its tasks ends although a body was not read")
    func finishing() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = Session(.ephemeral)
            let task = session.dataTask(from: origin.url("/large"))
            task.resume()
            try await task.received(1000)
            session.finishTasksAndInvalidate()
            await session.invalidated()
            #expect(try await task.value.count == Self.size)
        }
    }

    @Test("events of a task whose body has no reader end after the idle timeout: the body is read to its end")
    func events() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = Session(Configuration.ephemeral.with { $0.timeouts.idle = .seconds(10) })
            let task = session.dataTask(from: origin.url("/large"))
            let events = task.events
            task.resume()
            var received: Int64 = 0
            for await event in events {
                if case .received(let bytes) = event { received = bytes.total }
                if case .completed(let error) = event { #expect(error == nil) }
            }
            #expect(received == Int64(Self.size))
            withExtendedLifetime(task) {}
        }
    }

    enum Listening: CaseIterable { case afterReadingAhead, afterReader, fromTheBeginning }

    @Test(
        "events end after the idle timeout also if they are asked for while the load waits, or if its reader has left",
        arguments: Listening.allCases)
    func eventsOfWaitingLoad(_ listening: Listening) async throws {
        let clock = ManualClock()
        var configuration = Configuration.ephemeral.with { $0.timeouts.idle = .seconds(10) }
        configuration.use(clock)
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let session = Session(configuration)
            let task = session.dataTask(from: origin.url("/large"))
            let early = listening == .fromTheBeginning ? task.events : nil
            task.resume()
            func readOne() async throws {
                for try await _ in try await task.body { break }
            }
            if listening != .afterReadingAhead { try await readOne() }
            try await eventually(task.load.state.withLock { $0.waitsForReader }) { $0 }
            let events = early ?? task.events
            clock.advance(by: .seconds(10))
            var last: LoadEvent?
            for await event in events { last = event }
            guard case .completed(nil)? = last else { return _ = Issue.record("\(last as Any)") }
            withExtendedLifetime(task) {}
        }
    }

    @Test("a body and an event stream that are left by break inside load and withSession end")
    func leftByBreak() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            try await withSession(.ephemeral) { session in
                try await session.load(Request(url: origin.url("/endless"))) { _, body in
                    for try await _ in body { break }
                }
                let task = session.dataTask(from: origin.url("/endless"))
                task.resume()
                for try await _ in try await task.body { break }
            }
            try await origin.wait { $0.open == 0 }
        }
    }
}
