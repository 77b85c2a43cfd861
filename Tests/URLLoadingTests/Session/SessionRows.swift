// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Sessions: their lifetime and their concurrent use.
@Suite(.timeLimit(.minutes(4)))
struct SessionRows {
    @Test("a shared session serves basic requests and cannot be invalidated (checklist 6)")
    func shared() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await Session.shared.expect(origin.url(), "here")
            Session.shared.finishTasksAndInvalidate()
            Session.shared.invalidateAndCancel()
            try await Session.shared.expect(origin.url(), "here")
            #expect(!Session.shared.configuration.isEphemeral)
        }
    }

    @Test("later changes of a configuration do not affect its session (checklist 9)")
    func configurationIsAValue() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok("\($0.headers["X-Kind"] ?? "none") \($0.headers[.userAgent] ?? "none")") }
            var configuration = Configuration.ephemeral
            configuration.headers["X-Kind"] = "first"
            configuration.userAgent = "one"
            let session = Session(configuration)
            configuration.headers["X-Kind"] = "second"
            configuration.userAgent = nil
            configuration.redirects.maximum = 0
            try await session.expect(origin.url(), "first one")
            #expect(session.configuration.redirects.maximum == 20)
            let other = Session(configuration)
            try await other.expect(origin.url(), "second none")
            try await session.expect(origin.url(), "first one")
        }
    }

    @Test("without decisions, data is returned by await (checklist 11)")
    func dataByAwait() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.chunks(["a", "b", "c"])) }
            try await withSession(.ephemeral) { session in
                let (data, response) = try await session.data(from: origin.url())
                #expect(data == Data("abc".utf8))
                #expect(response.http?.status == .ok)
            }
        }
    }

    @Test("invalidateAndCancel ends every load: sending, waiting for a connection, or receiving (checklist 14)")
    func invalidateAndCancel() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/stall", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            origin.route("/half", faults: [.init(.responseBody(after: 3), .stall)]) { _ in .ok("abcdef") }
            let session = Session(.ephemeral.with { $0.connections.maximumPerHost = 2 })
            await withTaskGroup { group in
                for path in ["/stall", "/half", "/stall", "/half", "/stall"] {
                    group.addTask {
                        await expectFailure(.cancelled, .local) { try await session.data(from: origin.url(path)) }
                    }
                }
                try? await origin.wait { $0.stalled == 2 }
                session.invalidateAndCancel()
            }
            await session.invalidated()
            #expect(session.connectionsDescription == "empty")
            try await origin.wait { $0.open == 0 }
            await expectFailure(.sessionInvalidated, .local, .preparing) { try await session.data(from: origin.url()) }
        }
    }

    @Test("finishTasksAndInvalidate lets loads finish and accepts no new ones (checklist 15)")
    func finishTasks() async throws {
        try await withHTTPTestServer { origin in
            let latch = Latch()
            origin.route("/") { _ in
                await latch.wait()
                return .ok("done")
            }
            let session = Session(.ephemeral.with { $0.connections.maximumPerHost = 1 })
            async let first = session.text(origin.url())
            try await origin.wait { $0.requests == 1 }
            async let invalidated: Void = session.invalidated()
            session.finishTasksAndInvalidate()
            await expectFailure(.sessionInvalidated, .local) { try await session.data(from: origin.url()) }
            await expectFailure(.sessionInvalidated, .local) {
                try await session.load(Request(url: origin.url())) { _, _ in }
            }
            latch.open()
            #expect(try await first == "done")
            await invalidated
            try await origin.wait { $0.open == 0 }
            session.finishTasksAndInvalidate()
            await session.invalidated()
        }
    }

    @Test("a session may be used by many tasks at once (checklist 168)")
    func manyCallers() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { .ok($0.path) }
            try await withSession(.ephemeral) { session in
                try await withThrowingTaskGroup { group in
                    for caller in 0..<16 {
                        group.addTask {
                            for turn in 0..<8 {
                                let path = "/\(caller)/\(turn)"
                                try await session.expect(origin.url(path), path)
                                _ = session.connectionsDescription
                                _ = session.configuration.timeouts.idle
                            }
                        }
                        group.addTask {
                            let task = Task {
                                try await session.load(Request(url: origin.url("/x"))) { _, body in
                                    try await body.collect(upTo: 9).count
                                }
                            }
                            if caller % 2 == 0 { task.cancel() }
                            _ = await task.result
                        }
                    }
                    try await group.waitForAll()
                }
            }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test("dropping a session closes it, and withSession waits for its loads (checklist 17)")
    func dropped() async throws {
        try await withHTTPTestServer(answering: "x") { origin in
            var session: Session? = Session(.ephemeral)
            _ = try await session?.text(origin.url())
            #expect(origin.counts.open == 1)
            session = nil
            try await origin.wait { $0.open == 0 }

            let latch = Latch()
            origin.route("/slow") { _ in
                await latch.wait()
                return .ok("slow")
            }
            let load = try await withSession(.ephemeral) { session in
                let load = Task { try await session.text(origin.url("/slow")) }
                try await origin.wait { $0.requests == 2 }
                Task { latch.open() }
                return load
            }
            #expect(try await load.value == "slow")
            try await origin.wait { $0.open == 0 }

            struct Enough: Error {}
            origin.route("/never", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            var left: Task<String, any Error>?
            await #expect(throws: Enough.self) {
                try await withSession(.ephemeral) { session in
                    left = Task { try await session.text(origin.url("/never")) }
                    try await origin.wait { $0.stalled == 1 }
                    throw Enough()
                }
            }
            let task = try #require(left)
            await expectFailure(.cancelled) { try await task.value }
        }
    }

    @Test("a dropped session lets a running load finish")
    func droppedWhileLoading() async throws {
        try await withHTTPTestServer { origin in
            let latch = Latch()
            origin.route("/") { _ in
                await latch.wait()
                return .ok("late")
            }
            let url = origin.url()
            async let text = Session(.ephemeral).text(url)
            try await origin.wait { $0.requests == 1 }
            latch.open()
            #expect(try await text == "late")
            try await origin.wait { $0.open == 0 }
        }
    }
}
