// SPDX-License-Identifier: Apache-2.0

// URLLoading: its async functions, one task for each connection. OURS_EXECUTOR=1 runs the same code on the executor of
// the event loop, entered once. OURS_SHAPE selects another API.
// BENCH_HTTP2=1 uses HTTP/2: one connection, with as many streams as there would be connections. OURS_HTTP1 restricts
// to HTTP/1.1, BENCH_HTTP3 uses HTTP/3, OURS_DECIDES calls a decision about each server, BENCH_BUNDLE loads the
// system's roots as well, OURS_PROXY uses the proxy BENCH_PROXY.

import BenchMeasure
import FoundationEssentials
import Glibc
import Synchronization
import URLLoading

@main
struct Ours {
    let session: Session
    let connections: Int
    let isPaced: Bool
    let kind: Kind
    let shape: Shape
    let caching: Caching?
    let cache: ResponseCache?

    /// The cache case that is measured.
    enum Caching: String {
        /// The response is stored in memory or on disk.
        case hit
        case diskHit = "disk-hit"
        /// The lookup fails, and the response may not be stored.
        case miss
        /// The lookup fails, and the response is stored under a key of its own. The same URLs without a cache are
        /// `each`.
        case store
        case diskStore = "disk-store"
        case each

        var isOnDisk: Bool { self == .diskHit || self == .diskStore }
        var hits: Bool { self == .hit || self == .diskHit }

        func cache(_ folder: URL?) -> ResponseCache? {
            if self == .each { return nil }
            // A memory cache would answer in place of the disk, and store each response a second time.
            return ResponseCache(
                memoryCapacity: folder == nil ? 16 << 20 : 0, diskCapacity: 256 << 20, directory: folder)
        }
    }

    static func folder() -> URL {
        FileManager.default.temporaryDirectory.appending(path: "ours-cache-\(getpid())", directoryHint: .isDirectory)
    }

    enum Kind: String {
        case bulk
        case uploadFile = "upload-file"
        case uploadMemory = "upload-memory"
        case download
        /// A large body, with small responses beside it.
        case beside
        /// Small responses of which some fail; see script/soak.
        case soak
        /// All other scenarios: a small response.
        case get
    }

    /// The API used for a request, in the scenarios that compare APIs.
    enum Shape: String {
        case verb
        /// The async function, followed by an awaited empty task: the cost of one hop.
        case hop
        /// A handle that is resumed and awaited.
        case task
        /// A handle whose events are iterated.
        case events
        /// A handle whose body is iterated.
        case body
        /// The async function with a decision about the response.
        case decision
        /// The async function in a session with an observer.
        case observer
        /// The async function in a session with 3,000 cookies of 500 servers, six of which are sent with each request.
        case cookies
        /// The async function in a session as it is by default: with a cache in memory and cookies.
        case defaults
        /// See `Sockets`.
        case echo, messages, rest
    }

    static func main() async throws {
        let options = bench_parse(CommandLine.argc, CommandLine.unsafeArgv, "URLLoading")
        let url = String(cString: options.url)
        let warmURL = String(cString: options.warm_url)
        let (requests, warm) = (options.requests, options.warm)

        var configuration = Configuration.ephemeral
        configuration.connections.maximumPerHost = options.places
        // As the other clients are set: the warm-up's connections stay.
        configuration.connections.maximumIdle = max(configuration.connections.maximumIdle, options.places)
        // No connection is kept for a second request.
        if getenv("BENCH_NEW") != nil { configuration.connections.maximumIdle = 0 }
        if String(cString: options.scenario) == "soak" { configuration.timeouts.idle = .milliseconds(250) }
        // The compared configurations have no cache.
        let caching = getenv("OURS_CACHE").flatMap { Caching(rawValue: String(cString: $0)) }
        let folder = caching?.isOnDisk == true ? Self.folder() : nil
        defer { folder.map { try? FileManager.default.removeItem(at: $0) } }
        configuration.caching.store = caching?.cache(folder)
        configuration.caching.usesMemoryStore = Self.variable("OURS_SHAPE") == "defaults"
        if caching?.hits == true { configuration.caching.policy = .cacheElseLoad }
        // The server of the HTTP/2 scenarios supports no other version; all requests share one connection.
        if Self.variable("BENCH_HTTP2") == "1", !url.hasPrefix("https:") {
            configuration.connections.httpVersions = .http2PriorKnowledge
        }
        if Self.variable("BENCH_HTTP3") == "1" { configuration.connections.httpVersions = .http3PriorKnowledge }
        if getenv("OURS_HTTP1") != nil { configuration.connections.httpVersions = .http1Only }
        if getenv("OURS_PROXY") != nil {
            configuration.networks.proxyPolicy = .fixed([try Proxy(Self.variable("BENCH_PROXY"))])
        }
        if let cafile = options.cafile {
            let path = String(cString: cafile)
            // Loads the system's roots as well, as `rawc` does.
            configuration.tls.trustRoots =
                getenv("BENCH_BUNDLE") == nil
                ? .file(URL(filePath: path)) : .systemAnd(pem: try String(contentsOfFile: path, encoding: .utf8))
        }
        var decisions: Decisions?
        if getenv("OURS_DECIDES") != nil {
            decisions = Decisions()
            decisions?.challenge = Decision { challenge in
                challenge.serverTrust.map { .accept($0) } ?? .performDefaultHandling
            }
        }
        let shape = getenv("OURS_SHAPE").flatMap { Shape(rawValue: String(cString: $0)) } ?? .verb
        if shape == .observer { configuration.observers = [LoadStatistics()] }
        if shape == .cookies {
            configuration.cookies.storage = .store(Self.cookies(of: URL(string: url)?.host() ?? ""))
        }
        let ours = Ours(
            session: Session(configuration, decisions: decisions), connections: options.connections,
            isPaced: options.rate > 0, kind: Kind(rawValue: String(cString: options.scenario)) ?? .get, shape: shape,
            caching: caching,
            cache: configuration.caching.store)

        if getenv("OURS_EXECUTOR") != nil {
            try await withTaskExecutorPreference(URLLoading.eventLoopExecutor) {
                try await ours.measure(url, requests, warmURL, warm)
            }
        } else {
            try await ours.measure(url, requests, warmURL, warm)
        }
        ours.session.invalidateAndCancel()
        await ours.session.invalidated()
    }

