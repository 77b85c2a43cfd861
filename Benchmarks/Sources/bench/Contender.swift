// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An executable that implements the command line of `BenchMeasure`.
struct Contender {
    var name: String
    var executable: String
    var environment: [String: String] = [:]
    /// The number of requests relative to the bare sockets.
    var weight = 1.0
    /// Whether it differs from another contender only in how its process starts.
    var onlyStarts = false

    /// Whether the program is a third-party tool, whose allocations cannot be counted.
    var isForeign: Bool { executable == "tool" }

    /// The lower bound over HTTP/2 is h2load: with one connection for each concurrent request, and with a single one.
    static let http2: [Contender] = [
        Contender(name: "h2load", executable: "tool"),
        Contender(name: "h2load-1", executable: "tool", environment: ["H2LOAD_STREAMS": "1"]),
    ]
    /// The same clients over HTTP/3 and HTTP/2; the first one is the floor.
    static let http3: [Contender] = [
        Contender(name: "curl-h3", executable: "curlmulti", environment: ["BENCH_HTTP3": "1"]),
        Contender(name: "ours-h3", executable: "ours", environment: ["BENCH_HTTP3": "1"]),
        Contender(name: "ours-h3-loop", executable: "ours", environment: ["BENCH_HTTP3": "1", "OURS_EXECUTOR": "1"]),
        Contender(name: "curl-h2", executable: "curlmulti", environment: ["BENCH_HTTP2": "1"]),
        Contender(name: "ours-h2", executable: "ours", environment: ["BENCH_HTTP2": "1"]),
    ]
    /// The cost of other transports, compared with the same request without them.
    static let roads: [Contender] = [
        Contender(name: "ours-http1", executable: "ours", environment: ["OURS_HTTP1": "1"]),
        Contender(name: "ours-proxy", executable: "ours", environment: ["OURS_PROXY": "1"]),
    ]

    /// The same bytes over WebSockets.
    static let sockets: [Contender] = ["echo", "messages", "rest"].map {
        Contender(name: "ws-" + $0, executable: "ours", environment: ["OURS_SHAPE": $0])
    }
    /// An echo over a WebSocket on the pool and on the event loop.
    static let farSockets: [Contender] = [
        sockets[0],
        Contender(name: "ws-echo-loop", executable: "ours", environment: ["OURS_SHAPE": "echo", "OURS_EXECUTOR": "1"]),
    ]
    /// Contenders that run only when named: the lower bound on two cores, the cost of a decision about each server, and
    /// copies of an earlier build (`ours-before`, `classic-before` beside the others), to compare two states of the
    /// code.
    static let byName: [Contender] = [
        Contender(name: "rawc-2", executable: "rawc", environment: ["RAWC_TWICE": "1"]),
        Contender(name: "ours-decides", executable: "ours", environment: ["OURS_DECIDES": "1"]),
        Contender(
            name: "ours-loop-decides", executable: "ours", environment: ["OURS_EXECUTOR": "1", "OURS_DECIDES": "1"]),
        Contender(name: "before", executable: "ours-before"),
        Contender(name: "before-loop", executable: "ours-before", environment: ["OURS_EXECUTOR": "1"]),
        Contender(name: "classic-before", executable: "classic-before", weight: 0.6),
    ]

    var isFoundation: Bool { name == "fnet" }
    /// Whether the program knows BENCH_NEW, which far scenarios need.
    var supportsFar: Bool { ["ours", "ours-before", "curlmulti", "gopeer"].contains(executable) }

    /// All contenders. Ratios are relative to the first one, and to bare Swift tasks on the global pool.
    static let all: [Contender] = [
        Contender(name: "rawc", executable: "rawc"),
        Contender(name: "wrk", executable: "tool", environment: ["BENCH_TOOL": "wrk"]),
        Contender(name: "tasks", executable: "swifttasks"),
        Contender(name: "tasks-loop", executable: "swifttasks", environment: ["TASKS_EXECUTOR": "1"]),
        Contender(name: "ours", executable: "ours"),
        Contender(name: "ours-loop", executable: "ours", environment: ["OURS_EXECUTOR": "1"]),
        // With the Swift runtime linked statically, as `script/install` builds `urlload`.
        Contender(name: "ours-static", executable: "ours-static", onlyStarts: true),
        Contender(name: "classic", executable: "classic", weight: 0.6),
        Contender(name: "curlmulti", executable: "curlmulti"),
        Contender(name: "go", executable: "gopeer", weight: 0.6),
        Contender(name: "ahc", executable: "ahc", weight: 0.3),
        Contender(name: "fnet", executable: "fnet", weight: 0.06),
    ]

    /// The configuration that sessions have by default, with a cache and cookies, compared with a session without.
    static let defaults: [Contender] =
        all.filter { ["rawc", "swifttasks", "ours"].contains($0.executable) } + [
            Contender(name: "defaults", executable: "ours", environment: ["OURS_SHAPE": "defaults"]),
            Contender(
                name: "defaults-loop", executable: "ours",
                environment: ["OURS_SHAPE": "defaults", "OURS_EXECUTOR": "1"]),
            Contender(name: "classic", executable: "classic", environment: ["CLASSIC_REMEMBERS": "1"], weight: 0.6),
        ]

    /// New connections beside small responses; the other clients have no such mode.
    static let besideHandshakes: [Contender] =
        all.filter { $0.executable == "ours" }.map {
            Contender(
                name: $0.name, executable: $0.executable,
                environment: $0.environment.merging(["OURS_BESIDE": "handshakes"]) { $1 })
        }

    /// The library's APIs for the same request, compared with the async function `data(for:)`.
    static let shapes: [Contender] =
        [Contender(name: "rawc", executable: "rawc")]
        + ["verb", "hop", "task", "body", "events", "decision", "observer", "cookies"].map {
            Contender(name: $0, executable: "ours", environment: ["OURS_SHAPE": $0])
        }

    /// The cost of a cache, compared with the same session without one.
    static let caches: [Contender] =
        [
            Contender(name: "rawc", executable: "rawc"), Contender(name: "none", executable: "ours"),
        ]
        + ["hit", "miss", "each", "store", "disk-hit", "disk-store"].map {
            Contender(name: $0, executable: "ours", environment: ["OURS_CACHE": $0])
        }
        + ["hit", "disk-hit"].map {
            Contender(name: "before-" + $0, executable: "ours-before", environment: ["OURS_CACHE": $0])
        } + [Contender(name: "cookies", executable: "ours", environment: ["OURS_SHAPE": "cookies"])]

    static let directory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().path

    var path: String { "\(Self.directory)/\(executable)" }
    var isBuilt: Bool { FileManager.default.isExecutableFile(atPath: path) }
}
