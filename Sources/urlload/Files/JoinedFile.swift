// SPDX-License-Identifier: Apache-2.0

// One file for the bodies of several loads, one after the other: wget's `-O`.

import Glibc
import Synchronization

/// Records whether the first body was begun: it replaces an existing file, and the others are appended to it.
final class JoinedFile: Sendable {
    private let isBegun = Atomic<Bool>(false)

    var hasBegun: Bool { isBegun.load(ordering: .acquiring) }
    func begin() { isBegun.store(true, ordering: .releasing) }
}

/// A file that grows at its end. Used by one task.
final class AppendedFile {
    private let descriptor: FileDescriptor

    init(path: String) throws(OutputError) {
        let number = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw .system(errno, path) }
        descriptor = FileDescriptor(number: number, name: path)
    }

    deinit { close(descriptor.number) }

    func write(_ bytes: UnsafeRawBufferPointer) throws(OutputError) { try descriptor.write(bytes) }
}
