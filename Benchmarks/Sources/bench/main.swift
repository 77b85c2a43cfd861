// SPDX-License-Identifier: Apache-2.0

// The driver: servers, rounds, output. Scenarios are in Scenario.swift, the measurement is in Measurement.swift.

import Foundation

let introduction = """
    # Benchmarks

    Clients against nginx on loopback, one machine, measured inside the client's process after a warm-up. Where a title
    says so, client and server share one core; otherwise both cores are free to both. CPU is user and system time for
    each request (bulk: each GiB, start: each process), median and best round.

    | contender | |
    |---|---|
    | `rawc` | the floor: bare sockets, epoll, OpenSSL, one thread, no client around them |
    | `tasks`, `tasks-loop` | one Swift task for each connection over bare sockets and epoll, on the global pool, and on the thread that polls |
    | `ours`, `ours-loop`, `classic` | URLLoading on the default pool, on the event loop's executor, and its classic API |
    | `wrk`, `h2load` | tools that measure servers; start and end of the process count |
    | `curlmulti`, `go`, `ahc`, `fnet` | libcurl's multi interface, Go's net/http, AsyncHTTPClient, FoundationNetworking |

    `x raw` is the ratio to `rawc` (over HTTP/2 to `h2load`), `x tasks` to `tasks`: the median of the ratios within each
    round, and best to best. Then rate, calls of the allocator, system calls, context switches, peak memory. A contender
    that does not support a scenario is missing from its table.

    - Allocations and system calls come from rounds of their own, so that counting never slows what is timed. System
      calls are the difference between a short and a long run under strace, which slows the client: a client that
      batches does so a little more there. Go's allocations are its runtime's count.
    - Full and resumed handshakes are checked against the server's log. A TLS 1.3 ticket serves once: a client that
      keeps a single one (libcurl) resumes only part of 16 at a time. The servers of handshakes close after each answer.
    - In flight: memory grows by that much for each request between the last warm-up and the first answer, which comes
      when all have arrived.
    - At a fixed rate, latency counts from the moment at which a request was due if all connections were busy then,
      otherwise from its start, so that the lateness of timers does not count.
    - With one connection client and server take turns; there both are kept on one core, since the same exchange costs
      two to four times as much across cores, and which of the two happens is the scheduler's choice.

    Ratios travel between machines, times do not. The command that made the page stands in it.

    ![CPU time, memory and latency beside other clients](../images/benchmarks.svg)
    """

/// Runs the program that measures background transfers, which are compared with no other client.
func measureBackground() throws {
    let servers = try Servers()
    defer { servers.stop() }
    let finished = try run(["\(Contender.directory)/background", servers.largeURL], timeout: 1200)
    show(finished.output)
    guard finished.status == 0 else { throw Failure("background ended with \(finished.status)") }
}

func show(_ text: String) {
    print(text)
    fflush(nil)  // flushes, because output into a pipe is buffered
}

do {
    let options = try Options(CommandLine.arguments.dropFirst())
    if options.measuresBackground {
        try measureBackground()
        exit(0)
    }
    guard !options.contenders.isEmpty else { throw Failure("no contender is built") }
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)

    let environment = ProcessInfo.processInfo.environment
    let variables = ["URLLOADING_BENCH_PEERS", "URLLOADING_BENCH_OURS"].compactMap { name in
        environment[name].map { "\(name)=\($0)" }
    }
    let command = (variables + ["script/bench"] + CommandLine.arguments.dropFirst()).joined(separator: " ")
    let page = Page(
        command: command, load: says("cut -d' ' -f1 /proc/loadavg"), contenders: options.contenders,
        rounds: options.rounds)
    var parts = [page.header()]
    show(parts[0])

    let servers = try Servers()
    defer { servers.stop() }
    let measurement = Measurement(servers: servers, rounds: options.rounds, scale: options.scale)
    for scenario in options.scenarios {
        let table = page.table(scenario, measurement.measure(scenario, scenario.contenders(options.contenders)))
        parts.append(table)
        show("\n" + table)
    }
    if let file = options.write {
        let isFar = options.scenarios.allSatisfy { $0.distance != nil }
        let isHTTP3 = options.scenarios.allSatisfy { Scenario.http3.map(\.name).contains($0.name) }
        let words = isFar ? farIntroduction : isHTTP3 ? http3Introduction : introduction
        let text = "\(words)\n\n```\n\(parts.joined(separator: "\n\n"))\n```\n"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
    }
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(1)
}
