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
// It keeps no TLS session.
if ["handshake-resumed", "upload-file"].contains(scenario) { bench_unsupported() }
let isHTTP2 = getenv("BENCH_HTTP2") != nil
if isHTTP2, options.cafile == nil { bench_unsupported() }

var configuration = HTTPClient.Configuration()
configuration.httpVersion = isHTTP2 ? .automatic : .http1Only
configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = options.places
if let cafile = options.cafile {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.trustRoots = .file(String(cString: cafile))
    configuration.tlsConfiguration = tls
}
let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)

final class Countdown: Sendable {
    private let left: Atomic<Int>
    init(_ count: Int) { left = Atomic(count) }
    func next() -> Int? {
        let number = left.subtract(1, ordering: .relaxed).newValue
        return number >= 0 ? number : nil
    }
}

final class Flag: Sendable { let value = Atomic(false) }

func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }

/// What the scenario sends, receives and does with the response.
let isDiscarded = ["bulk", "beside"].contains(scenario)
let target = scenario == "download" ? variable("BENCH_TARGET") : nil
let uploadLength = scenario == "upload-memory" ? Int64(variable("BENCH_LENGTH")) : nil
let piece = ByteBuffer(repeating: 0, count: options.piece)

struct Pieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
    var left: Int
    mutating func next() async -> ByteBuffer? {
        guard left > 0 else { return nil }
        left -= 1
        return piece
    }
    func makeAsyncIterator() -> Pieces { self }
}

func load(_ url: String) async throws -> Int64 {
    var request = HTTPClientRequest(url: url)
    if let uploadLength {
        request.method = .PUT
        request.body = .stream(Pieces(left: Int(uploadLength) / options.piece), length: .known(uploadLength))
    }
    let response = try await client.execute(request, timeout: .seconds(60))
    guard response.status == .ok else { bench_fail("not a 200") }
    bench_in_flight()
    guard isDiscarded || target != nil else {
        let count = Int64(try await response.body.collect(upTo: 1 << 20).readableBytes)
        return uploadLength ?? count
    }
    let file = target.map { open($0, O_WRONLY | O_CREAT | O_EXCL, 0o600) }
    var bytes: Int64 = 0
    for try await chunk in response.body {
        bytes += Int64(chunk.readableBytes)
        if let file {
            let written = chunk.withUnsafeReadableBytes { write(file, $0.baseAddress, $0.count) }
            guard written == chunk.readableBytes else { bench_fail("write") }
        }
    }
    if let file, let target {
        close(file)
        guard unlink(target) == 0 else { bench_fail("no file") }
    }
    return bytes
}

/// Runs one phase: `requests` distributed over as many tasks as there are connections.
func run(_ url: String, _ requests: Int, isPaced: Bool) async throws -> Int64 {
    let countdown = Countdown(requests)
    return try await withThrowingTaskGroup(of: Int64.self) { group in
        for _ in 0..<min(options.connections, requests) {
            group.addTask {
                var bytes: Int64 = 0
                while let number = countdown.next() {
                    let began = isPaced ? await begin(requests - 1 - number) : 0
                    bytes += try await load(url)
                    if isPaced { bench_latency(bench_now() - began) }
                }
                return bytes
            }
        }
        return try await group.reduce(0, +)
    }
}

/// Waits until a request of `paced` is due. Returns the moment from which its latency counts.
func begin(_ number: Int) async -> Int64 {
    let due = bench_due(number)
    let left = due - bench_now()
    if left > 0 { try? await Task.sleep(nanoseconds: UInt64(left)) }
    return bench_begin(due, left > 0 ? 0 : 1)
}

/// Discards one large body; until it ends, small responses are loaded one after the other.
func transferBeside(_ url: String) async throws -> Int64 {
    let isOver = Flag()
    async let loads: Void = {
        while !isOver.value.load(ordering: .relaxed) {
            let began = bench_now()
            let response = try await client.execute(
                HTTPClientRequest(url: variable("BENCH_BESIDE_URL")), timeout: .seconds(60))
            _ = try await response.body.collect(upTo: 1 << 20)
            bench_latency(bench_now() - began)
        }
    }()
    let bytes = try await load(url)
    isOver.value.store(true, ordering: .relaxed)
    try await loads
    return bytes
}

if options.warm > 0 { _ = try await run(String(cString: options.warm_url), options.warm, isPaced: false) }
bench_start()
let url = String(cString: options.url)
let bytes =
    scenario == "beside"
    ? try await transferBeside(url) : try await run(url, options.requests, isPaced: options.rate > 0)
bench_stop(options.requests, bytes)

func shutDown() async throws { try await client.shutdown() }
try await shutDown()
