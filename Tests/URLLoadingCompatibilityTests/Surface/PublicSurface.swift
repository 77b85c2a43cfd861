// SPDX-License-Identifier: Apache-2.0

// The public API of a module as the compiler reports it (the symbol graphs of swift-docc).
// This file reads a graph; the comparison is in `SurfaceTests`.

import Foundation
import URLLoadingTestChildren
import URLLoadingTestSupport

/// The public declarations of a module and what its types conform to.
struct PublicSurface {
    /// By path and kind, as `URLSession.dataTask(with:) swift.method`: an overloaded name has several.
    private(set) var declarations: [String: Set<String>] = [:]
    /// By path of a type: `conformsTo Swift.Sendable`.
    private(set) var conformances: [String: Set<String>] = [:]

    /// - Throws: an error with the compiler's output if it produced no graph.
    init(of module: String) async throws {
        let folder = try makeTemporaryFolder("surface")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await Self.extract(module, to: folder)
        let file = try Data(contentsOf: folder.appendingPathComponent("\(module).symbols.json"))
        let graph = try JSONDecoder().decode(Graph.self, from: file)
        for symbol in graph.symbols where symbol.isOwnAndAvailable {
            let key = symbol.pathComponents.joined(separator: ".") + " " + symbol.kind.identifier
            declarations[key, default: []].insert(symbol.declaration)
        }
        let names = Dictionary(graph.symbols.map { ($0.identifier.precise, $0.pathComponents.joined(separator: ".")) })
        { first, _ in first }
        for relation in graph.relationships where ["conformsTo", "inheritsFrom"].contains(relation.kind) {
            guard let name = names[relation.source] else { continue }
            let target = names[relation.target] ?? relation.targetFallback ?? relation.target
            conformances[name, default: []].insert("\(relation.kind) \(target)")
        }
    }

    private static func extract(_ module: String, to folder: URL) async throws {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Sources").path
        let built = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let modules = URL(fileURLWithPath: built).deletingLastPathComponent().appendingPathComponent("Modules").path
        let maps = try FileManager.default.contentsOfDirectory(atPath: sources).filter { $0.hasPrefix("URLLoadingC") }
            .flatMap { name in
                ["module.modulemap", "include/module.modulemap"].map { "\(sources)/\(name)/\($0)" }
            }.filter(FileManager.default.fileExists(atPath:))
        #if arch(arm64)
        let target = "aarch64-unknown-linux-gnu"
        #else
        let target = "x86_64-unknown-linux-gnu"
        #endif
        let errors = folder.appendingPathComponent("errors").path
        let child = try ChildProcess(
            "/usr/bin/env",
            ["swift-symbolgraph-extract", "-module-name", module, "-target", target, "-output-dir", folder.path]
                + ["-minimum-access-level", "public", "-I", modules]
                + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] },
            files: .init(errors: errors))
        guard await child.wait() == 0 else {
            throw NoSurface(description: (try? String(contentsOfFile: errors, encoding: .utf8)) ?? "")
        }
    }

    struct NoSurface: Error, CustomStringConvertible { let description: String }
}

private struct Graph: Decodable {
    let symbols: [Symbol]
    let relationships: [Relationship]

    struct Symbol: Decodable {
        let identifier: Identifier
        let kind: Kind
        let pathComponents: [String]
        let declarationFragments: [Fragment]?
        let availability: [Availability]?

        /// Whether the symbol is declared here and usable: inherited members of another module's protocol are copies,
        /// and unavailable ones cannot be used.
        var isOwnAndAvailable: Bool {
            !identifier.precise.contains("::SYNTHESIZED::")
                && !(availability ?? []).contains { $0.isUnconditionallyUnavailable == true }
        }

        var declaration: String { (declarationFragments ?? []).map(\.spelling).joined() }
    }
    struct Identifier: Decodable { let precise: String }
    struct Kind: Decodable { let identifier: String }
    struct Fragment: Decodable { let spelling: String }
    struct Availability: Decodable { let isUnconditionallyUnavailable: Bool? }
    struct Relationship: Decodable {
        let kind: String
        let source: String
        let target: String
        let targetFallback: String?
    }
}
