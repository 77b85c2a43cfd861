// SPDX-License-Identifier: Apache-2.0

// AsyncHTTPClient: its async API, with one task for each connection.

import AsyncHTTPClient
import BenchMeasure
import Foundation
import NIOCore
import NIOSSL
import Synchronization

let options = bench_parse(CommandLine.argc, CommandLine.unsafeArgv, "AsyncHTTPClient 1.37.0")
let scenario = String(cString: options.scenario)
if scenario == "handshake-resumed" { bench_unsupported() }  // it keeps no TLS session

var configuration = HTTPClient.Configuration()
configuration.httpVersion = ProcessInfo.processInfo.environment["BENCH_HTTP2"] == "1" ? .automatic : .http1Only
configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = options.connections
if let cafile = options.cafile {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.trustRoots = .file(String(cString: cafile))
    configuration.tlsConfiguration = tls
}
let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)

final class Countdown: Sendable {
    private let left: Atomic<Int>
    init(_ count: Int) { left = Atomic(count) }
    func next() -> Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }
}

/// Runs one phase: `requests` distributed over as many tasks as there are connections.
func run(_ url: String, _ requests: Int, _ connections: Int, discard: Bool) async throws -> Int64 {
    let countdown = Countdown(requests)
    return try await withThrowingTaskGroup(of: Int64.self) { group in
        for _ in 0..<connections {
            group.addTask {
                var bytes: Int64 = 0
                while countdown.next() {
                    let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(60))
                    guard response.status == .ok else { bench_fail("not a 200") }
                    bench_in_flight()
                    if discard {
                        for try await chunk in response.body { bytes += Int64(chunk.readableBytes) }
                    } else {
                        bytes += Int64(try await response.body.collect(upTo: 1 << 20).readableBytes)
                    }
                }
                return bytes
            }
        }
        return try await group.reduce(0, +)
    }
}

let discard = scenario == "bulk"
if options.warm > 0 {
    _ = try await run(String(cString: options.warm_url), options.warm, options.connections, discard: discard)
}
bench_start()
let bytes = try await run(String(cString: options.url), options.requests, options.connections, discard: discard)
bench_stop(options.requests, bytes)

func shutDown() async throws { try await client.shutdown() }
try await shutDown()
