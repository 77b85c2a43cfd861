// SPDX-License-Identifier: Apache-2.0

// The program of script/costs. `serve` is its server, so that the server's work is not counted; `run` performs the
// loads of one scenario and prints what one of them cost. Loads run one after the other on the event loop's executor,
// which makes the figures repeatable.

import URLLoadingCCosts
import Foundation
import URLLoading
import URLLoadingCompatibility
import URLLoadingTesting
import URLLoadingWire

@main
enum CostProgram {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.count == 2, arguments[0] == "serve" { return try await serve(arguments[1]) }
        guard arguments.count == 5, arguments[0] == "run", let scenario = CostScenario(rawValue: arguments[1]),
            let count = Int(arguments[2])
        else { throw CostFailure(words: "serve FILE | run SCENARIO COUNT PORTS FILE") }
        let server = CostServer(ports: arguments[3].split(separator: ",").map(String.init), authority: arguments[4])
        // The classic layer has threads of its own, and the default pool is a scenario.
        if scenario == .classic || scenario == .pool {
            try await run(scenario, count, server)
        } else {
            try await withTaskExecutorPreference(eventLoopExecutor) { try await run(scenario, count, server) }
        }
    }

    /// Serves until its input ends. Prints the ports: plain, TLS, HTTP/2 over TLS, TLS without session tickets.
    private static func serve(_ authorityFile: String) async throws {
        let authority = try TestCertificateAuthority(commonName: "Costs")
        try Data(authority.pem).write(to: URL(filePath: authorityFile))
        let identity = try authority.issue(.init(addresses: [[127, 0, 0, 1]]))
        var setting = HTTPTestServer.Configuration()
        setting.recordedRequests = 0
        let plain = try HTTPTestServer(setting)
        setting.tls = .init(identity)
        let secure = try HTTPTestServer(setting)
        setting.tls?.issuesSessionTickets = false
        let full = try HTTPTestServer(setting)
        let shared = try HTTP2TestServer(.init(identity))
        let small = [UInt8](repeating: 0x61, count: 1024)
        for server in [plain, secure, full] {
            server.route("/1k") { _ in try await late(small) }
            server.route("/stored") { _ in .ok(.bytes(small), headers: [.cacheControl: "max-age=600"]) }
            server.route("/16m") { _ in .ok(.repeated(count: 16 << 20)) }
            server.route("/sink") { _ in .ok("") }
            server.route("/held", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            server.route("/count") { [weak server] _ in .ok("\(server?.counts.stalled ?? 0)") }
            server.start()
        }
        shared.route("/1k") { _ in try await late(small) }
        shared.start()
        let ports = [plain.port, secure.port, shared.port, full.port].map { "\($0)" }
        // Not print, whose output would wait in a buffer.
        try FileHandle.standardOutput.write(contentsOf: Data((ports.joined(separator: ",") + "\n").utf8))
        while readLine() != nil {}
    }

    /// Answers when the client waits: whether a quick response comes before the client asks for it is the scheduler's
    /// choice, and a wait has costs of its own.
    private static func late(_ body: [UInt8]) async throws -> HTTPTestServer.Response {
        try await Task.sleep(for: .microseconds(500))
        return .ok(.bytes(body))
    }

    private static func run(_ scenario: CostScenario, _ count: Int, _ server: CostServer) async throws {
        let loads = try CostLoads(scenario, server)
        if let places = scenario.places { return print(try await loads.held(count, places: places, server)) }
        // Connects, fills the cache, and brings the allocator's and the runtime's own lists to their sizes.
        for _ in 0..<scenario.warm { try await loads.load() }
        let (allocations, bytes) = (cost_allocations(), cost_bytes())
        for _ in 0..<count { try await loads.load() }
        let used = (cost_allocations() - allocations, cost_bytes() - bytes)
        print(Double(used.0) / Double(count), Double(used.1) / Double(count))
        await loads.end()
    }
}

struct CostFailure: Error { let words: String }

struct CostServer {
    let ports: [String]
    let authority: String

    enum Kind: Int { case plain, secure, shared, full }

    func url(_ path: String, _ kind: Kind = .plain) throws -> URL {
        let scheme = kind == .plain ? "http" : "https"
        guard ports.count > kind.rawValue, let url = URL(string: "\(scheme)://127.0.0.1:\(ports[kind.rawValue])\(path)")
        else { throw CostFailure(words: path) }
        return url
    }
}

