// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingWire

/// What the operations of a child share: servers, ledger and the sessions that live as long as the child.
final class World: Sendable {
    let servers: ServerAddresses
    let ledger: Ledger
    let folder: URL
    let file: URL
    let modern: [Session]
    let classic: [URLSession]
    /// The delegate of each classic session; `nil` for one without.
    let delegates: [AbuseDelegate?]
    let cache: URLCache
    let cookies = HTTPCookieStorage()
    private let authority: String
    private let proxy: Proxy?
    private let names = Atomic<Int>(0)

    /// Loads that no operation ends are ended by these timeouts.
    static let idle = 2
    static let resource = 4

    init(_ servers: ServerAddresses, authority: String, _ ledger: Ledger, folder: URL) throws {
        (self.servers, self.authority, self.ledger, self.folder) = (servers, authority, ledger, folder)
        file = folder.appending(path: "body.bin")
        try Data(repeating: 0x63, count: 50_000).write(to: file)
        cache = URLCache(
            memoryCapacity: 1 << 20, diskCapacity: 4 << 20, directory: folder.appending(path: "classic-cache"))
        proxy = try? Proxy(.http, host: "127.0.0.1", port: servers.port(.proxy))

        let plain = Self.configuration(authority)
        var disk = plain
        disk.caching.store = ResponseCache(
            memoryCapacity: 1 << 18, diskCapacity: 4 << 20, directory: folder.appending(path: "modern-cache"))
        disk.cookies.storage = .store(CookieStore(directory: folder.appending(path: "cookies")))
        var narrow = plain
        narrow.connections.maximumPerHost = 2
        narrow.caching.coalescesIdenticalRequests = true
        narrow.caching.store = ResponseCache()
        var observed = plain
        observed.observers = [BlockingObserver()]
        observed.readAhead = 1000
        observed.retries.policy = RetryPolicy()
        var handled = plain
        handled.handlers = [AbuseHandler()]
        var proxied = plain
        if let proxy { proxied.networks.proxyPolicy = .fixed([proxy]) }
        modern = [plain, plain, disk, narrow, observed, handled, proxied].map { Session($0) }

        let concurrent = OperationQueue()
        concurrent.maxConcurrentOperationCount = 8
        let serial = OperationQueue()
        serial.maxConcurrentOperationCount = 1
        let queues: [OperationQueue?] = [nil, concurrent, serial, .main, nil]
        var sessions: [URLSession] = []
        var delegates: [AbuseDelegate?] = []
        for (number, queue) in queues.enumerated() {
            let configuration = Self.classicConfiguration()
            if number % 2 == 0 {
                configuration.urlCache = cache
                configuration.httpCookieStorage = cookies
            }
            configuration.protocolClasses = [AbuseProtocol.self]
            let delegate = number == 4 ? nil : AbuseDelegate(ledger, seed: UInt64(number))
            sessions.append(URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue))
            delegates.append(delegate)
        }
        classic = sessions
        self.delegates = delegates
    }

    /// A new configuration, ephemeral.
    var configuration: Configuration { Self.configuration(authority) }

    private static func configuration(_ authority: String) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.networks.proxyPolicy = .none
        configuration.tls.trustRoots = .file(URL(filePath: authority))
        configuration.timeouts.idle = .seconds(idle)
        configuration.timeouts.resource = .seconds(resource)
        return configuration
    }

    static func classicConfiguration() -> URLSessionConfiguration {
        // The authority is trusted through SSL_CERT_FILE, which the driver sets.
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = TimeInterval(idle)
        configuration.timeoutIntervalForResource = TimeInterval(resource)
        configuration.connectionProxyDictionary = [:]
        return configuration
    }

    func session(_ dice: inout Dice) -> Session { dice.pick(modern) }

    /// A file name that was not used before.
    func newFile() -> URL { folder.appending(path: "file-\(names.add(1, ordering: .relaxed).newValue)") }

    /// The path of a load that ends soon by itself.
    func path(_ dice: inout Dice) -> String {
        dice.chance(60)
            ? "/small"
            : dice.pick([
                "/empty", "/gzip", "/not-gzip", "/chunked", "/cached", "/cached", "/cookie", "/hop", "/hops",
                "/missing",
                "/interim", "/login", "/slow", "/medium", "/file", "/loop", "/events", "/cut", "/reset", "/garbage",
            ])
    }

    /// The path of a load that must be ended, or ends late.
    func longPath(_ dice: inout Dice) -> String {
        dice.pick(["/stalled", "/stalled-body", "/endless", "/large", "/slow", "/loop", "/cached"])
    }

    func server(_ dice: inout Dice) -> ServerAddresses.Kind {
        switch dice.number(0..<100) {
        case 0..<45: .plain
        case 45..<65: .tls
        case 65..<85: .h2
        default: .faulty
        }
    }

    func url(_ dice: inout Dice) -> URL {
        let path = path(&dice)
        return servers.url(path, server(&dice))
    }

    /// A URL, and whether its load ends soon by itself.
    func anyURL(_ dice: inout Dice) -> (URL, isShort: Bool) {
        if dice.chance(90) { return (url(&dice), true) }
        let path = longPath(&dice)
        return (servers.url(path, server(&dice)), false)
    }

    /// Ends the sessions that live as long as the child. Each must say so.
    func end() async {
        for session in modern {
            let ticket = ledger.open("invalidated() of a modern session: \(session.connectionsDescription)")
            session.invalidateAndCancel()
            Task {
                await session.invalidated()
                ticket.close()
            }
        }
        for (session, delegate) in zip(classic, delegates) {
            delegate?.expectEnd(ledger.open("didBecomeInvalidWithError of \(session.delegateQueue.name ?? "a queue")"))
            if delegate != nil { session.finishTasksAndInvalidate() } else { session.invalidateAndCancel() }
        }
        await ledger.room(1)
    }
}

