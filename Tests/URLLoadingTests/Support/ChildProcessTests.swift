// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingTestChildren
import URLLoadingTestSupport

/// The start of child processes by the tests, and that no other code of the tests starts any.
@Suite(.timeLimit(.minutes(4))) struct ChildProcessTests {
    @Test func `a program gets its files, folder and arguments, and its exit code is returned`() async throws {
        let folder = try makeTemporaryFolder("child")
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data("in".utf8).write(to: folder.appendingPathComponent("in"))
        let child = try ChildProcess(
            "/bin/sh", ["-c", "pwd -P; cat; printf '|%s|%s' \"$1\" \"$WORD\"; echo bad >&2; exit 7", "sh", "a b"],
            environment: ["WORD": "c d"], in: folder.path,
            files: .init(input: folder.path + "/in", output: folder.path + "/out", errors: folder.path + "/err"))
        #expect(await child.wait() == 7)
        #expect(!child.isRunning)
        func text(_ name: String) throws -> String {
            try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
        }
        let (output, errors) = (try text("out"), try text("err"))
        #expect(output.hasSuffix("\(folder.lastPathComponent)\nin|a b|c d"), "\(output)")
        #expect(errors == "bad\n")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGKILL])
    func `a signal reaches the program, whatever this process's threads block`(
        _ signal: Int32
    ) async throws {
        let child = try ChildProcess("/bin/sleep", ["1000"])
        #expect(child.isRunning)
        child.send(signal)
        #expect(await child.wait() == signal)
        child.send(signal)
    }

    @Test func `a program that is not there is an error`() {
        #expect(throws: ChildProcess.Failure.self) { try ChildProcess("/nowhere/at/all", []) }
    }

    /// It reads behind the end of a buffer where there are more than some 1,340 descriptors, as there are while tests
    /// run in parallel: see `ChildProcess`.
    @Test func `no test starts programs with Foundation's Process`() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let calls = ["()", ".run("].map { "Process" + $0 }
        for folder in [tests, tests.deletingLastPathComponent().appendingPathComponent("Sources")] {
            let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
                $0.hasSuffix(".swift")
            }
            #expect(!names.isEmpty)
            for name in names {
                let text = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
                #expect(!calls.contains { text.contains($0) }, "\(name)")
            }
        }
    }
}
