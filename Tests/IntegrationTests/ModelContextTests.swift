// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport

/// The client of docs/guides/models.md, with a server of the Python library mcp.
@Suite(
    .enabled(if: Servers.areHere, Servers.areMissing),
    .enabled(if: Servers.variable("MCP") != nil, "mcp is not installed: script/setup --tests"),
    .timeLimit(.minutes(4)))
struct ModelContextTests {
    private struct Tool<Arguments: Encodable & Sendable>: Encodable, Sendable {
        struct Meta: Encodable { var progressToken = "p" }
        let name: String, arguments: Arguments, _meta = Meta()
    }
    private struct Result<Value: Decodable & Sendable>: Decodable, Sendable {
        struct Content: Decodable { let result: Value }
        let structuredContent: Content
    }
    private struct Progress: Decodable {
        struct Parameters: Decodable { let progress: Double }
        let method: String, params: Parameters
    }

    /// An open session with the server, and what it has sent besides its answers.
    private struct Rig: Sendable {
        let client: ModelContextClient
        let received = Watched<[Data]>([])
        let answered = Watched<[URLLoading.Method]>([])

        init(_ path: String) async throws {
            var configuration = Servers.configuration
            configuration.observers = [Answers(methods: answered)]
            client = ModelContextClient(Session(configuration), try Servers.url("MCP", path)) { [received] message in
                received.change { $0.append(message) }
            }
            try await client.open(as: "tests")
        }

        func use<Value: Decodable & Sendable>(
            _ name: String, _ arguments: some Encodable & Sendable
        ) async throws -> Value {
            let result: Result<Value> = try await client.call("tools/call", Tool(name: name, arguments: arguments))
            return result.structuredContent.result
        }

        var progress: [Double] {
            received.value.compactMap { try? JSONDecoder().decode(Progress.self, from: $0).params.progress }
        }
    }

    private struct Answers: LoadObserver {
        let methods: Watched<[URLLoading.Method]>
        func observe(_ event: LoadEvent, of load: LoadIdentity) {
            if case .responded = event { methods.change { $0.append(load.request.method) } }
        }
    }

    @Test(
        "a call is answered with JSON or with events, within the session that the server has named",
        arguments: ["/json/", "/events/1/"])
    func calls(_ path: String) async throws {
        let rig = try await Rig(path)
        #expect(try await rig.use("add", ["a": 1, "b": 2]) == 3)
        await #expect(throws: ModelContextClient.Refusal.self) {
            let _: [String: String] = try await rig.client.call("no/such/method", [String: String]())
        }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<20 { group.addTask { try await rig.use("add", ["a": number, "b": 1]) == number + 1 } }
            for try await isRight in group { #expect(isRight) }
        }
        try await rig.client.close()
        do {
            let _: Int = try await rig.use("add", ["a": 1, "b": 2])
            Issue.record("the session has ended")
        } catch let error as LoadError {
            #expect(error.response?.status == .notFound)
        }
        #expect(rig.received.value.isEmpty)
    }

    @Test("what the server reports during a call arrives before its answer")
    func progress() async throws {
        let rig = try await Rig("/events/2/")
        #expect(try await rig.use("count", ["to": 50]) == 50)
        #expect(rig.progress == (1...50).map(Double.init))
    }

    @Test("a call whose stream the server closes is continued by Last-Event-ID, without a loss or a repetition")
    func continued() async throws {
        let rig = try await Rig("/events/3/")
        #expect(try await rig.use("cut", ["to": 2]) == 2)
        #expect(rig.progress == [1, 2])
        #expect(rig.answered.value.filter { $0 == .get }.count >= 1)
    }

    @Test("cancelling the task that waits for an answer cancels the call on the server")
    func cancelled() async throws {
        let rig = try await Rig("/events/4/")
        let name = UUID().uuidString
        let call = Task { () throws -> String in try await rig.use("wait", ["name": name]) }
        try await rig.received.wait { $0.count == 1 }
        #expect(try await rig.use("waits", ["name": name]) == "waiting")
        call.cancel()
        await #expect { try await call.value } throws: { ($0 as? LoadError)?.reason == .cancelled }
        try await eventuallyProcess { try await rig.use("waits", ["name": name]) == "cancelled" }
    }

    @Test("what the server sends on its own arrives by a GET, which continues where the server has closed it")
    func listening() async throws {
        let rig = try await Rig("/events/5/")
        let listening = Task { try await rig.client.listen() }
        try await rig.answered.wait { $0.contains(.get) }
        #expect(try await rig.use("announce", ["times": 2]) == 2)
        try await rig.received.wait { $0.count == 2 }
        let words = rig.received.value.map { String(decoding: $0, as: UTF8.self) }
        #expect(words.allSatisfy { $0.contains("notifications/tools/list_changed") })
        listening.cancel()
        await #expect { try await listening.value } throws: { ($0 as? LoadError)?.reason == .cancelled }
    }

    // MARK: Without sessions

    private struct Arguments<Values: Encodable & Sendable>: Encodable, Sendable { let name: String, arguments: Values }

    private func stateless(_ path: String) throws -> StatelessContextClient {
        StatelessContextClient(
            session: Session(Servers.configuration), url: try Servers.url("MCP", path), program: "tests")
    }

    @Test(
        "without a session a call is one request, answered with JSON or with events",
        arguments: ["/json/", "/events/1/"])
    func single(_ path: String) async throws {
        let client = try stateless(path)
        let sum: Result<Int> = try await client.call(
            "tools/call", on: "add", Arguments(name: "add", arguments: ["a": 1, "b": 2]))
        #expect(sum.structuredContent.result == 3)
        await #expect(throws: StatelessContextClient.Refusal.self) {
            let _: [String: String] = try await client.call("no/such/method", [String: String]())
        }
        // The name is also in a header field, which the server compares with the body.
        await #expect(throws: StatelessContextClient.Refusal.self) {
            let _: Result<Int> = try await client.call(
                "tools/call", on: "ädd", Arguments(name: "add", arguments: ["a": 1, "b": 2]))
        }
        let received = Watched<[Data]>([])
        let last: Result<Int> = try await client.call(
            "tools/call", on: "count", Arguments(name: "count", arguments: ["to": 20])
        ) { message in received.change { $0.append(message) } }
        #expect(last.structuredContent.result == 20)
        let progress = received.value.compactMap { try? JSONDecoder().decode(Progress.self, from: $0).params.progress }
        #expect(progress == (path == "/json/" ? [] : (1...20).map(Double.init)))
    }

    @Test("without a session closing the stream cancels the call on the server")
    func closed() async throws {
        let client = try stateless("/events/4/")
        let (name, received) = (UUID().uuidString, Watched(0))
        let call = Task { () throws -> Result<String> in
            try await client.call("tools/call", on: "wait", Arguments(name: "wait", arguments: ["name": name])) { _ in
                received.add()
            }
        }
        try await received.wait { $0 == 1 }
        call.cancel()
        await #expect { try await call.value } throws: { ($0 as? LoadError)?.reason == .cancelled }
        try await eventuallyProcess {
            let state: Result<String> = try await client.call(
                "tools/call", on: "waits", Arguments(name: "waits", arguments: ["name": name]))
            return state.structuredContent.result == "cancelled"
        }
    }
}
