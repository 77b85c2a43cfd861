// URLLoading: its async verbs, a task for each connection. OURS_EXECUTOR=1 runs the same code on
// the loop's executor, entered once.

import BenchMeasure
import FoundationEssentials
import Synchronization
import URLLoading

let options = bench_parse(CommandLine.argc, CommandLine.unsafeArgv, "URLLoading")
let scenario = String(cString: options.scenario)

var configuration = Configuration.ephemeral
configuration.maximumConnectionsPerHost = options.connections
if let cafile = options.cafile { configuration.tls.roots = .file(String(cString: cafile)) }
let session = Session(configuration)

final class Countdown: Sendable {
    private let left: Atomic<Int>
    init(_ count: Int) { left = Atomic(count) }
    func next() -> Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }
}

/// One phase: `requests` spread over as many tasks as there are connections.
@Sendable func run(_ url: String, _ requests: Int, discard: Bool) async throws -> Int64 {
    let countdown = Countdown(requests)
    let request = Request(url: URL(string: url)!)
    return try await withThrowingTaskGroup(of: Int64.self) { group in
        for _ in 0..<options.connections {
            group.addTask {
                var bytes: Int64 = 0
                while countdown.next() {
                    if discard {
                        bytes += try await session.load(request) { response, body in
                            guard response.http?.status.code == 200 else { bench_fail("not a 200") }
                            var n: Int64 = 0
                            for try await chunk in body { n += Int64(chunk.count) }
                            return n
                        }
                    } else {
                        let (data, response) = try await session.data(for: request)
                        guard response.http?.status.code == 200 else { bench_fail("not a 200") }
                        bench_in_flight()
                        bytes += Int64(data.count)
                    }
                }
                return bytes
            }
        }
        return try await group.reduce(0, +)
    }
}

@Sendable func measure() async throws {
    let discard = scenario == "bulk"
    if options.warm > 0 {
        _ = try await run(String(cString: options.warm_url), options.warm, discard: discard)
    }
    bench_start()
    let bytes = try await run(String(cString: options.url), options.requests, discard: discard)
    bench_stop(options.requests, bytes)
}

if getenv("OURS_EXECUTOR") != nil {
    try await withTaskExecutorPreference(URLLoading.loopExecutor) { try await measure() }
} else {
    try await measure()
}
await session.invalidateAndCancel()
await session.invalidated()
