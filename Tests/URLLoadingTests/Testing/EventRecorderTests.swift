// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct EventRecorderTests {
    static func withRecorder(_ use: (EventRecorder, Session, HTTPTestServer) async throws -> Void) async throws {
        let recorder = EventRecorder()
        var configuration = Configuration.ephemeral
        configuration.observers = [recorder]
        try await withHTTPTestServer(answering: "hello") { origin in
            origin.route("/away") { _ in .redirect("/") }
            origin.route("/stalls", faults: [.init(.responseBody(after: 3), .stall)]) { _ in .ok("hello") }
            let session = Session(configuration)
            try await use(recorder, session, origin)
            await expectEmpty(session)
        }
    }

    @Test("every event of every load, in a legal order, one line each")
    func lines() async throws {
        try await Self.withRecorder { recorder, session, origin in
            try await session.expect(origin.url("/away"), "hello")
            await expectFailure(.unsupportedScheme) { try await session.data(from: try url("nothing:x?secret")) }
            let lines = recorder.loads.map(\.description)
            #expect(
                lines[0].hasSuffix(
                    "GET \(origin.url("/away")): redirected responded received metrics completed, 200, 5 bytes"))
            #expect(
                lines.count == 2 && !lines[1].contains("secret") && lines[1].contains("completed, unsupportedScheme"))
            #expect(recorder.loads.allSatisfy { $0.isLegal && $0.isComplete })
            #expect(
                recorder.loads[1].error?.reason == .unsupportedScheme && recorder.loads[0].response?.http?.status == .ok
            )
            #expect("\(recorder)" == lines.joined(separator: "\n"))
        }
    }

    @Test("a test can wait for an event")
    func waiting() async throws {
        try await Self.withRecorder { recorder, session, origin in
            let tasks = (0..<3).map { _ in session.dataTask(from: origin.url("/stalls")) }
            for task in tasks { task.resume() }
            try await recorder.wait(for: .received, count: 3)
            let event = try await recorder.wait(for: .responded, of: tasks[1].id)
            guard case .responded(let response) = event else { throw CancellationError() }
            #expect(response.expectedLength == 5)
            #expect(recorder.events(of: tasks[1]).count == 2)
            #expect("\(recorder)".hasSuffix("responded received, 200, 3 bytes …"))
            for task in tasks { task.cancel() }
            let loads = try await recorder.wait { loads in loads.allSatisfy(\.isComplete) ? loads : nil }
            #expect(loads.allSatisfy { $0.error?.reason == .cancelled })
            let waiter = Task { try await recorder.wait(for: .canonicalized) }
            waiter.cancel()
            await #expect(throws: CancellationError.self) { try await waiter.value }
        }
    }

    @Test("a task's events are recorded without an observer, and a wrong order is detected")
    func following() async throws {
        let recorder = EventRecorder()
        try await withHTTPTestServer(answering: "hello") { origin in
            try await withSession { session in
                let task = session.dataTask(from: origin.url())
                recorder.follow(task)
                task.resume()
                try await expect({ try await task.value.count }, 5)
                try await recorder.wait(for: .completed, of: task.id)
                #expect("\(recorder)".hasSuffix(": responded received metrics completed, 200, 5 bytes"))
                #expect(recorder.load(task.id)?.received == 5 && recorder.load(0) == nil)
            }
        }
        let forger = EventRecorder()
        final class Forger: LoadObserver {
            let forger: EventRecorder
            init(_ forger: EventRecorder) { self.forger = forger }
            func observe(_ event: LoadEvent, of load: LoadIdentity) {
                forger.observe(event, of: load)
                forger.observe(event, of: load)
            }
        }
        var configuration = Configuration.ephemeral
        configuration.observers = [Forger(forger)]
        await expectFailure(.unsupportedScheme) { try await Session(configuration).data(from: try url("nothing:x")) }
        #expect(forger.loads.map(\.isLegal) == [false] && "\(forger)".contains("completed !completed"))
    }
}
