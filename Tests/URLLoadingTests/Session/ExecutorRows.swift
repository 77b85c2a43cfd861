// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// The threads of network operations: never the caller's actor; the event loop's if the caller chooses it.
@Suite(.timeLimit(.minutes(4)))
struct ExecutorRows {
    /// The threads on which bytes were transferred.
    private final class Threads: Sendable {
        private let seen = Lock<Set<UInt>>([])
        static var current: UInt { UInt(pthread_self()) }
        func note() {
            let current = Self.current
            seen.withLock { _ = $0.insert(current) }
        }
        var all: Set<UInt> { seen.withLock { $0 } }
    }

    @Test("a caller on the main actor does not run network operations there")
    @MainActor func mainActor() async throws {
        let main = Threads.current
        let threads = Threads()
        var configuration = Configuration.ephemeral
        configuration.wireTap = { event in
            switch event {
            case .sent, .received, .connected: threads.note()
            case .closed, .frame, .head, .log, .tolerated, .tookTCP: break
            }
        }
        var decisions = Decisions()
        decisions.redirect = Decision { _ in
            threads.note()
            return .follow
        }
        let origin = try HTTPTestServer()
        origin.start()
        origin.route("/") { _ in .redirect("/end") }
        origin.route("/end") { _ in
            .ok(
                .chunks(
                    (0..<20).flatMap { _ in [.bytes([UInt8](repeating: 1, count: 5000)), .pause(.microseconds(100))] }))
        }
        let session = Session(configuration, decisions: decisions)
        for _ in 1...3 {
            let (data, _) = try await session.data(
                for: Request(url: origin.url(), method: .put, body: .data(Data(count: 200_000))))
            #expect(data.count == 100_000)
            MainActor.assertIsolated()
            // Another thread may drain the main queue after the first has left it, so threads are not compared.
            guard Threads.current == main else { return await origin.stop() }
            let count = try await session.load(Request(url: origin.url())) { _, body in
                MainActor.assertIsolated()
                var count = 0
                for try await chunk in body {
                    MainActor.assertIsolated()
                    count += chunk.count
                }
                return count
            }
            #expect(count == 100_000)
            let collected = try await session.load(Request(url: origin.url())) {
                try await $1.collect(upTo: .max).count
            }
            #expect(collected == 100_000)
        }
        #expect(!threads.all.isEmpty)
        #expect(!threads.all.contains(main))
        await origin.stop()
    }

    @Test("all kinds of loads work on the loop's executor")
    func loop() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.method) \($0.bodyCount)") }
            origin.route("/hop") { _ in .redirect("/") }
            origin.route("/zip") { _ in
                .ok(.bytes(Compressed.gzip(DecodingRows.text)), headers: [.contentEncoding: "gzip"])
            }
            origin.route("/large") { _ in .ok(.repeated(count: 3 << 20, chunked: true)) }
            origin.route("/stall", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            let threads = Threads()
            var configuration = Configuration.ephemeral
            configuration.connections.maximumPerHost = 2
            configuration.wireTap = { if case .received = $0 { threads.note() } }
            let session = Session(configuration)
            try await withTaskExecutorPreference(eventLoopExecutor) {
                try await withThrowingTaskGroup { group in
                    for _ in 0..<6 {
                        group.addTask {
                            try await session.expect(origin.url("/hop"), "GET 0")
                            try await session.expect(
                                Request(url: origin.url(), method: .post, body: .data(Data(count: 300_000))),
                                "POST 300000")
                            try await session.expect(
                                Request(
                                    url: origin.url(), method: .put,
                                    body: .stream {
                                        AsyncStream<[UInt8]> {
                                            $0.yield([1, 2])
                                            $0.yield([3])
                                            $0.finish()
                                        }
                                    }), "PUT 3")
                            let (text, _) = try await session.data(from: origin.url("/zip"))
                            #expect(text == Data(DecodingRows.text))
                            let count = try await session.load(Request(url: origin.url("/large"))) { _, body in
                                var count = 0
                                for try await chunk in body { count += chunk.count }
                                return count
                            }
                            #expect(count == 3 << 20)
                        }
                    }
                    try await group.waitForAll()
                }
                let load = Task { try await session.data(from: origin.url("/stall")) }
                try await origin.wait { $0.stalled == 1 }
                load.cancel()
                await expectFailure(.cancelled) { try await load.value }
                var request = Request(url: origin.url("/stall"))
                request.idleTimeout = .milliseconds(20)
                await expectFailure(.idleTimeout) { try await session.data(for: request) }
                session.finishTasksAndInvalidate()
                await session.invalidated()
            }
            // All bytes were transferred on the loop's thread.
            #expect(threads.all.count == 1)
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("https works on the loop's executor")
    func secureLoop() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/") { .ok("\($0.bodyCount)") }
            let session = Session(configuration)
            try await withTaskExecutorPreference(eventLoopExecutor) {
                try await withThrowingTaskGroup { group in
                    for _ in 0..<8 {
                        group.addTask {
                            try await session.expect(
                                Request(url: origin.url(), method: .post, body: .data(Data(count: 400_000))), "400000")
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }
}