    func measure(_ url: String, _ requests: Int, _ warmURL: String, _ warm: Int) async throws {
        if kind == .soak { return await soak(url, requests) }
        if [.echo, .messages, .rest].contains(shape) { return try await converse(url, requests, warm) }
        if warm > 0 { _ = try await run(warmURL, warm, from: 1 << 30, isPaced: false) }
        // Responses stored during the warm-up may not be written to the disk yet, and would be found in memory.
        if caching?.isOnDisk == true { await Task.detached { [cache] in cache?.flush() }.value }
        bench_start()
        let bytes =
            kind == .beside ? try await transferBeside(url) : try await run(url, requests, isPaced: isPaced)
        // Writes that are still pending are part of the measurement.
        if caching == .diskStore { await Task.detached { [cache] in cache?.flush() }.value }
        bench_stop(requests, bytes)
    }

    /// Runs one phase: `requests` distributed over as many tasks as there are connections.
    func run(_ url: String, _ requests: Int, from base: Int = 0, isPaced: Bool) async throws -> Int64 {
        let countdown = Countdown(requests)
        let request = request(url)
        return try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<min(connections, requests) {
                group.addTask {
                    var bytes: Int64 = 0
                    while let number = countdown.next() {
                        let began = isPaced ? await Self.begin(requests - 1 - number) : 0
                        bytes += try await load(numbered(request, base + number))
                        if isPaced { bench_latency(bench_now() - began) }
                    }
                    return bytes
                }
            }
            return try await group.reduce(0, +)
        }
    }

    /// Waits until a request of `paced` is due. Returns the moment from which its latency counts.
    static func begin(_ number: Int) async -> Int64 {
        let due = bench_due(number)
        let left = due - bench_now()
        if left > 0 { try? await Task.sleep(nanoseconds: UInt64(left)) }
        return bench_begin(due, left > 0 ? 0 : 1)
    }

    /// Discards one large body, or by OURS_BESIDE=handshakes makes 1,600 connections, 16 at a time; until that ends,
    /// small responses are loaded one after the other.
    func transferBeside(_ url: String) async throws -> Int64 {
        let small = Request(url: URL(string: Self.variable("BENCH_BESIDE_URL"))!)
        let isOver = Flag()
        async let loads: Void = {
            while !isOver.value.load(ordering: .relaxed) {
                let began = bench_now()
                _ = try await session.data(for: small)
                bench_latency(bench_now() - began)
            }
        }()
        let bytes =
            getenv("OURS_BESIDE") == nil
            ? try await discard(Request(url: URL(string: url)!)) : try await handshakes(Request(url: URL(string: url)!))
        isOver.value.store(true, ordering: .relaxed)
        try await loads
        return bytes
    }

    /// The server closes each connection after its answer.
    func handshakes(_ request: Request) async throws -> Int64 {
        let countdown = Countdown(1_600)
        return try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    var bytes: Int64 = 0
                    while countdown.next() != nil { bytes += try await load(request) }
                    return bytes
                }
            }
            return try await group.reduce(0, +)
        }
    }

    /// Returns the request with a cache key of its own if every response is to be stored.
    func numbered(_ request: Request, _ number: Int) -> Request {
        switch caching {
        case .store, .diskStore, .each: Request(url: URL(string: "\(request.url.absoluteString)?\(number)")!)
        case .hit, .diskHit: Self.keys.isEmpty ? request : Self.keys[number % Self.keys.count]
        case .miss, nil: request
        }
    }

    /// OURS_KEYS: the hits are spread over that many stored responses, which the warm-up must have stored.
    static let keys: [Request] = {
        let count = Int(variable("OURS_KEYS")) ?? 0
        return (0..<count).map { Request(url: URL(string: "\(variable("OURS_KEYS_URL"))?\($0)")!) }
    }()

    func request(_ url: String) -> Request {
        let url = URL(string: caching.map { url + ($0 == .miss ? "/private" : "/public") } ?? url)!
        switch kind {
        case .get, .bulk, .beside, .download, .soak: return Request(url: url)
        case .uploadFile:
            return Request(url: url, method: .put, body: .file(URL(filePath: Self.variable("BENCH_SOURCE"))))
        case .uploadMemory:
            return Request(
                url: url, method: .put, body: .stream(length: Int64(Self.length)) { Pieces(left: Self.length) })
        }
    }

    static func cookies(of host: String) -> CookieStore {
        let store = CookieStore()
        for domain in [host] + (1..<500).map({ "www.server-\($0).example" }) {
            for index in 0..<6 {
                let cookie = Cookie(
                    name: "name\(index)", value: "0123456789abcdef\(index)", domain: domain, expires: .now + 86400)
                if let cookie { store.set(cookie) }
            }
        }
        return store
    }

    static let length = Int(variable("BENCH_LENGTH")) ?? 0
    static let piece = [UInt8](repeating: 0, count: Int(variable("BENCH_PIECE")) ?? 64 * 1024)

    static func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }

    func load(_ request: Request) async throws -> Int64 {
        switch kind {
        case .get, .soak: try await get(request)
        case .bulk, .beside: try await discard(request)
        case .uploadFile, .uploadMemory: try await upload(request)
        case .download: try await download(request)
        }
    }

    func upload(_ request: Request) async throws -> Int64 {
        _ = try await get(request)
        return Int64(Self.length)
    }

    func download(_ request: Request) async throws -> Int64 {
        let target = Self.variable("BENCH_TARGET")
        let response = try await session.download(request, to: URL(filePath: target))
        guard response.http?.status.code == 200, unlink(target) == 0 else { bench_fail("no file") }
        return response.expectedLength ?? 0
    }

    func get(_ request: Request) async throws -> Int64 {
        shape == .verb ? try await plain(request) : try await shapedGet(request)
    }

    // Functions of their own: a load of the plain call shall not hold the frames of the other shapes.
    @inline(never)
    private func plain(_ request: Request) async throws -> Int64 { Self.check(try await session.data(for: request)) }

    @inline(never)
    private func shapedGet(_ request: Request) async throws -> Int64 { Self.check(try await shaped(request)) }

    @inline(never)
    private static func check(_ result: (data: Data, response: Response)) -> Int64 {
        guard result.response.http?.status.code == 200 else { bench_fail("not a 200") }
        bench_in_flight()
        return Int64(result.data.count)
    }

    @inline(never)
    func shaped(_ request: Request) async throws -> (Data, Response) {
        switch shape {
        case .verb, .observer, .cookies, .defaults, .echo, .messages, .rest: return try await session.data(for: request)
        case .hop:
            await Task {}.value
            return try await session.data(for: request)
        case .decision: return try await session.data(for: request, decisions: Self.allowing)
        case .task:
            let task = session.dataTask(request)
            task.resume()
            return (try await task.value, try await task.response)
        case .events:
            let task = session.dataTask(request)
            let events = task.events
            task.resume()
            for await _ in events {}
            return (try await task.value, try await task.response)
        case .body:
            let task = session.dataTask(request)
            task.resume()
            return (try await task.body.collect(upTo: 1 << 20), try await task.response)
        }
    }

    static let allowing: Decisions = {
        var decisions = Decisions()
        decisions.response = Decision { _ in .allow }
        return decisions
    }()

    func discard(_ request: Request) async throws -> Int64 {
        try await session.load(request) { response, body in
            guard response.http?.status.code == 200 else { bench_fail("not a 200") }
            var bytes: Int64 = 0
            for try await chunk in body { bytes += Int64(chunk.count) }
            return bytes
        }
    }
}

struct Pieces: AsyncSequence, AsyncIteratorProtocol {
    /// The number of bytes.
    var left: Int
    mutating func next() async -> [UInt8]? {
        guard left > 0 else { return nil }
        let count = Swift.min(left, Ours.piece.count)
        left -= count
        return count == Ours.piece.count ? Ours.piece : Array(Ours.piece[..<count])
    }
    func makeAsyncIterator() -> Pieces { self }
}

final class Flag: Sendable { let value = Atomic(false) }

final class Countdown: Sendable {
    private let left: Atomic<Int>
    init(_ count: Int) { left = Atomic(count) }
    func next() -> Int? {
        let number = left.subtract(1, ordering: .relaxed).newValue
        return number >= 0 ? number : nil
    }
}
