// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
// A package of its own, so that users of the library never resolve or build the clients compared here.
// script/bench builds it; docs/benchmarks has its output.

import PackageDescription

/// Clients that require a download are built only on request: `ahc`, `go` (built by script/bench).
let peers = Set((Context.environment["URLLOADING_BENCH_PEERS"] ?? "").split(separator: ",").map(String.init))
let withAHC = peers.contains("ahc")
/// `URLLOADING_BENCH_OURS=0` measures the other clients only, even if the library does not build.
let withOurs = Context.environment["URLLOADING_BENCH_OURS"] != "0"

/// `URLLOADING_BENCH_HTTP3=1` builds the library with HTTP/3 (set by script/bench --http3).
let traits: Set<Package.Dependency.Trait> =
    Context.environment["URLLOADING_BENCH_HTTP3"] == "1" ? ["HTTP3"] : [.defaults]

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]
/// Defined in the manifest instead of the sources: a header imported by Swift must not define it.
let gnu: [CSetting] = [.define("_GNU_SOURCE")]

let package = Package(
    name: "Benchmarks",
    products: [
        .library(name: "malloccount", type: .dynamic, targets: ["malloccount"])
    ],
    dependencies: (withOurs ? [.package(name: "URLLoading", path: "..", traits: traits)] : [])
        + (withAHC
            ? [.package(url: "https://github.com/swift-server/async-http-client.git", exact: "1.37.0")] : []),
    targets: [
        // Shared by all contenders: the command line and the measured region.
        .target(name: "BenchMeasure", cSettings: gnu),
        // Preloaded in a separate round to count allocations.
        .target(name: "malloccount", cSettings: gnu),

        // Contenders.
        .executableTarget(
            name: "rawc", dependencies: ["BenchMeasure"], cSettings: gnu,
            linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .executableTarget(
            name: "curlmulti", dependencies: ["BenchMeasure"], cSettings: gnu,
            linkerSettings: [.linkedLibrary("curl")]),
        .target(name: "CPoll", cSettings: gnu),
        .executableTarget(name: "swifttasks", dependencies: ["BenchMeasure", "CPoll"], swiftSettings: strict),
        .executableTarget(name: "tool", dependencies: ["BenchMeasure"], cSettings: gnu),
        .executableTarget(name: "fnet", dependencies: ["BenchMeasure"], swiftSettings: strict),
    ]
        + (withOurs
            ? [
                .executableTarget(
                    name: "ours",
                    dependencies: ["BenchMeasure", .product(name: "URLLoading", package: "URLLoading")],
                    swiftSettings: strict),
                // What background transfers cost; not compared with others.
                .executableTarget(
                    name: "background", dependencies: [.product(name: "URLLoading", package: "URLLoading")],
                    swiftSettings: strict),
                // The distance between client and server, in the far scenarios.
                .executableTarget(
                    name: "relay",
                    dependencies: ["BenchMeasure", .product(name: "URLLoadingTesting", package: "URLLoading")],
                    swiftSettings: strict),
                .executableTarget(
                    name: "hello", dependencies: [.product(name: "URLLoading", package: "URLLoading")],
                    swiftSettings: strict),
                .executableTarget(
                    name: "classic",
                    dependencies: [
                        "BenchMeasure", .product(name: "URLLoading", package: "URLLoading"),
                        .product(name: "URLLoadingCompatibility", package: "URLLoading"),
                    ],
                    swiftSettings: strict),
            ] : [])
        + (withAHC
            ? [
                .executableTarget(
                    name: "ahc",
                    dependencies: ["BenchMeasure", .product(name: "AsyncHTTPClient", package: "async-http-client")],
                    swiftSettings: [.swiftLanguageMode(.v6)])
            ] : []) + [
            // The server that holds connections open for `inflight`, the proxy for tunnels, and the driver.
            .executableTarget(name: "hold", cSettings: gnu),
            .executableTarget(name: "sockets", cSettings: gnu, linkerSettings: [.linkedLibrary("crypto")]),
            .executableTarget(name: "connect", cSettings: gnu),
            .executableTarget(name: "bench", swiftSettings: strict),
        ]
)
