// SPDX-License-Identifier: Apache-2.0

// Programs written for FoundationNetworking (Tests/ClassicPrograms), built from the same source against that module,
// against the compatibility layer, and against the layer under that module's name.

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.serialized, .timeLimit(.minutes(5)))
struct ClassicProgramTests {
    static let names = [
        "delegates", "handlers", "downloads", "images", "login", "stub", "requests", "order", "stores", "faults",
        "fields",
    ]

    @Test("A program works with the layer in place of the import", arguments: names)
    func moved(_ name: String) async throws {
        try await holds(Running.urlloadPath.replacing("/urlload", with: "/ClassicPrograms"), name)
    }

    @Test("A program works unchanged with the shim")
    func unchanged() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.throughShim(folder)
        for name in Self.names { try await holds(program, name) }
    }

    @Test("A program works unchanged with a module alias")
    func aliased() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.throughAlias(folder)
        for name in Self.names { try await holds(program, name) }
    }

    @Test("Two targets of one program may use FoundationNetworking and the layer")
    func mixed() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.targetByTarget(folder)
        let origin = try ClassicOrigin()
        let result = try await Running.command(program, [origin.origin.url("").absoluteString])
        await origin.stop()
        #expect(result.code == 0 && result.text.hasPrefix("ok"), "\(result.text)\(result.errors)")
    }

    /// Only the build is required: it proves that the sources are valid for FoundationNetworking.
    @Test("The same sources build against FoundationNetworking")
    func incumbent() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.againstIncumbent(folder)
        #expect(FileManager.default.isExecutableFile(atPath: program))
        // For the table in docs/guides/moving.md.
        guard Servers.variable("COMPARE") != nil else { return }
        for name in Self.names {
            let origin = try ClassicOrigin()
            let result = try await Running.command(
                "/usr/bin/timeout", ["60", program, name, origin.origin.url("").absoluteString])
            await origin.stop()
            print("FoundationNetworking \(name): \(result.code)\n\(result.text)\(result.errors.prefix(2000))")
        }
    }

    @Test("Cookies stored by FoundationNetworking are imported")
    func jar() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.againstIncumbent(folder)
        let home = [
            "HOME=\(folder.path)", "XDG_DATA_HOME=\(folder.path)/data", "XDG_CONFIG_HOME=\(folder.path)/config",
        ]
        let result = try await Running.command("/usr/bin/env", home + [program, "jar", "http://127.0.0.1/"])
        #expect(result.code == 0, "\(result.text)\(result.errors)")
        let names = FileManager.default.enumerator(atPath: folder.path + "/data")?.compactMap { $0 as? String } ?? []
        let name = try #require(names.first { $0.hasSuffix("/.cookies.shared") }, "\(names)")
        let store = CookieStore()
        let count = try store.importCookies(
            foundationNetworkingFile: URL(fileURLWithPath: "\(folder.path)/data/\(name)"))
        let cookies = store.all.sorted { $0.name < $1.name }
        #expect(count == 2 && cookies.map(\.name) == ["host", "wide"] && cookies.map(\.isHostOnly) == [true, false])
        #expect(cookies.map(\.isSecure) == [false, true] && cookies.allSatisfy { $0.expires != nil })
    }

    private func holds(_ program: String, _ name: String) async throws {
        let origin = try ClassicOrigin()
        let result = try await Running.command(program, [name, origin.origin.url("").absoluteString])
        await origin.stop()
        #expect(result.code == 0, "\(result.text)\(result.errors)")
        #expect(result.text.hasPrefix("ok"))
    }
}
