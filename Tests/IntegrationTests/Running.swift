// SPDX-License-Identifier: Apache-2.0

// Child processes and their output.

import Foundation
import Glibc
import Testing
import URLLoadingTestChildren
import URLLoadingTestSupport

final class Running: Sendable {
    struct Result: Sendable {
        let code: Int32
        let output: [UInt8]
        let errors: String
        /// The maximum memory seen, in bytes; 0 unless sampled.
        var highWater = 0
        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// The executables are beside the test bundle.
    static let urlloadPath: String = {
        let here =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        return URL(fileURLWithPath: here).deletingLastPathComponent().appendingPathComponent("urlload").path
    }()

    static func urlload(
        _ arguments: [String], input: String? = nil, in folder: TemporaryFolder? = nil,
        environment: [String: String] = [:]
    ) async throws -> Result {
        try await command(urlloadPath, arguments, input: input, in: folder, environment: environment)
    }

    static func command(
        _ path: String, _ arguments: [String], input: String? = nil, in folder: TemporaryFolder? = nil,
        environment: [String: String] = [:]
    ) async throws -> Result {
        try await Running(path, arguments, input: input, in: folder, environment: environment).wait()
    }

    private let process: ChildProcess
    // Files, not pipes: nothing has to read while the child writes.
    private let written: TemporaryFolder
    private let highWaters: AsyncStream<Int>

    /// - Parameter environment: added to the environment of the tests.
    init(
        _ path: String, _ arguments: [String], input: String? = nil, in folder: TemporaryFolder? = nil,
        sampling: Bool = false,
        environment: [String: String] = [:]
    ) throws {
        written = try TemporaryFolder()
        try Data((input ?? "").utf8).write(to: URL(fileURLWithPath: written.path + "/in"))
        process = try ChildProcess(
            path, arguments, environment: environment, in: folder?.path,
            files: .init(input: written.path + "/in", output: written.path + "/out", errors: written.path + "/err"))
        let (highWaters, sampled) = AsyncStream.makeStream(of: Int.self)
        self.highWaters = highWaters
        if sampling { Self.sample(process, sampled) } else { sampled.finish() }
    }

    /// The output so far.
    var text: String { String(decoding: (try? written.bytes("out")) ?? [], as: UTF8.self) }

    /// Waits until the output fulfils a condition. It is a file, whose growth is not notified.
    func eventuallyText(file: StaticString = #fileID, line: UInt = #line, until isSo: (String) -> Bool) async throws {
        try await eventually(text, file: file, line: line, until: isSo)
    }

    func send(_ number: Int32) { process.send(number) }

    func wait() async throws -> Result {
        let code = await process.wait()
        var most = 0
        for await count in highWaters { most = count }
        return Result(
            code: code, output: try written.bytes("out"),
            errors: String(decoding: try written.bytes("err"), as: UTF8.self), highWater: most)
    }

    /// On a thread of its own from the start, because tasks may wait long for a thread during other tests.
    private static func sample(_ process: ChildProcess, _ said: AsyncStream<Int>.Continuation) {
        Thread.detachNewThread {
            var most = 0
            while process.isRunning {
                most = max(most, highWater(process.identifier))
                usleep(5000)
            }
            said.yield(most)
            said.finish()
        }
    }

    /// VmHWM of the process image; `wait4` reports a value that begins with the parent's.
    private static func highWater(_ pid: Int32) -> Int {
        guard let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
            // Between fork and exec the process is a copy of this one.
            status.hasPrefix("Name:\turlload\n")
        else { return 0 }
        return (line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
    }
}
