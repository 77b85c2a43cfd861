// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// A folder with an agent's process, which the test kills and starts again.
final class AgentRig: Sendable {
    let folder: String
    private let agent = Lock<ChildProcess?>(nil)

    var socket: String { folder + "/agent.sock" }
    var state: String { folder + "/state" }
    var spool: [String] { PrivateFolder.names(state + "/spool") }
    var logText: String { (try? FileReader.text(folder + "/log")) ?? "" }

    /// The agent's executable, beside the test bundle.
    static let executable: String = {
        let here = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return here[..<(here.lastIndex(of: "/") ?? here.startIndex)] + "/url-loading-agent"
    }()

    init() {
        var template = Array("/tmp/urlagent-XXXXXX".utf8CString)
        folder = mkdtemp(&template).map { String(cString: $0) } ?? "/nowhere"
    }

    deinit {
        agent.withLock { $0 }?.send(SIGKILL)
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Starts the agent, optionally under another program such as strace.
    func start(under words: [String] = [], _ options: [String] = ["--foreground"]) throws {
        let all = words + [Self.executable, "--socket", socket, "--folder", state] + options
        // The output of each start is appended to that of the earlier ones.
        let line = all.map { "'\($0)'" }.joined(separator: " ")
        let child = try ChildProcess("/bin/sh", ["-c", "exec \(line) >>'\(folder)/log' 2>&1"])
        agent.withLock { $0 = child }
    }

    func kill(_ signal: Int32 = SIGKILL) async {
        let child = agent.withLock { agent in
            defer { agent = nil }
            return agent
        }
        child?.send(signal)
        _ = await child?.wait()
    }

    /// Waits until the agent exits by itself.
    func ended() async -> Int32 {
        let child = agent.withLock { $0 }
        let code = await child?.wait() ?? -1
        // A cancelled wait returns at once: the agent still runs, and `kill` must find it.
        guard !Task.isCancelled else { return code }
        agent.withLock { if $0 === child { $0 = nil } }
        return code
    }

    /// The agent's process, or that of the program under which it runs.
    var process: Int32 { agent.withLock { $0?.identifier ?? 0 } }
    var isRunning: Bool { agent.withLock { $0?.isRunning ?? false } }

    /// Connects as soon as the agent listens.
    func link() async throws -> AgentLink {
        while true {
            do { return try await AgentLink.open(socket) } catch {
                guard error.code == .unreachable, !Task.isCancelled else { throw error }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    /// Connects as the next program of an identifier, after the agent has noticed the end of the previous program.
    func attachAgain(_ change: (inout SessionSettings) -> Void = { _ in }) async throws -> AgentLink {
        for _ in 0..<2_000 {
            if let link = try? await attach("org.example.sync", change) { return link }
            try await Task.sleep(for: .milliseconds(5))
        }
        return try await attach("org.example.sync", change)
    }

    /// Connects as the program of an identifier.
    func attach(_ identifier: String = "org.example.sync", _ change: (inout SessionSettings) -> Void = { _ in })
        async throws -> AgentLink
    {
        let link = try await link()
        var settings = SessionSettings(Configuration.default)
        change(&settings)
        let answer = try await link.request(
            .attach(
                .init(
                    identifier: identifier, settings: TransferCoding.encode(settings),
                    secrets: TransferCoding.encode(SessionSecrets()))))
        #expect(answer == .done)
        return link
    }
}

extension AgentLink {
    @discardableResult
    func download(
        _ url: URL, id: String = "t1", to destination: String? = nil, _ change: (inout TransferOrder) -> Void = { _ in }
    ) async throws -> AgentMessage {
        let request = Request(url: url)
        var order = TransferOrder(.download, request, created: SystemTime.wall)
        order.destination = destination
        change(&order)
        return try await submit(id, order, TransferSecrets(request))
    }

    @discardableResult
    func upload(
        _ request: Request, id: String = "t1", from path: String, _ change: (inout TransferOrder) -> Void = { _ in }
    ) async throws -> AgentMessage {
        var order = TransferOrder(.upload, request, created: SystemTime.wall)
        (order.source, order.sourceStamp) = (path, SourceStamp(path: path))
        change(&order)
        return try await submit(id, order, TransferSecrets(request))
    }

    func submit(_ id: String, _ order: TransferOrder, _ secrets: TransferSecrets) async throws -> AgentMessage {
        try await request(
            .submit(
                .init(
                    transfer: id, order: TransferCoding.encode(order), secrets: TransferCoding.encode(secrets))))
    }

    func transfers() async throws -> [TransferRecord] {
        var records: [TransferRecord] = []
        var next: Int64? = 0
        while let after = next {
            guard case .page(let page) = try await request(.list(after: after)) else { return records }
            records += page.records.compactMap { TransferCoding.decode(TransferRecord.self, $0) }
            next = page.next
        }
        return records
    }

    /// Waits for a state of a transfer, or for its disappearance.
    func wait(_ id: String = "t1", until condition: (TransferRecord) -> Bool) async throws -> TransferRecord {
        while true {
            let record = try await transfers().first { $0.id == id }
            if let record, condition(record) { return record }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Returns the next event and the number to acknowledge it with.
    func nextEvent() async throws -> (sequence: Int64, record: TransferRecord) {
        for await message in announcements {
            if case .event(let event) = message {
                return (event.sequence, try #require(TransferCoding.decode(TransferRecord.self, event.record)))
            }
        }
        throw AgentFailure.lost
    }

    func acknowledge(_ sequence: Int64) async throws {
        #expect(try await request(.acknowledge(sequence: sequence)) == .done)
    }
}

extension SeededGenerator {
    /// A generator with a random seed, which is printed. `URLLOADING_SEED` repeats a run with its seed.
    static func printed(_ test: String) -> SeededGenerator {
        let given = ProcessInfo.processInfo.environment["URLLOADING_SEED"].flatMap { UInt64($0) }
        let seed = given ?? UInt64.random(in: 0...UInt64.max)
        print("\(test): URLLOADING_SEED=\(seed)")
        return SeededGenerator(seed: seed)
    }
}

/// The content that the test's server serves, from any offset.
enum Film {
    static let content = [UInt8]((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    static func answer(
        _ request: HTTPTestServer.RecordedRequest, _ etag: String = "\"one\"", content: [UInt8] = content
    ) -> HTTPTestServer.Response {
        var headers: Headers = [.contentType: "application/octet-stream", .etag: etag]
        guard let range = request.headers[.range], request.headers[.ifRange] == etag,
            let first = Int(range.dropFirst(6).dropLast())
        else { return .ok(.bytes(content), headers: headers) }
        headers[.contentRange] = "bytes \(first)-\(content.count - 1)/\(content.count)"
        return .status(.partialContent, headers: headers, body: .bytes(Array(content[first...])))
    }

    static func of(_ path: String) -> [UInt8]? { try? [UInt8](Data(contentsOf: URL(filePath: path))) }
}
