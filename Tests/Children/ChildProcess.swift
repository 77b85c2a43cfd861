// SPDX-License-Identifier: Apache-2.0

// Programs that tests start beside themselves.
//
// Not by Foundation's `Process`: in search of the highest open descriptor it copies 256 bytes of each entry of
// /proc/self/fd, whose names have five. Some 1,340 descriptors fill the C library's buffer of entries, and what it
// copies then lies behind that buffer's end. Tests in parallel have several thousand, and now and then the end was that
// of the mapped memory: a segmentation fault, in a test that had nothing to do with it.

import Foundation
import Glibc
import Synchronization
import URLLoadingIO

/// A program, from its start to its end. The library's descriptors are not inherited, and nothing is done about others.
package final class ChildProcess: Sendable {
    /// Where it reads from and writes to; `nil` is where the tests do.
    package struct Files: Sendable {
        package var input: String?
        /// Made, or emptied.
        package var output: String?
        package var errors: String?

        package init(input: String? = nil, output: String? = nil, errors: String? = nil) {
            (self.input, self.output, self.errors) = (input, output, errors)
        }
    }

    package struct Failure: Error, CustomStringConvertible {
        package let path: String
        package let number: Int32
        package var description: String { "\(path): \(String(cString: strerror(number)))" }
    }

    package let identifier: Int32
    /// Its process number is unique until it is reaped, so signals reach no other process.
    private let isReaped = Lock(false)
    private let exits: AsyncStream<Int32>

    /// - Parameters:
    ///   - path: no search for it is made.
    ///   - environment: besides that of the tests.
    ///   - folder: where it runs; `nil` is where the tests do.
    package init(
        _ path: String, _ arguments: [String], environment: [String: String] = [:], in folder: String? = nil,
        files: Files = Files()
    ) throws(Failure) {
        let all = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        // Swift does not import posix_spawn_file_actions_addchdir_np, which is an extension of the C library.
        let words =
            folder.map { ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", $0, path] + arguments } ?? [path] + arguments
        var started: pid_t = 0
        let failure = Self.withSettings(files) { actions, attributes in
            Self.withTexts(words) { arguments in
                Self.withTexts(all.map { "\($0)=\($1)" }) {
                    posix_spawn(&started, words[0], actions, attributes, arguments, $0)
                }
            }
        }
        guard failure == 0 else { throw Failure(path: path, number: failure) }
        identifier = started
        let (exits, said) = AsyncStream.makeStream(of: Int32.self)
        self.exits = exits
        // Of its own, and not of the tasks': they may all be waiting for something.
        Thread.detachNewThread { [self] in
            said.yield(reap())
            said.finish()
        }
    }

    package var isRunning: Bool { !isReaped.withLock { $0 } }

    /// Nothing for one that has ended.
    package func send(_ signal: Int32) { isReaped.withLock { if !$0 { kill(identifier, signal) } } }

    /// Its exit code, or the signal that ended it. For one task, once.
    package func wait() async -> Int32 {
        for await code in exits { return code }
        return -1
    }

    private func reap() -> Int32 {
        var info = siginfo_t()
        while waitid(P_PID, id_t(identifier), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        return isReaped.withLock { isReaped in
            var status: Int32 = 0
            waitpid(identifier, &status, 0)
            isReaped = true
            return status & 0x7F == 0 ? status >> 8 & 0xFF : status & 0x7F
        }
    }

    // MARK: Arguments of posix_spawn

    private typealias Settings = (UnsafePointer<posix_spawn_file_actions_t>, UnsafePointer<posix_spawnattr_t>) -> Int32

    private static func withSettings(_ files: Files, _ use: Settings) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        if let input = files.input { posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0) }
        for (descriptor, path) in [(1, files.output), (2, files.errors)] {
            if let path {
                posix_spawn_file_actions_addopen(&actions, Int32(descriptor), path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            }
        }
        // The threads of tasks hold signals back, and a program inherits that.
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        return use(&actions, &attributes)
    }

    private static func withTexts(_ texts: [String], _ use: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Int32)
        -> Int32
    {
        var list = texts.map { strdup($0) } + [nil]
        defer { for text in list { free(text) } }
        return list.withUnsafeMutableBufferPointer { list in list.baseAddress.map { use($0) } ?? EINVAL }
    }
}
