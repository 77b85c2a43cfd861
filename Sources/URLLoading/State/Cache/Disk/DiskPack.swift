// SPDX-License-Identifier: Apache-2.0

// Small bodies share files, packs: storing a body creates no file, and reading one asks no database. A process appends
// to a pack of its own, which it has locked. Bytes in a pack never change and a place is never used twice, so what is
// known about a place is right for ever, or the bytes are gone: with the pack, or as a hole (`DiskChange.Hole`).

import Synchronization
import URLLoadingIO

/// The place of a body in a pack.
struct PackPlace: Sendable, Equatable {
    /// The name of the pack; empty for an empty body.
    let pack: String
    let offset: Int64
    let count: Int
    /// The checksum of the body.
    let sum: UInt32
}

/// The pack to which the bodies of this process are appended. Accessed by the lane only.
final class DiskPack: @unchecked Sendable {
    // Unchecked: accessed by the lane only.
    let name: String
    private let file: FileWriter
    private var length: Int64 = 0

    /// The first letters of the names, and the folder of all packs. Files of one body never begin with a 9.
    private static let prefix = "99"
    /// The size in bytes from which on no body is appended.
    private static let fullSize: Int64 = 4 << 20

    static func isPack(_ name: String) -> Bool { name.utf8.first == UInt8(ascii: "9") }

    /// Creates a pack. Blocks.
    init(_ paths: DiskPaths) throws(IOFailure) {
        file = try paths.makeFile(Self.prefix)
        name = DiskPaths.name(of: file)
    }

    /// Whether bodies may be appended: it is not full, and was not removed with its folder.
    var takesMore: Bool { length < Self.fullSize && file.isInPlace }

    /// Appends bodies with one write; returns their places, by the id of the response. After a failure the pack must
    /// not be used any more. Blocks.
    func append(_ bodies: [(id: Int64, body: Chunk)]) throws(IOFailure) -> [Int64: PackPlace] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(bodies.reduce(0) { $0 + $1.body.count })
        var places: [Int64: PackPlace] = [:]
        for (id, body) in bodies {
            body.withUnsafeBytes { part in
                places[id] = PackPlace(
                    pack: name, offset: length + Int64(bytes.count), count: part.count, sum: BlockSums.sum(part))
                bytes.append(contentsOf: part)
            }
        }
        try file.write(bytes, at: length)
        length += Int64(bytes.count)
        return places
    }

    /// Keeps the pack when this process ends, because a row refers to it now.
    func keep() { file.keep() }
    func synchronize() { try? file.synchronize() }
    /// Ends the claim, so that the pack can be removed when no row refers to it any more.
    func close() { file.unclaim() }
}

/// The packs that are open for reading: a body in one of them is read in the thread that asks, if the kernel has it in
/// memory.
final class OpenPacks: Sendable {
    private struct Readers: Sendable {
        var byName: [String: FileReader] = [:]
        /// The names in the order of opening.
        var names: [String] = []
    }
    private let paths: DiskPaths
    private let readers = Lock(Readers())

    /// With 4 MiB in a pack, 128 MiB of small bodies are within reach.
    private static let maximum = 32

    init(_ paths: DiskPaths) { self.paths = paths }

    /// Returns a body if no disk has to be waited for; `nil` if its pack is not open, if the kernel does not have the
    /// bytes in memory, and if they are gone or damaged: `read` tells which.
    func readNow(_ place: PackPlace) -> Chunk? {
        guard place.count > 0 else { return Self.empty }
        guard let reader = readers.withLock({ $0.byName[place.pack] }) else { return nil }
        let storage = ChunkStorage(capacity: place.count)
        let count = (try? reader.readNow(into: storage.room(from: 0), at: place.offset)) ?? nil
        return Self.verified(storage, count, place)
    }

    /// Returns a body; `nil` if it is gone or damaged. Blocks.
    /// - Throws: a failure to open or read the pack (`isTemporary` for a temporary reason).
    func read(_ place: PackPlace) throws(IOFailure) -> Chunk? {
        guard place.count > 0 else { return Self.empty }
        let reader = try reader(of: place.pack)
        let storage = ChunkStorage(capacity: place.count)
        return Self.verified(storage, try reader.read(into: storage.room(from: 0), at: place.offset), place)
    }

    private static var empty: Chunk { Chunk(copying: UnsafeRawBufferPointer(start: nil, count: 0)) }

    private static func verified(_ storage: ChunkStorage, _ count: Int?, _ place: PackPlace) -> Chunk? {
        guard count == place.count, BlockSums.sum(storage.bytes(0..<place.count)) == place.sum else { return nil }
        return Chunk(storage: storage, range: 0..<place.count)
    }

    private func reader(of name: String) throws(IOFailure) -> FileReader {
        if let reader = readers.withLock({ $0.byName[name] }) { return reader }
        let reader = try FileReader(path: paths.body(name))
        reader.leaveAccessTime()
        readers.withLock { readers in
            guard readers.byName.updateValue(reader, forKey: name) == nil else { return }
            readers.names.append(name)
            if readers.names.count > Self.maximum { readers.byName[readers.names.removeFirst()] = nil }
        }
        return reader
    }

    /// Closes all packs: an open one keeps its room on the disk after its removal.
    func close() { readers.withLock { $0 = Readers() } }
}
