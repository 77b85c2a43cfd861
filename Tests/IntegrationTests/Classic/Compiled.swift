// SPDX-License-Identifier: Apache-2.0

// Builds the programs in Tests/ClassicPrograms with the compiler alone, as a user of the shim or of `-module-alias`
// does, so that no build of this package contains their module names.

import Foundation
import Testing
import URLLoadingTestSupport

enum Compiled {
    private static let built = URL(fileURLWithPath: Running.urlloadPath).deletingLastPathComponent().path
    private static let root: String = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { url.deleteLastPathComponent() }
        return url.path
    }()

    static func againstIncumbent(_ folder: TemporaryFolder) async throws -> String {
        try await compile(try unchanged(in: folder), to: folder.path + "/incumbent")
    }

    static func throughAlias(_ folder: TemporaryFolder) async throws -> String {
        let flags = ["-module-alias", "FoundationNetworking=URLLoadingCompatibility"] + layer()
        return try await compile(try unchanged(in: folder) + flags + linking(), to: folder.path + "/aliased")
    }

    static func throughShim(_ folder: TemporaryFolder) async throws -> String {
        let shim = [
            root + "/Sources/FoundationNetworkingShim/Shim.swift", "-emit-module", "-emit-object", "-parse-as-library",
        ]
        try await run(
            shim + [
                "-module-name", "FoundationNetworking", "-emit-module-path",
                folder.path + "/FoundationNetworking.swiftmodule",
            ]
                + layer() + ["-o", folder.path + "/shim.o"])
        return try await compile(
            try unchanged(in: folder) + ["-I", folder.path, folder.path + "/shim.o"] + layer() + linking(),
            to: folder.path + "/shimmed")
    }

    /// Two targets of one program (Tests/MixedTargets): one uses the toolchain's module, the other the layer.
    static func targetByTarget(_ folder: TemporaryFolder) async throws -> String {
        let library = ["-swift-version", "6", "-parse-as-library", "-emit-module", "-emit-object"]
        for (name, flags) in [("Older", []), ("Newer", layer())] {
            let module = [
                "-module-name", name, "-emit-module-path", "\(folder.path)/\(name).swiftmodule", "-o",
                "\(folder.path)/\(name).o",
            ]
            try await run(library + module + flags + ["\(root)/Tests/MixedTargets/\(name).swift"])
        }
        let main = [
            "\(root)/Tests/MixedTargets/main.swift", "-I", folder.path, folder.path + "/Older.o",
            folder.path + "/Newer.o",
        ]
        return try await compile(main + layer() + linking(), to: folder.path + "/mixed")
    }

    /// The sources before their move: with the old import only.
    private static func unchanged(in folder: TemporaryFolder) throws -> [String] {
        let programs = root + "/Tests/ClassicPrograms"
        let names = try FileManager.default.contentsOfDirectory(atPath: programs).filter { $0.hasSuffix(".swift") }
            .sorted()
        let new = "#if CLASSIC_LAYER\nimport URLLoadingCompatibility\n#else\nimport FoundationNetworking\n#endif\n"
        for name in names {
            let text = try String(contentsOfFile: "\(programs)/\(name)", encoding: .utf8)
            try Data(text.replacing(new, with: "import FoundationNetworking\n").utf8).write(
                to: URL(fileURLWithPath: "\(folder.path)/\(name)"))
        }
        return ["-swift-version", "5"] + names.map { "\(folder.path)/\($0)" }
    }

    /// The folder of the modules, with the C modules below. A link with objects of a sanitized build needs the
    /// sanitizer, too.
    private static func layer() -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: root + "/Sources")) ?? []
        let maps = names.filter { $0.hasPrefix("URLLoadingC") }.flatMap { name in
            ["module.modulemap", "include/module.modulemap"].map { "\(root)/Sources/\(name)/\($0)" }
        }
        let made = "\(built)/URLLoadingCSystem.build/module.modulemap"
        let sanitizer = Servers.sanitizer.map { ["-sanitize=\($0)"] } ?? []
        return sanitizer + ["-I", built + "/Modules"]
            + (maps + [made]).filter(FileManager.default.fileExists(atPath:)).flatMap {
                ["-Xcc", "-fmodule-map-file=\($0)"]
            }
    }

    private static func linking() throws -> [String] {
        let modules = [
            "URLLoadingCompatibility", "URLLoading", "URLLoadingWire", "URLLoadingIO", "URLLoadingCSystem",
            "URLLoadingCExit",
        ]
        let objects = modules.flatMap { module -> [String] in
            let folder = "\(built)/\(module).build"
            let names = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
            return names.filter { $0.hasSuffix(".o") }.map { "\(folder)/\($0)" }
        }
        let libraries = ["ssl", "crypto", "z", "brotlidec", "zstd", "nghttp2", "idn2", "psl", "sqlite3"]
        return objects + libraries.map { "-l\($0)" }
    }

    private static func compile(_ arguments: [String], to program: String) async throws -> String {
        try await run(arguments + ["-o", program])
        return program
    }

    private static func run(_ arguments: [String]) async throws {
        let result = try await Running.command("/usr/bin/env", ["swiftc"] + arguments)
        try #require(result.code == 0, "\(result.text)\(result.errors)")
    }
}
