// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
// Three layers and the products on top of them; docs/architecture.md has the picture. No package dependencies:
// everything comes from the toolchain or is a C library of the system.

import PackageDescription

/// Set by `script/test-long`: the thread sanitizer cannot see `Synchronization.Mutex`, so `Lock` uses a pthread mutex
/// instead (docs/concurrency.md); tests of memory and files know either sanitizer.
let sanitizer: [SwiftSetting] =
    switch Context.environment["URLLOADING_SANITIZE"] {
    case "thread": [.define("URLLOADING_THREAD_SANITIZER")]
    case "address": [.define("URLLOADING_ADDRESS_SANITIZER")]
    default: []
    }
/// Set by `script/fuzz`: builds the wire formats and their fuzz targets with the coverage-guided fuzzer.
let fuzzing = Context.environment["URLLOADING_FUZZ"] != nil
/// Set by users who build sources that cannot be changed: adds a module named `FoundationNetworking`, which hides the
/// toolchain's from the whole build (docs/guides/moving.md).
let shim = Context.environment["URLLOADING_SHIM"] != nil

let strict: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("InferIsolatedConformances"),
    ] + sanitizer

/// A library of HTTP/3, which is needed only by a build with the trait.
func http3(_ name: String) -> Target.Dependency { .target(name: name, condition: .when(traits: ["HTTP3"])) }

