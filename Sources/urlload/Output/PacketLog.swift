// SPDX-License-Identifier: Apache-2.0

// Writes the packets of HTTP/3 connections for `--qlog`. A file of qlog describes one connection, so further ones get
// files of their own: FILE, FILE.2, FILE.3.

import Glibc
import Synchronization
import URLLoadingIO

final class PacketLog: Sendable {
    private let path: String
    private let state: Lock<State>

    private struct State: Sendable {
        /// The file that no connection has yet.
        var first: FileDescriptor?
        var files: [Int: FileDescriptor] = [:]
        var count = 0
        var problem: OutputError?
    }

    /// The logs by the paths of their files. Groups of the command line that name the same file share its log.
    private static let logs = Lock<[String: PacketLog]>([:])

    /// Returns the log of a file, which the first call creates.
    static func shared(_ path: String) throws(OutputError) -> PacketLog {
        try logs.withLock { (logs) throws(OutputError) -> PacketLog in
            if let log = logs[path] { return log }
            let log = try PacketLog(path)
            logs[path] = log
            return log
        }
    }

    /// Creates FILE, so that one that cannot be written is found before the load.
    private init(_ path: String) throws(OutputError) {
        self.path = path
        state = Lock(State(first: try Self.open(path)))
    }

    deinit {
        let files = state.withLock { [$0.first].compactMap(\.self) + $0.files.values }
        for file in files { close(file.number) }
    }

    private static func open(_ path: String) throws(OutputError) -> FileDescriptor {
        let number = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw .system(errno, path) }
        return FileDescriptor(number: number, name: path)
    }

    /// Adds a record of a connection.
    func add(_ record: [UInt8], of connection: Int) {
        state.withLock { state in
            do throws(OutputError) {
                try file(of: connection, &state).write(record)
            } catch {
                state.problem = state.problem ?? error
            }
        }
    }

    private func file(of connection: Int, _ state: inout State) throws(OutputError) -> FileDescriptor {
        if let file = state.files[connection] { return file }
        state.count += 1
        let file: FileDescriptor
        if let first = state.first { file = first } else { file = try Self.open("\(path).\(state.count)") }
        state.first = nil
        state.files[connection] = file
        return file
    }

    /// The first failure to write.
    var problem: OutputError? { state.withLock { $0.problem } }
}
