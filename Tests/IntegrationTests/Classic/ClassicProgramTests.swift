// Programs as they were written for FoundationNetworking (Tests/ClassicPrograms), built from the same
// source against that module, against the layer, and against the layer under that module's name.

import Foundation
import Testing
import URLLoadingTesting

@Suite(.serialized, .timeLimit(.minutes(5)))
struct ClassicProgramTests {
    static let names = ["delegates", "handlers", "downloads", "images", "login", "stub"]

    @Test("with the layer in the place of the import", arguments: names)
    func moved(_ name: String) async throws {
        try await holds(Running.urlloadPath.replacing("/urlload", with: "/ClassicPrograms"), name)
    }

    @Test("unchanged, with the shim")
    func unchanged() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.throughShim(folder)
        for name in Self.names { try await holds(program, name) }
    }

    @Test("unchanged, with an alias of the module")
    func aliased() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.throughAlias(folder)
        for name in Self.names { try await holds(program, name) }
    }

    @Test("target by target: one loads by FoundationNetworking, the other by the layer")
    func mixed() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.targetByTarget(folder)
        let origin = try ClassicOrigin()
        let result = try await Running.command(program, [origin.origin.url("").absoluteString])
        await origin.stop()
        #expect(result.code == 0 && result.text.hasPrefix("ok"), "\(result.text)\(result.errors)")
    }

    /// What it does there is not ours to demand: the sources must build, so that they are legacy code indeed.
    @Test("the same sources build against FoundationNetworking")
    func incumbent() async throws {
        let folder = try TemporaryFolder()
        let program = try await Compiled.againstIncumbent(folder)
        #expect(FileManager.default.isExecutableFile(atPath: program))
        // For the table in docs/guides/moving.md.
        guard Servers.variable("COMPARE") != nil else { return }
        for name in Self.names {
            let origin = try ClassicOrigin()
            let result = try await Running.command("/usr/bin/timeout", ["60", program, name, origin.origin.url("").absoluteString])
            await origin.stop()
            print("FoundationNetworking \(name): \(result.code)\n\(result.text)\(result.errors.prefix(2000))")
        }
    }

    private func holds(_ program: String, _ name: String) async throws {
        let origin = try ClassicOrigin()
        let result = try await Running.command(program, [name, origin.origin.url("").absoluteString])
        await origin.stop()
        #expect(result.code == 0, "\(result.text)\(result.errors)")
        #expect(result.text.hasPrefix("ok"))
    }
}
