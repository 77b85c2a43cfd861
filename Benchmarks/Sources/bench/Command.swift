// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The result of a program that was run to its end in a process group of its own, with the resources it used.
struct Finished {
    var output: String
    /// The exit status; if negative, the number of the signal that ended the program.
    var status: Int32
    var usage: rusage
    var wall: Double
}

struct Failure: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

/// Starts a program. Returns its pid and the read end of its standard output.
func spawn(_ arguments: [String], environment: [String: String] = [:]) throws -> (pid: pid_t, output: Int32) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw Failure("pipe: errno \(errno)") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    posix_spawnattr_setpgroup(&attributes, 0)

    let merged = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    var envp: [UnsafeMutablePointer<CChar>?] = merged.map { strdup("\($0)=\($1)") } + [nil]
    defer { for string in argv + envp { free(string) } }
    var pid: pid_t = 0
    let error = posix_spawnp(&pid, arguments[0], &actions, &attributes, &argv, &envp)
    close(ends[1])
    guard error == 0 else {
        close(ends[0])
        throw Failure("\(arguments[0]): errno \(error)")
    }
    return (pid, ends[0])
}

func run(_ arguments: [String], environment: [String: String] = [:], timeout: Double = 60) throws -> Finished {
    let began = monotonic()
    let (pid, output) = try spawn(arguments, environment: environment)
    defer { close(output) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
        let left = began + timeout - monotonic()
        var poll = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
        if left <= 0 || Glibc.poll(&poll, 1, Int32(left * 1000) + 1) == 0 {
            kill(-pid, SIGKILL)
            _ = reap(pid)
            throw Failure("no end after \(Int(timeout)) s")
        }
        let count = read(output, &buffer, buffer.count)
        if count <= 0 { break }
        bytes += buffer[..<count]
    }
    let (status, usage) = reap(pid)
    return Finished(
        output: String(decoding: bytes, as: UTF8.self), status: status, usage: usage, wall: monotonic() - began)
}

/// Returns the output of a command, including standard error; empty if the command does not exist.
func says(_ command: String) -> String {
    let text = (try? run(["sh", "-c", "\(command) 2>&1"]))?.output ?? ""
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
}

func reap(_ pid: pid_t) -> (status: Int32, usage: rusage) {
    var status: Int32 = 0
    var usage = rusage()
    while wait4(pid, &status, 0, &usage) < 0, errno == EINTR {}
    let signal = status & 0x7f
    return (signal == 0 ? (status >> 8) & 0xff : -signal, usage)
}

func monotonic() -> Double {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
}

extension rusage {
    var cpu: Double {
        Double(ru_utime.tv_sec + ru_stime.tv_sec) + Double(ru_utime.tv_usec + ru_stime.tv_usec) / 1e6
    }
    var switches: Int { ru_nvcsw + ru_nivcsw }
}
