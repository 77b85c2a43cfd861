// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

@testable import URLLoading
@testable import URLLoadingAgent

/// An agent in this process, which shares a journal in PostgreSQL.
struct FleetAgent: Sendable {
    let service: TransferService
    let journal: PostgresJournal
    let rig: AgentRig
    let lines: Lines
    private let token = StopToken()
    private let serving: Task<Void, Never>

    final class Lines: Sendable {
        private let all = Lock<[String]>([])
        func add(_ line: String) { all.withLock { $0.append(line) } }
        func count(_ part: String) -> Int { all.withLock { $0.count { $0.contains(part) } } }
    }

    /// - Parameter renewal: the nanoseconds between renewals of its claims.
    init(
        _ address: String, leaseTime: Int64 = 60_000, files: String? = nil, renewingEvery renewal: Int64 = 300_000_000
    ) async throws {
        let (rig, lines) = (AgentRig(), Lines())
        journal = try await PostgresJournal.open(address, leaseTime: leaseTime, settling: 0) { lines.add($0) }
        try PrivateFolder.make(rig.state)
        service = try TransferService(
            journal, folder: rig.state, files: files, renewingEvery: renewal
        ) { lines.add($0) }
        let listener = try LocalListener(path: rig.socket)
        let server = AgentServer(service, survival: "untilReboot", manner: "test") { _ in }
        serving = Task { [token] in await server.serve(listener, token) }
        (self.rig, self.lines) = (rig, lines)
        await service.start()
    }

    func stop() async {
        token.stop(.cancelled)
        await serving.value
        await service.stop()
    }

    /// Ends all leases now, as if their agents had not renewed them for 60 s.
    static func endLeases(_ address: String) async throws {
        let admin = try await PostgresConnection.open(address)
        for table in ["claim", "identifier"] {
            try await admin.run("UPDATE urlloading.\(table) SET lease = clock_timestamp() WHERE agent IS NOT NULL")
        }
        try await admin.run("UPDATE urlloading.agent SET lease = clock_timestamp()")
    }
}
