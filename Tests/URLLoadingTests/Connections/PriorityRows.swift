// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// The priority of a load determines the order of waiters for connections.
@Suite(.timeLimit(.minutes(4)))
struct PriorityRows {
    enum Kind: CaseIterable { case verb, task, handler }

    struct Forwarding: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            try await client.next.load(request)
        }
    }

    @Test(
        "loads wait by the priority of their task, and in order of arrival within a priority", arguments: Kind.allCases)
    func order(_ kind: Kind) async throws {
        try await withHTTPTestServer { origin in
            let latch = Latch()
            origin.route("/*") { _ in
                await latch.wait()
                return .ok("x")
            }
            var configuration = Configuration.ephemeral
            configuration.connections.maximumPerHost = 1
            if kind == .handler { configuration.handlers = [Forwarding()] }
            let session = Session(configuration)
            let priorities: [TaskPriority] = [.high, .low, .background, .medium, .high, .low]
            var loads: [Task<Void, any Error>] = []
            for (index, priority) in priorities.enumerated() {
                let url = origin.url("/\(index)")
                // The first load has the only connection.
                loads.append(
                    Task(priority: kind == .task ? .background : priority) {
                        guard kind == .task else {
                            _ = try await session.data(from: url)
                            return
                        }
                        let task = session.dataTask(from: url)
                        task.resume(priority: priority)
                        _ = try await task.response
                    })
                if index == 0 {
                    try await origin.wait { $0.requests == 1 }
                } else {
                    try await session.eventuallyConnections {
                        $0.contains("\(index) waiting")
                    }
                }
            }
            latch.open()
            for load in loads { try await load.value }
            #expect(origin.requests.map(\.path) == ["/0", "/4", "/3", "/1", "/5", "/2"])
            await expectEmpty(session)
        }
    }
}
