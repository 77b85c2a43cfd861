// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport

/// Whether the file system of the temporary folder reads what the kernel has in memory without a wait (RWF_NOWAIT). Its
/// overlays do not: there a cache on disk asks its threads, as for any file that is not in memory.
enum ReadingAtOnce {
    static let isSupported: Bool = {
        let file = temporaryURL("read-at-once")
        defer { try? FileManager.default.removeItem(at: file) }
        guard (try? Data([1]).write(to: file)) != nil, let reader = try? FileReader(path: file.path) else {
            return false
        }
        var byte: UInt8 = 0
        return (try? withUnsafeMutableBytes(of: &byte) { try reader.readNow(into: $0, at: 0) }) == 1
    }()
    static let isMissing: Comment = "the file system does not read without a wait"
}
