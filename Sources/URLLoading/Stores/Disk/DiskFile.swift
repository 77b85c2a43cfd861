// A body that is being written to a file. Only the lane touches it, but for `hasFailed`.

import Synchronization
import URLLoadingIO

final class DiskFile: @unchecked Sendable {
    /// Letters and digits, random: what it is called by the time it is whole.
    private(set) var name = ""
    private(set) var length: Int64 = 0
    private var writer: FileWriter?
    private var sums = BlockSums()
    private let failed = Atomic<Bool>(false)

    /// Whoever brings more may stop.
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
        // The folder is chosen first, and the name says which it is.
        let letters = Array("abcdefghijklmnopqrstuvwxyz012345".utf8)
        let prefix = String(decoding: [letters[Int.random(in: 0..<32)], letters[Int.random(in: 0..<8)]], as: UTF8.self)
        let folder = paths.folder(of: prefix)
        try PrivateFolder.make(folder)
        while true {
            let made = try FileWriter.create(in: folder, prefix: prefix)
            // Whoever sweeps up may have been faster: what is claimed is not swept.
            guard made.claim() else { continue }
            name = made.path.split(separator: "/").last.map(String.init) ?? ""
            writer = made
            return made
        }
    }

    /// From now on a row says that it is there.
    func keep() {
        writer?.keep()
        writer?.unclaim()
        writer = nil
    }

    func finishSums() -> [UInt32] { sums.finish() }
}