private struct BlockingObserver: LoadObserver {
    private static let calls = Atomic<UInt64>(0)

    func observe(_ event: LoadEvent, of load: LoadIdentity) {
        if Self.calls.add(1, ordering: .relaxed).newValue % 64 == 0 { usleep(500) }
    }
}

/// Answers some requests itself, changes others, fails, blocks, and forwards the rest.
private struct AbuseHandler: ProtocolHandler {
    func canHandle(_ request: Request) -> Bool { request.url.query() != nil || request.url.host() == "abuse.test" }

    func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
        let choice = Int(request.url.query() ?? "0") ?? 0
        let response = Response(
            url: request.url, mediaType: nil, expectedLength: nil,
            http: HTTPHead(status: .ok, version: .http11, headers: Headers()))
        switch choice % 10 {
        case 0: throw Thrown()
        case 1: return .response(response, data: Data("mine".utf8))
        case 2: return .response(response, body: Pieces(count: 5, size: 100, fault: .throwing))
        case 3: return .response(response, body: Pieces(count: 5, size: 100, fault: .slow))
        case 4:
            usleep(1000)
            return try await client.next.load(request)
        case 5:
            // A response that is dropped, then one that is given.
            _ = try await client.next.load(request)
            return try await client.next.load(request)
        case 6:
            // Ignores its cancellation for a while.
            await withUnsafeContinuation { continuation in later(20_000) { continuation.resume() } }
            return .response(response)
        case 7:
            try await Task.sleep(for: .seconds(60))
            return .response(response)
        case 8:
            let answer = try await client.next.load(request)
            for try await _ in answer.body { break }
            throw Thrown()
        default: return try await client.next.load(request)
        }
    }
}

/// A body in pieces, which can misbehave.
struct Pieces: AsyncSequence, Sendable {
    enum Fault: CaseIterable, Sendable { case none, throwing, blocking, slow, endless, never }
    let count: Int
    let size: Int
    let fault: Fault

    func makeAsyncIterator() -> Iterator { Iterator(left: count, pieces: self) }

    struct Iterator: AsyncIteratorProtocol {
        var left: Int
        let pieces: Pieces

        mutating func next() async throws -> [UInt8]? {
            switch pieces.fault {
            case .none: break
            case .throwing: if left == 1 { throw Thrown() }
            case .blocking: usleep(300)
            case .slow: try await Task.sleep(for: .microseconds(300))
            case .endless: left = 2
            case .never: if left == 1 { try await Task.sleep(for: .seconds(60)) }
            }
            guard left > 0 else { return nil }
            left -= 1
            return [UInt8](repeating: 0x64, count: pieces.size)
        }
    }
}
