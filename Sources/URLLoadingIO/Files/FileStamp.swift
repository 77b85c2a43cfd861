import Glibc

/// What of a file changes when it is written anew: cheap to ask, and no proof.
package struct FileStamp: Sendable, Hashable {
    /// -1 while it is not there.
    private let size: Int64
    private let modified: Int64

    /// Asked before every handshake: one call of the system, and a file that is opened by nobody.
    package init(_ path: String) {
        var info = stat()
        let isThere = stat(path, &info) == 0
        size = isThere ? Int64(info.st_size) : -1
        modified = isThere ? Int64(info.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(info.st_mtim.tv_nsec) : -1
    }
}
