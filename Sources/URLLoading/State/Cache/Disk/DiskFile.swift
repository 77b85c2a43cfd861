// SPDX-License-Identifier: Apache-2.0

// A body being written to a file. Accessed by the lane only, except for `hasFailed`.

import Synchronization
import URLLoadingIO

final class DiskFile: @unchecked Sendable {
    // Unchecked: accessed by the lane only, except for `failed`.
    /// The final name of the file: random letters and digits.
    private(set) var name = ""
    private(set) var length: Int64 = 0
    private var writer: FileWriter?
    private var sums = BlockSums()
    private let failed = Atomic<Bool>(false)

    /// Whether writing has failed, so that the writer may stop.
    var hasFailed: Bool { failed.load(ordering: .acquiring) }
    func fail() {
        failed.store(true, ordering: .releasing)
        writer = nil
    }

    /// Blocks.
    func write(_ bytes: UnsafeRawBufferPointer, _ paths: DiskPaths) throws(IOFailure) {
        let writer = try opened(paths)
        try writer.write(bytes, at: length)
        sums.add(bytes)
        length += Int64(bytes.count)
    }

    private func opened(_ paths: DiskPaths) throws(IOFailure) -> FileWriter {
        if let writer { return writer }
        // The folder is chosen first, and is a prefix of the name.
        let letters = Array("abcdefghijklmnopqrstuvwxyz012345".utf8)
        let prefix = String(decoding: [letters[Int.random(in: 0..<32)], letters[Int.random(in: 0..<8)]], as: UTF8.self)
        let made = try paths.makeFile(prefix)
        name = DiskPaths.name(of: made)
        writer = made
        return made
    }

    /// Keeps the file, because a row refers to it now.
    func keep() {
        writer?.keep()
        writer?.unclaim()
        writer = nil
    }

    func finishSums() -> [UInt32] { sums.finish() }
}
