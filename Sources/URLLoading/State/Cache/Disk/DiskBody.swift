// SPDX-License-Identifier: Apache-2.0

// A body in a file. It is read in blocks, and a block is delivered only after its checksum was verified. The open file
// stays readable after its removal.

import Glibc
import URLLoadingIO

final class DiskBody: StoredBody {
    let length: Int64
    private let file: FileReader
    private let sums: [UInt32]
    private let onDamage: @Sendable () -> Void

    /// Throws if the file cannot be opened (`isTemporary` for a temporary reason), is missing, or has another length.
    /// Blocks.
    init(_ head: DiskHead, _ path: String, onDamage: @escaping @Sendable () -> Void) throws(IOFailure) {
        length = head.response.storedLength
        sums = head.sums
        self.onDamage = onDamage
        file = try FileReader(path: path)
        guard file.kind == .file, file.size == length else { throw IOFailure(.system(ENOENT), .open) }
    }

    var bytes: Chunk? { nil }

    func read(at offset: Int64, atMost count: Int) -> Chunk? {
        guard offset >= 0, offset <= length else { return nil }
        let wanted = min(Int64(max(1, count)), length - offset)
        guard wanted > 0 else { return Chunk(copying: UnsafeRawBufferPointer(start: nil, count: 0)) }
        let size = Int64(BlockSums.blockSize)
        let first = offset / size
        // Only whole blocks can be verified: the last block is left for the next read, unless it is also the first.
        let end = min(max((offset + wanted) / size, first + 1), first + 16)
        guard let storage = blocks(first..<end) else {
            onDamage()
            return nil
        }
        let start = Int(offset - first * size)
        let there = Int(min(length, end * size) - first * size)
        return Chunk(storage: storage, range: start..<min(there, start + Int(wanted)))
    }

    private func blocks(_ numbers: Range<Int64>) -> ChunkStorage? {
        let size = Int64(BlockSums.blockSize)
        let start = numbers.lowerBound * size
        let count = Int(min(length, numbers.upperBound * size) - start)
        let storage = ChunkStorage(capacity: count)
        guard fill(storage.room(from: 0), at: start) else { return nil }
        for number in numbers {
            let from = Int(number * size - start)
            guard from < count else { break }
            let block = storage.bytes(from..<min(count, from + Int(size)))
            guard sums.indices.contains(Int(number)), BlockSums.sum(block) == sums[Int(number)] else { return nil }
        }
        return storage
    }

    private func fill(_ room: UnsafeMutableRawBufferPointer, at start: Int64) -> Bool {
        var done = 0
        while done < room.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: room[done...])
            guard let count = try? file.read(into: rest, at: start + Int64(done)), count > 0 else { return false }
            done += count
        }
        return true
    }
}