let package = Package(
    name: "URLLoading",
    products: [
        .library(name: "URLLoading", targets: ["URLLoading"]),
        .library(name: "URLLoadingCompatibility", targets: ["URLLoadingCompatibility"]),
        .library(name: "URLLoadingTesting", targets: ["URLLoadingTesting"]),
        .library(name: "URLLoadingAgent", targets: ["URLLoadingAgent"]),
        .executable(name: "urlload", targets: ["urlload"]),
        .executable(name: "url-loading-agent", targets: ["url-loading-agent"]),
    ] + (shim ? [.library(name: "FoundationNetworking", targets: ["FoundationNetworking"])] : []),
    traits: [
        // docs/decisions/0027-http3-by-a-trait.md
        .trait(name: "HTTP3", description: "HTTP/3 over ngtcp2, nghttp3 and OpenSSL 3.5.1 or later")
    ],
    targets: [
        // Ends a build for another system than Linux, with an error in words.
        .target(name: "URLLoadingPlatform", swiftSettings: strict),
        // C: header-only access to the system and its libraries.
        .target(name: "URLLoadingCSystem", cSettings: [.define("HTTP3", .when(traits: ["HTTP3"]))]),
        .systemLibrary(name: "URLLoadingCOpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        // Keeps OpenSSL usable while the process exits.
        .target(name: "URLLoadingCExit", dependencies: ["URLLoadingCOpenSSL"]),
        .systemLibrary(name: "URLLoadingCZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "URLLoadingCBrotli", pkgConfig: "libbrotlidec", providers: [.apt(["libbrotli-dev"])]),
        .systemLibrary(name: "URLLoadingCZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "URLLoadingCNghttp2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        // Without pkg-config, which would warn of missing libraries in builds that do not use them.
        .systemLibrary(
            name: "URLLoadingCNgtcp2", providers: [.apt(["libngtcp2-dev", "libngtcp2-crypto-ossl-dev"])]),
        .systemLibrary(name: "URLLoadingCNghttp3", providers: [.apt(["libnghttp3-dev"])]),
        .systemLibrary(name: "URLLoadingCIDN2", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(name: "URLLoadingCPSL", pkgConfig: "libpsl", providers: [.apt(["libpsl-dev"])]),
        .systemLibrary(name: "URLLoadingCSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),

        // The two lower layers do not depend on each other.
        .target(
            name: "URLLoadingWire",
            dependencies: [
                "URLLoadingPlatform", "URLLoadingCZlib", "URLLoadingCBrotli", "URLLoadingCZstd", "URLLoadingCNghttp2",
                "URLLoadingCIDN2", "URLLoadingCPSL", http3("URLLoadingCNgtcp2"), http3("URLLoadingCNghttp3"),
            ],
            swiftSettings: strict + (fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : [])),
        .target(
            name: "URLLoadingIO",
            dependencies: [
                "URLLoadingPlatform", "URLLoadingCSystem", "URLLoadingCExit", "URLLoadingCOpenSSL", "URLLoadingCSQLite",
                "URLLoadingCZlib", http3("URLLoadingCNgtcp2"),
            ],
            swiftSettings: strict),

        // The main library.
        .target(name: "URLLoading", dependencies: ["URLLoadingWire", "URLLoadingIO"], swiftSettings: strict),
        // The URLSession-compatible API on top: classes, delegates, completion handlers. The only target that uses all
        // of Foundation.
        .target(
            name: "URLLoadingCompatibility",
            dependencies: ["URLLoading", "URLLoadingWire", "URLLoadingIO"],
            swiftSettings: strict),
        .target(
            name: "URLLoadingTesting",
            dependencies: [
                "URLLoading", "URLLoadingWire", "URLLoadingIO", "URLLoadingCOpenSSL", "URLLoadingCNghttp2",
                http3("URLLoadingCNghttp3"),
            ],
            swiftSettings: strict),
        .executableTarget(
            name: "urlload",
            dependencies: ["URLLoading", "URLLoadingTesting", "URLLoadingWire", "URLLoadingIO"],
            swiftSettings: strict),

        // Carries out transfers that outlive their programs; the executable is one line.
        .target(
            name: "URLLoadingAgent", dependencies: ["URLLoading", "URLLoadingWire", "URLLoadingIO"],
            swiftSettings: strict),
        .executableTarget(
            name: "url-loading-agent",
            dependencies: ["URLLoadingAgent"],
            exclude: [
                "url-loading-agent.service", "url-loading-agent.socket", "url-loading-agent@.service",
                "url-loading-agent@.socket",
            ],
            swiftSettings: strict),

        // Keeps tests from storing state in the user's home folder.
        .target(name: "URLLoadingCTestHome", path: "Tests/Home"),
        // What a load costs: script/costs.
        .target(name: "URLLoadingCCosts", path: "Tests/Costs/Counting"),
        .executableTarget(
            name: "CostProgram",
            dependencies: [
                "URLLoadingCCosts", "URLLoading", "URLLoadingCompatibility", "URLLoadingTesting", "URLLoadingWire",
            ],
            path: "Tests/Costs/Program", swiftSettings: strict),
        // Child processes that the tests start.
        .target(
            name: "URLLoadingTestChildren", dependencies: ["URLLoadingIO"], path: "Tests/Children",
            swiftSettings: strict),
        // Random programs over both APIs, each in a process of its own: script/abuse.
        .executableTarget(
            name: "AbuseProgram",
            dependencies: [
                "URLLoading", "URLLoadingCompatibility", "URLLoadingTesting", "URLLoadingWire", "URLLoadingIO",
                "URLLoadingTestChildren",
            ],
            path: "Tests/Abuse", swiftSettings: strict),
        // The waits, temporary files and peers of the tests.
        .target(
            name: "URLLoadingTestSupport",
            dependencies: ["URLLoading", "URLLoadingTesting", "URLLoadingWire", "URLLoadingIO"], path: "Tests/Support",
            swiftSettings: strict),
        .testTarget(name: "URLLoadingWireTests", dependencies: ["URLLoadingWire"], swiftSettings: strict),
        .testTarget(
            name: "URLLoadingIOTests",
            dependencies: [
                "URLLoadingIO", "URLLoadingTesting", "URLLoadingCSystem", "URLLoadingCOpenSSL", "URLLoadingTestSupport",
                "URLLoadingCTestHome",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "URLLoadingTests",
            dependencies: [
                "URLLoading", "URLLoadingTesting", "URLLoadingWire", "URLLoadingIO",
                "URLLoadingTestSupport", "URLLoadingCTestHome", "URLLoadingTestChildren", http3("URLLoadingCNghttp3"),
            ],
            swiftSettings: strict),
        // A program with a background session, which tests kill.
        .executableTarget(
            name: "BackgroundProgram",
            dependencies: ["URLLoading", "URLLoadingCompatibility", "URLLoadingIO", "URLLoadingWire"],
            path: "Tests/BackgroundProgram",
            swiftSettings: strict),
        .testTarget(
            name: "URLLoadingAgentTests",
            dependencies: [
                "URLLoadingAgent", "url-loading-agent", "urlload", "BackgroundProgram", "URLLoadingCompatibility",
                "URLLoading", "URLLoadingTesting", "URLLoadingWire", "URLLoadingIO", "URLLoadingTestSupport",
                "URLLoadingCTestHome", "URLLoadingTestChildren",
            ],
            swiftSettings: strict),
        // A program that blocks threads until its loads have ended.
        .executableTarget(
            name: "BlockedProgram", dependencies: ["URLLoading", "URLLoadingCompatibility"],
            path: "Tests/BlockedProgram", swiftSettings: strict),
        .testTarget(
            name: "URLLoadingCompatibilityTests",
            dependencies: [
                "BlockedProgram",
                "URLLoadingCompatibility", "URLLoading", "URLLoadingTesting", "URLLoadingWire", "URLLoadingIO",
                "URLLoadingTestSupport", "URLLoadingCTestHome", "URLLoadingTestChildren",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "urlloadTests",
            dependencies: ["urlload", "URLLoading", "URLLoadingWire", "URLLoadingIO", "URLLoadingCTestHome"],
            swiftSettings: strict),
        // The targets of script/fuzz; without the fuzzer, the mutated samples of script/fuzz --smoke.
        .executableTarget(
            name: "FuzzHTTP1",
            dependencies: ["URLLoadingWire"],
            path: "Tests/Fuzz/HTTP1",
            swiftSettings: strict
                + (fuzzing
                    ? [.define("URLLOADING_FUZZ"), .unsafeFlags(["-sanitize=fuzzer,address", "-parse-as-library"])]
                    : []),
            linkerSettings: fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : []),
        // Programs written for FoundationNetworking, in their original language mode.
        .executableTarget(
            name: "ClassicPrograms",
            dependencies: ["URLLoadingCompatibility"],
            path: "Tests/ClassicPrograms",
            swiftSettings: [.swiftLanguageMode(.v5), .define("CLASSIC_LAYER")]),
        // Relays in front of the servers of the integration tests: script/test --far.
        .executableTarget(
            name: "FarProgram", dependencies: ["URLLoadingTesting"], path: "Tests/Far", swiftSettings: strict),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "ClassicPrograms", "URLLoading", "URLLoadingTesting", "URLLoadingWire", "URLLoadingIO",
                "URLLoadingTestSupport", "URLLoadingCTestHome", "URLLoadingTestChildren",
            ],
            swiftSettings: strict),
    ]
        + (shim
            ? [
                .target(
                    name: "FoundationNetworking",
                    dependencies: ["URLLoadingCompatibility"],
                    path: "Sources/FoundationNetworkingShim",
                    swiftSettings: strict)
            ] : [])
)
