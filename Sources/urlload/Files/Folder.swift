// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import URLLoading

/// Checks whether a path is taken, also by a symbolic link without a target.
enum FileCheck {
    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// True for a device, a pipe or a socket, such as `/dev/null`, and for standard output and standard error by their
    /// paths: they are written to, and never replaced or renamed.
    static func isDevice(_ path: String) -> Bool {
        guard FileDescriptor.standard(path) == nil else { return true }
        var status = stat()
        return stat(path, &status) == 0 && ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
    }
}

enum Folder {
    /// Creates the parent folders of a file.
    static func make(for path: String) throws(OutputError) {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return }
        let folder = String(path[..<slash])
        do { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) } catch {
            throw OutputError(.write, "\(folder): cannot be created: \(String(cString: strerror(errno)))")
        }
    }
}

/// The modification time of a file (`-R`).
enum FileTime {
    /// Sets the time of a file to Last-Modified, if the head has it.
    static func set(_ headers: Headers?, of path: String) {
        guard let date = headers?[.lastModified].flatMap({ HTTPDate($0) }), !FileCheck.isDevice(path) else { return }
        let time = timespec(tv_sec: Int(date.secondsSince1970), tv_nsec: 0)
        utimensat(AT_FDCWD, path, [time, time], 0)
    }
}
