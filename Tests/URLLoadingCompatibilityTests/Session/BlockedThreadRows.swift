// SPDX-License-Identifier: Apache-2.0

// Programs that block threads until loads of the classic API have ended (`Tests/BlockedProgram`): a load finishes
// whatever waits for it. Each scene is a process, because it blocks all threads of Swift's pool.

import Foundation
import Glibc
import Testing
import URLLoadingTestChildren
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@Suite(.timeLimit(.minutes(4)))
struct BlockedThreadRows {
    private static let program: String = {
        let here =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        return URL(fileURLWithPath: here).deletingLastPathComponent().appendingPathComponent("BlockedProgram").path
    }()

    private static func routes(_ origin: HTTPTestServer) {
        origin.route("/") { _ in .ok("plain") }
        origin.route("/large") { _ in .ok(.repeated(count: 10_000_000)) }
        origin.route("/moved") { _ in .redirect("/") }
        origin.route("/echo") { .ok(.bytes(Array($0.body))) }
        origin.route("/kept") { _ in .ok("kept", headers: [.cacheControl: "max-age=60"]) }
        origin.webSocket("/chat", .echo)
    }

    /// Runs a scene; returns its exit code and what it wrote to the standard error.
    private static func run(_ scene: String, onOneCore: Bool) async throws -> (code: Int32, errors: String) {
        let authority = try TestCertificateAuthority(commonName: "Blocked")
        return try await withHTTPTestServer(serving: routes) { origin in
            try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { secure in
                secure.route("/") { _ in .ok("secure") }
                let folder = try TemporaryFolder()
                let chat = origin.url("/chat").absoluteString.replacing("http:", with: "ws:")
                let words = [program, scene, origin.url().absoluteString, secure.url().absoluteString, chat]
                let command = onOneCore ? ["/usr/bin/taskset", "-c", "0"] + words : words
                let child = try ChildProcess(
                    command[0], Array(command.dropFirst()), files: .init(errors: folder.path + "/errors"))
                let code = await child.wait()
                return (code, String(decoding: (try? folder.bytes("errors")) ?? [], as: UTF8.self))
            }
        }
    }

    @Test(
        "a load of the classic API ends while tasks block every thread of the pool until it has",
        arguments: ["tasks", "everything", "deinit", "queue", "protocols", "cache"], [false, true])
    func blocked(scene: String, onOneCore: Bool) async throws {
        let (code, errors) = try await Self.run(scene, onOneCore: onOneCore)
        #expect(code == 0, "\(scene): \(errors)")
    }

    @Test("the first load of a process without a free descriptor ends, and later loads do when there are some")
    func descriptors() async throws {
        var (code, errors) = try await Self.run("descriptors", onOneCore: false)
        // libdispatch looks at its threads in /proc once a second, and ends a process that has no descriptor for that.
        for _ in 0..<5 where code == SIGILL { (code, errors) = try await Self.run("descriptors", onOneCore: false) }
        #expect(code == 0, "\(errors)")
    }

    #if DEBUG
    @Test("a debug build says that loads of the modern API wait because the pool is blocked")
    func note() async throws {
        let (code, errors) = try await Self.run("modern", onOneCore: false)
        #expect(code == 0)
        #expect(
            errors.split(separator: "\n").filter {
                $0.contains("waited a second for a thread of Swift's concurrency pool")
            }.count == 1)
    }

    @Test("a debug build says once which task has waited five seconds for the reader of its body")
    func unread() async throws {
        let (code, errors) = try await Self.run("unread", onOneCore: false)
        #expect(code == 0)
        let notes = errors.split(separator: "\n").filter { $0.contains("has waited 5 s for the reader of its body") }
        #expect(notes.count == 1 && notes[0].contains("http://127.0.0.1"), "\(errors)")
    }
    #endif
}
