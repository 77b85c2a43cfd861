import Foundation

/// An executable that keeps to the command line of `BenchMeasure`.
struct Contender {
    var name: String
    var executable: String
    var environment: [String: String] = [:]
    /// How many requests it gets, relative to the bare sockets.
    var weight = 1.0

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
    static let shapes: [Contender] = [Contender(name: "rawc", executable: "rawc")]
        + ["verb", "hop", "task", "body", "events", "decision", "observer"].map {
            Contender(name: $0, executable: "ours", environment: ["OURS_SHAPE": $0])
        }

    static let directory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().path

    var path: String { "\(Self.directory)/\(executable)" }
    var isBuilt: Bool { FileManager.default.isExecutableFile(atPath: path) }
}
