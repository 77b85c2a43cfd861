// SPDX-License-Identifier: Apache-2.0

// Files that a killed process has left unfinished. Such a file has a mark, the sticky bit, from its creation until a
// resume token that names it may have been stored, or until it is complete; its writer holds a lock (flock(2)) that the
// kernel releases with the process. So a file that is marked and not locked belongs to no process and to no token.
// Files without the mark are never removed here.

import Glibc
import Synchronization
import URLLoadingCSystem

package enum Leftovers {
    /// On file systems of other machines, whose locks may be invisible here, a file must be this old.
    private static let secondsOnRemoteFiles: Int64 = 24 * 60 * 60
    /// A process reads the names in one folder at most once in this time, in nanoseconds.
    private static let interval: Int64 = 60 * 60 * 1_000_000_000
    /// The folders with their last reading, and a bound for their number.
    private static let read = Lock<[String: Int64]>([:])
    private static let maximumFolders = 256

    /// Locks and marks an open file. Blocks.
    /// - Returns: false if another holder has the lock, or the file system has no modes.
    package static func mark(_ descriptor: Int32) -> Bool { csys_file_mark(descriptor) == 0 }

    /// Removes the mark of an open file; its lock stays. Blocks.
    package static func unmark(_ descriptor: Int32) { _ = csys_file_unmark(descriptor) }

    /// Removes leftovers from a folder that this process has not read lately. Blocks.
    /// - Parameters:
    ///   - prefix: the beginning of their names; letters and digits follow.
    ///   - now: monotonic nanoseconds.
    package static func sweepSometimes(_ folder: String, prefix: String, now: Int64 = Poller.now()) {
        let isDue = read.withLock { read in
            let key = prefix + folder
            if let last = read[key], now - last < interval { return false }
            if read.count >= maximumFolders { read = [:] }
            read[key] = now
            return true
        }
        if isDue { sweep(folder, prefix: prefix) }
    }

    /// Removes all leftovers from a folder. Blocks.
    /// - Returns: the names of the removed files.
    @discardableResult
    package static func sweep(_ folder: String, prefix: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var removed: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { text -> String? in
                    strncmp(text, prefix, prefix.utf8.count) == 0 ? String(cString: text) : nil
                }
            }
            guard let name, isName(name, prefix),
                csys_file_remove_leftover("\(folder)/\(name)", secondsOnRemoteFiles)
            else { continue }
            removed.append(name)
        }
        return removed
    }

    /// Whether at least ten letters and digits, and nothing else, follow the prefix.
    private static func isName(_ name: String, _ prefix: String) -> Bool {
        let random = name.utf8.dropFirst(prefix.utf8.count)
        return random.count >= 10 && random.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) }
    }
}
