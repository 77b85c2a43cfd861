// SPDX-License-Identifier: Apache-2.0

// Programs that leave while loads run: by exit(0), by returning from main, or after they have released everything.

import Foundation
import Synchronization
import URLLoading
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingWire

/// What is in flight when the program leaves.
enum ExitKind: String, CaseIterable, Sendable {
    case classicHTTPS = "classic-https"
    case classicHTTP = "classic-http"
    case modernHTTPS = "modern-https"
    case modernHTTP = "modern-http"
    case http2, websocket
    case classicWebSocket = "classic-websocket"
    case download, upload, ftp
    /// With a cache, and with cookies, on the disk.
    case cache, cookies
    case stream, synchronous
}

/// One program that starts loads and leaves.
enum ExitRun {
    static func run(_ arguments: AbuseArguments) throws {
        guard let kind = arguments.kinds.first, let servers = arguments.servers, let authority = arguments.authority
        else { throw AbuseFailure("an exit needs --kind, --servers and --authority") }
        var held: [any Sendable] = []
        for _ in 0..<arguments.count { held += try start(kind, servers, authority) }
        usleep(UInt32(arguments.after))
        switch arguments.way {
        case "exit": exit(0)
        case "deinit": held = []
        case "return": withExtendedLifetime(held) {}
        default: throw AbuseFailure("\(arguments.way) is no way to leave")
        }
    }

