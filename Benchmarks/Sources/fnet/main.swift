// SPDX-License-Identifier: Apache-2.0

// FoundationNetworking: data tasks with a completion handler, one chain of requests for each connection; large bodies
// go to a delegate that counts and discards them.

import BenchMeasure
import Foundation
import FoundationNetworking
import Synchronization

let options = bench_parse(CommandLine.argc, CommandLine.unsafeArgv, "FoundationNetworking")
let scenario = String(cString: options.scenario)
// It keeps no TLS session, and spins from about 1,100 requests at a time on.
guard ["get", "bulk", "handshake", "inflight", "start"].contains(scenario), getenv("BENCH_HTTP2") == nil,
    options.connections <= 1000
else { bench_unsupported() }
// There is no option for a CA file; the driver adds the test root to the bundle that is read.

let configuration = URLSessionConfiguration.ephemeral
configuration.httpMaximumConnectionsPerHost = options.connections
configuration.urlCache = nil
configuration.httpCookieStorage = nil
configuration.requestCachePolicy = .reloadIgnoringLocalCacheData

/// One phase: `requests` distributed over as many chains as there are connections.
final class Chains: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private struct State {
        var toBegin: Int
        var toFinish: Int
        var bytes: Int64 = 0
    }
    private let state: Mutex<State>
    private let url: URL
    private var session: URLSession
    private let usesDelegate: Bool
    private let done = DispatchSemaphore(value: 0)

    /// - Parameter session: the session; `nil` creates one with a delegate.
    init(_ session: URLSession?, _ url: URL, _ requests: Int) {
        self.session = session ?? .shared
        self.url = url
        usesDelegate = session == nil
        state = Mutex(State(toBegin: requests, toFinish: requests))
        super.init()
        if usesDelegate { self.session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil) }
    }

    func run(_ connections: Int) -> Int64 {
        for _ in 0..<connections { begin() }
        done.wait()
        return state.withLock(\.bytes)
    }

    private func begin() {
        let more = state.withLock { state in
            guard state.toBegin > 0 else { return false }
            state.toBegin -= 1
            return true
        }
        guard more else { return }
        guard !usesDelegate else { return session.dataTask(with: URLRequest(url: url)).resume() }
        session.dataTask(with: URLRequest(url: url)) { data, response, error in
            guard let data, (response as? HTTPURLResponse)?.statusCode == 200 else {
                bench_fail("\(error.map { "\($0)" } ?? "not a 200")")
            }
            bench_in_flight()
            self.state.withLock { $0.bytes += Int64(data.count) }
            self.finish()
        }.resume()
    }

    private func finish() {
        let last = state.withLock { state in
            state.toFinish -= 1
            return state.toFinish == 0
        }
        if last { done.signal() } else { begin() }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
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

/// Counts the received bytes and drops them.
final class Discard: NSObject, URLSessionDataDelegate {
    private let bytes = Mutex<Int64>(0)
    private let done = DispatchSemaphore(value: 0)

    func run(_ session: URLSession, _ url: URL) -> Int64 {
        bytes.withLock { $0 = 0 }
        session.dataTask(with: URLRequest(url: url)).resume()
        done.wait()
        return bytes.withLock { $0 }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        bytes.withLock { $0 += Int64(data.count) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { bench_fail("\(error)") }
        done.signal()
    }
}

let url = URL(string: String(cString: options.url))!
let warmURL = URL(string: String(cString: options.warm_url))!
var bytes: Int64 = 0
if scenario == "bulk" {
    let discard = Discard()
    let session = URLSession(configuration: configuration, delegate: discard, delegateQueue: nil)
    for _ in 0..<options.warm { _ = discard.run(session, warmURL) }
    bench_start()
    for _ in 0..<options.requests { bytes += discard.run(session, url) }
} else {
    // With a delegate, the warm-up uses another session: one additional connection in thousands of requests.
    let session = getenv("FNET_DELEGATE") == nil ? URLSession(configuration: configuration) : nil
    if options.warm > 0 { _ = Chains(session, warmURL, options.warm).run(options.connections) }
    bench_start()
    bytes = Chains(session, url, options.requests).run(options.connections)
}
bench_stop(options.requests, bytes)
exit(0)