enum CostScenario: String {
    /// A GET of 1 KB on a kept connection; without cache and cookies unless its name says so.
    case get
    /// The same on the default pool.
    case pool
    /// The same with every default: cache, cookies, decompression.
    case defaults
    /// Each on a new connection.
    case connecting
    case tls, handshake, resumed, http2
    /// A cache hit in memory.
    case hit
    /// A data task of the classic layer.
    case classic
    /// A body of 16 MiB, discarded.
    case bulk
    case bulkTLS = "bulk-tls"
    /// 16 MiB sent, in pieces of 64 KiB.
    case upload
    /// Loads in flight, each on a new connection, whose server does not answer.
    case flight
    /// Loads that wait for one of four connections.
    case queued

    /// The connections of a scenario that measures the memory held by loads that wait; `nil` for others.
    var places: Int? {
        switch self {
        case .flight: 10_000
        case .queued: 4
        default: nil
        }
    }

    var warm: Int {
        switch self {
        case .bulk, .bulkTLS, .upload: 2
        case .handshake, .resumed: 10
        default: 100
        }
    }
}

/// The loads of one scenario.
final class CostLoads {
    private let session: Session
    private let classic: URLLoadingCompatibility.URLSession
    private let request: Request
    private let scenario: CostScenario

    init(_ scenario: CostScenario, _ server: CostServer) throws {
        self.scenario = scenario
        var configuration = Configuration.ephemeral
        configuration.networks.proxyPolicy = .none
        configuration.caching.usesMemoryStore = scenario == .defaults || scenario == .hit
        if let places = scenario.places { configuration.connections.maximumPerHost = places }
        if scenario != .defaults { configuration.cookies.storage = .none }
        configuration.tls.trustRoots = .file(URL(filePath: server.authority))
        switch scenario {
        case .connecting: configuration.connections.idleLifetime = .zero
        case .handshake, .resumed: configuration.connections.idleLifetime = .zero
        case .hit: configuration.caching.policy = .cacheElseLoad
        default: break
        }
        switch scenario {
        case .bulk: request = Request(url: try server.url("/16m"))
        case .bulkTLS: request = Request(url: try server.url("/16m", .secure))
        case .tls, .resumed: request = Request(url: try server.url("/1k", .secure))
        case .handshake: request = Request(url: try server.url("/1k", .full))
        case .http2: request = Request(url: try server.url("/1k", .shared))
        case .hit: request = Request(url: try server.url("/stored"))
        case .upload:
            request = Request(
                url: try server.url("/sink"), method: .put, body: .stream(length: 16 << 20) { CostPieces(left: 256) })
        case .flight, .queued: request = Request(url: try server.url("/held"))
        default: request = Request(url: try server.url("/1k"))
        }
        session = Session(configuration)
        let old = URLSessionConfiguration.ephemeral
        old.urlCache = nil
        old.httpCookieStorage = nil
        classic = URLLoadingCompatibility.URLSession(configuration: old)
    }

    func load() async throws {
        switch scenario {
        case .bulk, .bulkTLS:
            try await session.load(request) { _, body in for try await _ in body {} }
        case .classic: _ = try await classic.data(from: request.url)
        default:
            let (_, response) = try await session.data(for: request)
            guard response.http?.status == .ok else { throw CostFailure(words: "not a 200") }
        }
    }

    /// Returns the bytes that one of many waiting loads holds.
    func held(_ count: Int, places: Int, _ server: CostServer) async throws -> Double {
        let watcher = Session(.ephemeral)
        func reached(_ wanted: Int) async throws {
            while true {
                let (data, _) = try await watcher.data(from: try server.url("/count"))
                if String(decoding: data, as: UTF8.self) == "\(wanted)" { return }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        return try await withThrowingTaskGroup(of: Void.self) { [session, request] group in
            func begin(_ count: Int) {
                for _ in 0..<count { group.addTask { _ = try? await session.data(for: request) } }
            }
            // Fills the connections of a queue, and brings lists to their sizes.
            let first = min(places, count)
            begin(first)
            try await reached(first)
            let before = cost_held()
            begin(count)
            if places > count { try await reached(2 * count) }
            // Tasks begin in order on the executor's thread, so those above are waiting when this one runs.
            await Task.yield()
            let used = cost_held() - before
            group.cancelAll()
            return Double(used) / Double(count)
        }
    }

    func end() async {
        classic.invalidateAndCancel()
        session.invalidateAndCancel()
        await session.invalidated()
    }
}

private struct CostPieces: AsyncSequence, AsyncIteratorProtocol {
    static let piece = [UInt8](repeating: 0x61, count: 64 * 1024)
    var left: Int
    mutating func next() async -> [UInt8]? {
        guard left > 0 else { return nil }
        left -= 1
        return Self.piece
    }
    func makeAsyncIterator() -> CostPieces { self }
}
