// SPDX-License-Identifier: Apache-2.0

import Glibc
import URLLoadingCSystem

/// The environment, the user and the children of this process.
package enum ProgramEnvironment {
    /// All variables of this process. Must not be called while another thread changes them (getenv(3)).
    package static var all: [String: String] {
        var variables: [String: String] = [:]
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            if let sign = text.firstIndex(of: "=") {
                variables[String(text[..<sign])] = String(text[text.index(after: sign)...])
            }
            next += 1
        }
        return variables
    }

    /// The name of this process's user; `nil` if the system has none.
    package static var userName: String? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var room = [CChar](repeating: 0, count: 16 * 1024)
        guard getpwuid_r(geteuid(), &entry, &room, room.count, &found) == 0, found != nil, let name = entry.pw_name
        else {
            return nil
        }
        return String(cString: name)
    }

    /// Waits for the end of a child; returns its exit code, or 128 plus the signal that ended it. Negative if the
    /// status is lost, because this process ignores the ends of its children, or other code reaps them all
    /// (waitpid(2)). Blocks.
    package static func wait(for process: Int32) -> Int32 { csys_program_wait(process) }
}

package enum FileKind {
    /// Returns whether a path leads to a local socket.
    package static func isSocket(_ path: String) -> Bool {
        var info = stat()
        return stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFSOCK
    }
}

/// Clocks for times that are stored: the calendar's, and one that includes the time of system sleep.
package enum SystemTime {
    /// Nanoseconds since 1970.
    package static var wall: Int64 { csys_wall_time() }
    /// Nanoseconds since the start of the system, including the time of its sleep (CLOCK_BOOTTIME).
    package static var boot: Int64 { csys_boot_time() }
}

extension ProgramEnvironment {
    /// The identifier of this process.
    package static var process: Int32 { getpid() }
}

extension FileReader {
    /// Returns the content of a small file, whatever size the system reports. Blocks.
    package static func text(_ path: String) throws(IOFailure) -> String {
        let reader = try FileReader(path: path)
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 4096)
        while bytes.count < 1 << 20 {
            let offset = Int64(bytes.count)
            let result = room.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in try reader.read(into: room, at: offset) }
            }
            let count = try result.get()
            guard count > 0 else { break }
            bytes += room.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
