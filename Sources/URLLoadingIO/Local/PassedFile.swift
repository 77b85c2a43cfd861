// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import URLLoadingCSystem

/// An open file that one process sends to another. Closed with the last reference.
package final class PassedFile: Sendable {
    package let descriptor: Int32
    private let isReleased = Atomic<Bool>(false)

    package init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { if !isReleased.load(ordering: .acquiring) { _ = csys_close(descriptor) } }

    /// Returns the descriptor, which the caller then owns.
    func release() -> Int32 {
        isReleased.store(true, ordering: .releasing)
        return descriptor
    }

    /// The identity of the file; `nil` if the system does not report it.
    package var place: FilePlace? {
        var info = stat()
        return fstat(descriptor, &info) == 0 ? FilePlace(info) : nil
    }
}

/// The identity of a file or folder: device and inode, equal in every mount namespace.
package struct FilePlace: Sendable, Hashable, Codable {
    package let device: UInt64
    package let inode: UInt64

    package init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }

    init(_ info: stat) { self.init(device: UInt64(info.st_dev), inode: UInt64(info.st_ino)) }

    /// Follows symbolic links; `nil` if the file does not exist or is not accessible.
    package init?(_ path: String) {
        var info = stat()
        guard stat(path, &info) == 0 else { return nil }
        self.init(info)
    }

    /// Does not follow a symbolic link; `nil` if the file does not exist or is not accessible.
    package init?(itself path: String) {
        var info = stat()
        guard lstat(path, &info) == 0 else { return nil }
        self.init(info)
    }
}
