// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
// The files that docs/guides/other-packages.md shows, and their tests. A package of its own, so that users of the
// library never resolve the packages that these files connect it with. script/adapters builds and tests it.

import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

let package = Package(
    name: "Adapters",
    dependencies: [
        .package(name: "URLLoading", path: "../.."),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
    ],
    targets: [
        .target(
            name: "Adapters",
            dependencies: [
                .product(name: "URLLoading", package: "URLLoading"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "AdaptersTests",
            dependencies: [
                "Adapters",
                .product(name: "URLLoadingTesting", package: "URLLoading"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: strict),
    ]
)
