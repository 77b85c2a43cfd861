// SPDX-License-Identifier: Apache-2.0

// The classic API: data tasks with a completion handler or a delegate, one chain of requests for each connection, or
// the async method (`async`; `async-subclass` of a subclass, whose result goes over the delegate queue). CLASSIC_SHAPE
// selects the API; CLASSIC_REMEMBERS enables cache and cookies, and every response is stored anew; `queuehop` awaits an
// async handle and an empty operation, `queuehop2` two.

import BenchMeasure
import Foundation
import Synchronization
import URLLoading
import URLLoadingCompatibility

@main
enum Classic {
    static func main() async throws {
        let options = bench_parse(CommandLine.argc, CommandLine.unsafeArgv, "URLLoading classic")
        guard String(cString: options.scenario) == "get", options.cafile == nil, getenv("BENCH_HTTP2") == nil,
            options.places == options.connections
        else { bench_unsupported() }
        let url = URL(string: String(cString: options.url))!
        let warmURL = URL(string: String(cString: options.warm_url))!
        let (requests, warm, connections) = (options.requests, options.warm, options.connections)
        let shape = ProcessInfo.processInfo.environment["CLASSIC_SHAPE"] ?? "handler"
        let run: @Sendable (URL, Int) async throws -> Int64
        switch shape {
        case "handler", "delegate", "async", "async-subclass":
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpMaximumConnectionsPerHost = connections
            // Configured as `fnet`, unless the cost of the default cache and cookies is measured as well.
            if ProcessInfo.processInfo.environment["CLASSIC_REMEMBERS"] == nil {
                configuration.urlCache = nil
                configuration.httpCookieStorage = nil
            } else {
                configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
            }
            if shape.hasPrefix("async") {
                let calls = Calls(configuration, isSubclass: shape == "async-subclass")
                run = { url, requests in try await calls.run(url, requests, connections) }
            } else {
                let chains = Chains(configuration, usesDelegate: shape == "delegate")
                run = { url, requests in await chains.run(url, requests, connections) }
            }
        default:
            let hops = Hops(connections, count: shape == "queuehop2" ? 2 : 1)
            run = { url, requests in try await hops.run(url, requests) }
        }
        if warm > 0 { _ = try await run(warmURL, warm) }
        bench_start()
        let bytes = try await run(url, requests)
        bench_stop(requests, bytes)
    }
}

/// Chains of requests: the end of a request begins the next one.
final class Chains: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private struct State {
        var toBegin = 0
        var toFinish = 0
        var bytes: Int64 = 0
        var done: CheckedContinuation<Int64, Never>?
        var request: URLRequest?
    }
    private let state = Mutex(State())
    private let usesDelegate: Bool
    private var session = URLSession.shared

    init(_ configuration: URLSessionConfiguration, usesDelegate: Bool) {
        self.usesDelegate = usesDelegate
        super.init()
        session = URLSession(configuration: configuration, delegate: usesDelegate ? self : nil, delegateQueue: nil)
    }

    func run(_ url: URL, _ requests: Int, _ connections: Int) async -> Int64 {
        await withCheckedContinuation { continuation in
            state.withLock {
                $0 = State(toBegin: requests, toFinish: requests, done: continuation, request: URLRequest(url: url))
            }
            for _ in 0..<connections { begin() }
        }
    }

    private func begin() {
        let request = state.withLock { state -> URLRequest? in
            guard state.toBegin > 0 else { return nil }
            state.toBegin -= 1
            return state.request
        }
        guard let request else { return }
        guard !usesDelegate else { return session.dataTask(with: request).resume() }
        session.dataTask(with: request) { data, response, error in
            guard let data, (response as? HTTPURLResponse)?.statusCode == 200 else {
                bench_fail("\(error.map { "\($0)" } ?? "not a 200")")
            }
            self.state.withLock { $0.bytes += Int64(data.count) }
            self.finish()
        }.resume()
    }

    private func finish() {
        let done = state.withLock { state -> (CheckedContinuation<Int64, Never>, Int64)? in
            state.toFinish -= 1
            return state.toFinish == 0 ? state.done.map { ($0, state.bytes) } : nil
        }
        if let done { done.0.resume(returning: done.1) } else { begin() }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { bench_fail("not a 200") }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        state.withLock { $0.bytes += Int64(data.count) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { bench_fail("\(error)") }
        finish()
    }
}

/// Async calls, one after another for each connection.
final class Calls: Sendable {
    private final class Subclass: URLSession, @unchecked Sendable {}
    private let session: URLSession
    private let left = Atomic<Int>(0)

    init(_ configuration: URLSessionConfiguration, isSubclass: Bool) {
        session = isSubclass ? Subclass(configuration: configuration) : URLSession(configuration: configuration)
    }

    func run(_ url: URL, _ requests: Int, _ connections: Int) async throws -> Int64 {
        left.store(requests, ordering: .relaxed)
        let request = URLRequest(url: url)
        return try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<connections {
                group.addTask { [self] in
                    var bytes: Int64 = 0
                    while left.subtract(1, ordering: .relaxed).newValue >= 0 {
                        let (data, response) = try await session.data(for: request)
                        guard (response as? HTTPURLResponse)?.statusCode == 200 else { bench_fail("not a 200") }
                        bytes += Int64(data.count)
                    }
                    return bytes
                }
            }
            return try await group.reduce(0, +)
        }
    }
}

/// Async handles, each followed by an awaited empty operation.
final class Hops: Sendable {
    private let session: Session
    private let connections: Int
    private let count: Int
    private let left = Atomic<Int>(0)
    private let queue: OperationQueue

    init(_ connections: Int, count: Int) {
        var configuration = Configuration.ephemeral
        configuration.caching.usesMemoryStore = false
        configuration.connections.maximumPerHost = connections
        (session, self.connections, self.count) = (Session(configuration), connections, count)
        queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
    }

    func run(_ url: URL, _ requests: Int) async throws -> Int64 {
        left.store(requests, ordering: .relaxed)
        let request = Request(url: url)
        return try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<connections {
                group.addTask { [self] in
                    var bytes: Int64 = 0
                    while left.subtract(1, ordering: .relaxed).newValue >= 0 {
                        let task = session.dataTask(request)
                        task.resume()
                        guard try await task.response.http?.status.code == 200 else { bench_fail("not a 200") }
                        bytes += Int64(try await task.value.count)
                        for _ in 0..<count {
                            await withUnsafeContinuation { continuation in queue.addOperation { continuation.resume() }
                            }
                        }
                    }
                    return bytes
                }
            }
            return try await group.reduce(0, +)
        }
    }
}
