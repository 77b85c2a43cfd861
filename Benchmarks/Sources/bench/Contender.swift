import Foundation

/// An executable that keeps to the command line of `BenchMeasure`.
struct Contender {
    var name: String
    var executable: String
    var environment: [String: String] = [:]
    /// How many requests it gets, relative to the bare sockets.
    var weight = 1.0

    /// A program of somebody else's: nothing inside it can be counted.
    var isForeign: Bool { executable == "h2peer" }

    /// Over HTTP/2 the floor is h2load: with as many connections as requests at a time, and with one.
    static let http2: [Contender] = [
        Contender(name: "h2load", executable: "h2peer"),
        Contender(name: "h2load-1", executable: "h2peer", environment: ["H2LOAD_STREAMS": "1"]),
    ]
    /// What another road costs, beside the same request without it.
    static let roads: [Contender] = [
        Contender(name: "ours-http1", executable: "ours", environment: ["OURS_HTTP1": "1"]),
        Contender(name: "ours-proxy", executable: "ours", environment: ["OURS_PROXY": "1"]),
    ]

    /// The same bytes over WebSockets.
    static let sockets: [Contender] = ["echo", "messages", "rest"].map {
        Contender(name: "ws-" + $0, executable: "ours", environment: ["OURS_SHAPE": $0])
    }
    /// Chosen by name alone: the floor on two cores, and what it costs that somebody decides about each server.
    static let byName: [Contender] = [
        Contender(name: "rawc-2", executable: "rawc", environment: ["RAWC_TWICE": "1"]),
        Contender(name: "ours-decides", executable: "ours", environment: ["OURS_DECIDES": "1"]),
        Contender(
            name: "ours-loop-decides", executable: "ours", environment: ["OURS_EXECUTOR": "1", "OURS_DECIDES": "1"]),
    ]

    var isFoundation: Bool { name == "fnet" }

    /// The first is what the ratios are to.
    static let all: [Contender] = [
        Contender(name: "rawc", executable: "rawc"),
        Contender(name: "ours", executable: "ours"),
        Contender(name: "ours-loop", executable: "ours", environment: ["OURS_EXECUTOR": "1"]),
        Contender(name: "curlmulti", executable: "curlmulti"),
        Contender(name: "go", executable: "gopeer", weight: 0.6),
        Contender(name: "ahc", executable: "ahc", weight: 0.3),
        Contender(name: "fnet", executable: "fnet", weight: 0.06),
    ]

    /// Our own ways to make the same request, to compare with the verb.
    static let shapes: [Contender] =
        [Contender(name: "rawc", executable: "rawc")]
        + ["verb", "hop", "task", "body", "events", "decision", "observer", "cookies"].map {
            Contender(name: $0, executable: "ours", environment: ["OURS_SHAPE": $0])
        }

    /// What a cache costs, beside the same session without one.
    static let caches: [Contender] =
        [
            Contender(name: "rawc", executable: "rawc"), Contender(name: "none", executable: "ours"),
        ]
        + ["hit", "miss", "each", "store", "disk-hit", "disk-store"].map {
            Contender(name: $0, executable: "ours", environment: ["OURS_CACHE": $0])
        } + [Contender(name: "cookies", executable: "ours", environment: ["OURS_SHAPE": "cookies"])]

    static let directory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().path

    var path: String { "\(Self.directory)/\(executable)" }
    var isBuilt: Bool { FileManager.default.isExecutableFile(atPath: path) }
}