    /// Starts one load; returns what the program holds.
    private static func start(
        _ kind: ExitKind, _ servers: ServerAddresses, _ authority: String
    ) throws -> [any Sendable] {
        var configuration = Configuration.ephemeral
        configuration.networks.proxyPolicy = .none
        configuration.tls.trustRoots = .file(URL(filePath: authority))
        let folder = FileManager.default.temporaryDirectory
        switch kind {
        case .classicHTTPS: return classic(servers.url("/small", .tls))
        case .classicHTTP: return classic(servers.url("/medium"))
        case .modernHTTPS: return modern(configuration, servers.url("/small", .tls))
        case .modernHTTP: return modern(configuration, servers.url("/medium"))
        case .http2: return modern(configuration, servers.url("/medium", .h2))
        case .ftp: return modern(configuration, servers.url("/large.bin", .ftp))
        case .cache:
            configuration.caching.store = ResponseCache(directory: folder.appending(path: "cache"))
            return modern(configuration, servers.url("/cached", .tls))
        case .cookies:
            configuration.cookies.storage = .store(CookieStore(directory: folder.appending(path: "cookies")))
            return modern(configuration, servers.url("/cookie", .tls))
        case .download:
            let session = Session(configuration)
            let task = session.downloadTask(
                Request(url: servers.url("/large", .tls)),
                options: DownloadOptions(destination: folder.appending(path: "download"), synchronizes: true))
            task.resume()
            return [session, task]
        case .upload:
            let session = Session(configuration)
            let task = session.uploadTask(
                Request(url: servers.url("/sink", .tls), method: .post),
                from: .stream { Pieces(count: 1_000, size: 10_000, fault: .none) })
            task.resume()
            return [session, task]
        case .websocket:
            let session = Session(configuration)
            let socket = session.webSocketTask(servers.url("/echo", .tls))
            socket.resume()
            Task {
                for _ in 0..<1_000 {
                    try await socket.send(.text("hello"))
                    _ = try await socket.receive()
                }
            }
            return [session, socket]
        case .classicWebSocket:
            let task = URLSession.shared.webSocketTask(with: servers.url("/echo", .tls))
            task.resume()
            task.send(.string("hello")) { _ in }
            task.receive { _ in }
            return [task]
        case .stream:
            let session = Session(configuration)
            let task = session.streamTask(host: "127.0.0.1", port: Int(servers.port(.tls)), secure: true)
            task.resume()
            Task {
                try await task.write(Data("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                for try await _ in task.input {}
            }
            return [session, task]
        case .synchronous:
            let url = servers.url("/small", .tls)
            Thread {
                while true { _ = try? NSURLConnection.sendSynchronousRequest(URLRequest(url: url), returning: nil) }
            }.start()
            return []
        }
    }

    private static func classic(_ url: URL) -> [any Sendable] {
        let task = URLSession.shared.dataTask(with: url) { _, _, _ in
            URLSession.shared.dataTask(with: url) { _, _, _ in }.resume()
        }
        task.resume()
        return [task]
    }

    private static func modern(_ configuration: Configuration, _ url: URL) -> [any Sendable] {
        let session = Session(configuration)
        let task = Task { for _ in 0..<100 { _ = try? await session.data(from: url) } }
        return [session, task]
    }
}

/// Runs each kind of exit many times, at random moments.
final class ExitDriver: Sendable {
    private struct Count: Sendable {
        var runs = 0
        var signals: [Int32: Int] = [:]
        var others = 0
        var first: String?
    }
    private final class Tally: Sendable {
        let count = Lock(Count())
        private let number = Lock(0)

        func next() -> Int {
            number.withLock { number in
                defer { number += 1 }
                return number
            }
        }
    }
    private let arguments: AbuseArguments
    private let seed: UInt64
    private let home: AbuseHome

    init(_ arguments: AbuseArguments) throws {
        self.arguments = arguments
        seed = arguments.seed ?? UInt64.random(in: 0..<1_000_000)
        home = try AbuseHome(seed: seed)
    }

    func run() async throws -> Int32 {
        home.servers.start()
        say("exits: seed \(seed), \(arguments.runs) runs of each kind")
        let kinds = arguments.kinds.isEmpty ? ExitKind.allCases : arguments.kinds
        var died = 0
        for kind in kinds {
            let count = await runAll(kind)
            let bad = count.signals.values.reduce(0, +) + count.others
            died += bad
            let signals = count.signals.sorted { $0.key < $1.key }.map { ", signal \($0.key) in \($0.value)" }.joined()
            say("\(kind.rawValue): \(count.runs) runs, \(bad) died\(signals), otherwise \(count.others)")
            if let first = count.first { say("  the first one: \(first)") }
        }
        say("exits: \(kinds.count * arguments.runs) runs, \(died) died, seed \(seed)")
        home.remove()
        return died == 0 ? 0 : 1
    }

    private func runAll(_ kind: ExitKind) async -> Count {
        let tally = Tally()
        let runs = arguments.runs
        await withDiscardingTaskGroup { group in
            for _ in 0..<2 {
                group.addTask { [self] in
                    while true {
                        let number = tally.next()
                        guard number < runs else { return }
                        await runOne(kind, number, tally)
                    }
                }
            }
        }
        return tally.count.withLock { $0 }
    }

    private func runOne(_ kind: ExitKind, _ number: Int, _ tally: Tally) async {
        var dice = Dice(seed: seed &+ UInt64(number) << 8 ^ UInt64(kind.rawValue.utf8.first ?? 0))
        let words = [
            "exit", "--kind", kind.rawValue, "--after", "\(dice.number(0..<30_000))", "--way",
            dice.pick(["exit", "return", "deinit"]), "--count", dice.chance(30) ? "20" : "1",
        ]
        let folder = home.newFolder("exit-\(kind.rawValue)-\(number)")
        let ending = await home.run(
            [], words, folder: folder, files: .init(input: "/dev/null", output: "/dev/null", errors: "/dev/null"),
            limit: .seconds(30), environment: ["SWIFT_BACKTRACE": "enable=no"])
        try? FileManager.default.removeItem(at: folder)
        tally.count.withLock { count in
            count.runs += 1
            switch ending {
            case .code(0): return
            case .signal(let number): count.signals[number, default: 0] += 1
            default: count.others += 1
            }
            if count.first == nil { count.first = "\(words.joined(separator: " ")): \(ending)" }
        }
    }
}
