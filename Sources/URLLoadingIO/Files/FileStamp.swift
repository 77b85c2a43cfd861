// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Size and modification time of a file, to notice that it was replaced. Cheap to read, but no proof that the file is
/// unchanged.
package struct FileStamp: Sendable, Hashable {
    /// -1 if the file does not exist.
    private let size: Int64
    private let modified: Int64

    /// Reads the stamp with one stat(2), without opening the file, because this runs before every TLS handshake.
    package init(_ path: String) {
        var info = stat()
        let exists = stat(path, &info) == 0
        size = exists ? Int64(info.st_size) : -1
        modified = exists ? Int64(info.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(info.st_mtim.tv_nsec) : -1
    }
}
