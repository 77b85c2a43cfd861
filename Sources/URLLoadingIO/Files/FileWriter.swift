// A file that is being written: under a name nobody can guess, readable by its owner alone, removed when
// nobody has given it a place. Only the file itself is ever removed, not what bears its name by then.

import Synchronization
import URLLoadingCSystem

package final class FileWriter: Sendable {
    /// Where it is now.
    package let path: String
    fileprivate let file: OpenFile
    private var descriptor: Int32 { file.descriptor }
    private let progress: DiskProgress
    /// Somebody else's by now, or meant to stay.
    private let isKept = Atomic<Bool>(false)
    /// Somebody writes to it.
    private let isClaimed = Atomic<Bool>(false)
    /// It is somebody's who got it whole: nobody may write to it any more.
    private let isDelivered = Atomic<Bool>(false)

    private init(path: String, descriptor: Int32) {
        self.path = path
        file = OpenFile(descriptor)
        progress = DiskProgress(file, in: Self.folder(of: path))
    }

    /// The folder of a path, as it is written there.
    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes a new file in a folder. Blocks.
    package static func create(in folder: String, prefix: String) throws(IOFailure) -> FileWriter {
        var failure: Int32 = EEXIST
        for _ in 0..<8 {
            let path = "\(folder)/\(prefix)\(try randomText())"
            let descriptor = csys_file_create(path)
            if descriptor >= 0 { return FileWriter(path: path, descriptor: descriptor) }
            failure = -descriptor
            guard failure == EEXIST else { break }
        }
        throw IOFailure(.system(failure), .open)
    }

    /// Opens one that was left behind, and is a regular file that only we may have written. Blocks.
    /// - Returns: the file and its size; it is kept until said otherwise.
    package static func reopen(_ path: String) throws(IOFailure) -> (FileWriter, size: Int64) {
        var info = csys_file_info()
        let descriptor = csys_file_reopen(path, &info)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .open) }
        guard info.is_regular, info.is_own else {
            _ = csys_close(descriptor)
            throw IOFailure(.system(EPERM), .open)
        }
        let writer = FileWriter(path: path, descriptor: descriptor)
        writer.keep()
        return (writer, info.size)
    }

    deinit { discard() }

    /// From now on it stays when nobody refers to it.
    package func keep() { isKept.store(true, ordering: .releasing) }
    /// From now on it goes with the last reference.
    package func unkeep() { isKept.store(false, ordering: .releasing) }

    /// Makes the caller the one who writes to it, in this process and in all; returns false if there is one, or
    /// if it is complete and somebody's.
    package func claim() -> Bool {
        guard !isClaimed.exchange(true, ordering: .acquiring) else { return false }
        if !isDelivered.load(ordering: .acquiring), csys_file_claim(descriptor) >= 0 { return true }
        isClaimed.store(false, ordering: .releasing)
        return false
    }

    package func unclaim() {
        _ = csys_file_unclaim(descriptor)
        isClaimed.store(false, ordering: .releasing)
    }

    /// It is complete, and handed over.
    package func deliver() { isDelivered.store(true, ordering: .releasing) }
    package var wasDelivered: Bool { isDelivered.load(ordering: .acquiring) }

    /// Removes it under a name it was given.
    package func remove(at current: String) {
        if csys_file_is_same(current, descriptor) { _ = csys_file_remove(current) }
    }

    /// Removes it, unless it is kept.
    package func discard() {
        guard !isKept.exchange(true, ordering: .acquiringAndReleasing) else { return }
        if csys_file_is_same(path, descriptor) { _ = csys_file_remove(path) }
    }

    /// Writes all of `bytes`. Blocks when the system's buffers are full.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(IOFailure) {
        var done = 0
        while done < bytes.count {
            let moved = csys_file_write(
                descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done, offset + Int64(done))
            // A full disk may take a part first.
            guard moved > 0 else { throw IOFailure(.system(moved == 0 ? ENOSPC : Int32(-moved)), .write) }
            done += moved
        }
    }

    package func truncate(to size: Int64) throws(IOFailure) {
        progress.cut(to: size)
        try check(csys_file_truncate(descriptor, size))
    }

    // MARK: What is on the disk

    /// Content is written from the start up to `offset`. Every 64 MiB, and with the first bytes after 5 seconds, a thread
    /// apart brings it to the disk: the writer never waits for that.
    /// - Parameter now: monotonic nanoseconds.
    package func wrote(upTo offset: Int64, now: Int64) { progress.wrote(upTo: offset, now: now) }

    /// How much survives a loss of power; `nil` if nothing is known to.
    package var mark: DiskMark? { progress.mark }

    /// What an earlier process knew of a file that was reopened.
    package func go(onFrom mark: DiskMark) { progress.go(onFrom: mark) }

    package var size: Int64 { csys_file_size(descriptor) }

    /// Reads what was written; fewer bytes only at the end.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(IOFailure) -> Int {
        let count = csys_file_read(descriptor, buffer.baseAddress, buffer.count, offset)
        guard count >= 0 else { throw IOFailure(.system(Int32(-count)), .read) }
        return count
    }

    /// Returns when the bytes are on the disk. Blocks.
    package func synchronize() throws(IOFailure) { try check(csys_file_sync(descriptor)) }

    /// The permissions of a file that is given its name.
    package enum Permissions: Sendable {
        /// Those it has: 0600 for a file that this process has made.
        case unchanged
        /// Those of the file it replaces, or those that the umask leaves of 0666. A file that had its name before keeps
        /// its own unless it replaces another.
        case usual
        /// Bits beyond 0777 are ignored.
        case exactly(UInt16)
    }

    /// Gives the file its name, in one step; a file of that name is replaced if `replacing` says so. Blocks.
    ///
    /// File systems without permissions ignore them. If this fails, the file is where it was, for the same users.
    /// - Parameters:
    ///   - current: where it is now.
    ///   - permissions: set together with the name.
    ///   - synchronizes: content and name are on the disk when this returns.
    package func move(
        from current: String, to destination: String, replacing: Bool, permissions: Permissions = .unchanged,
        synchronizes: Bool
    ) throws(IOFailure) {
        let before = csys_file_mode(descriptor)
        let wanted: UInt32? =
            switch permissions {
            case .unchanged: nil
            case .usual: usualPermissions(at: destination, from: current)
            case .exactly(let mode): UInt32(mode) & 0o777
            }
        // Under its old name in another folder it may be in the reach of users that its new place keeps out.
        let isBeside = Self.folder(of: current) == Self.folder(of: destination)
        if isBeside, let wanted { _ = csys_file_set_mode(descriptor, wanted) }
        do throws(IOFailure) {
            if synchronizes { try synchronize() }
            try check(
                replacing
                    ? csys_file_rename(current, destination) : csys_file_rename_unless_exists(current, destination))
        } catch {
            if isBeside, wanted != nil, before >= 0 { _ = csys_file_set_mode(descriptor, UInt32(before)) }
            throw error
        }
        keep()
        if !isBeside, let wanted {
            _ = csys_file_set_mode(descriptor, wanted)
            if synchronizes { try synchronize() }
        }
        if synchronizes { try check(csys_directory_sync(Self.folder(of: destination))) }
    }

    /// `nil` for those it has.
    private func usualPermissions(at destination: String, from current: String) -> UInt32? {
        if let replaced = Self.permissions(at: destination) { return UInt32(replaced) }
        return current == path ? UInt32(Self.permissionsOfNewFiles) : nil
    }

    /// Those of the regular file that has this name, itself and no link to it; `nil` if there is none.
    package static func permissions(at path: String) -> UInt16? {
        var info = csys_path_info()
        guard csys_path_look(path, &info) >= 0, info.is_regular else { return nil }
        return UInt16(info.mode)
    }

    /// Those of a new file: what the process's umask leaves of 0666. Read anew each time, for it may change. For its owner
    /// alone where the system does not tell the umask.
    package static var permissionsOfNewFiles: UInt16 {
        let mask = csys_file_mask()
        return mask >= 0 ? 0o666 & ~UInt16(mask) : 0o600
    }

    /// Copies what was written into a new file. Blocks.
    package func copy(to folder: String, prefix: String) throws(IOFailure) -> FileWriter {
        let copy = try Self.create(in: folder, prefix: prefix)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            let count = try read(into: buffer, at: offset)
            guard count > 0 else { return copy }
            try copy.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
            offset += Int64(count)
        }
    }

    private func check(_ outcome: Int32) throws(IOFailure) {
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .write) }
    }

    /// 120 bits, in letters and digits.
    private static func randomText() throws(IOFailure) -> String {
        var bytes = [UInt8](repeating: 0, count: 24)
        let outcome = bytes.withUnsafeMutableBytes { csys_random($0.baseAddress, $0.count) }
        guard outcome == 0 else { throw IOFailure(.system(-outcome), .open) }
        let letters = Array("abcdefghijklmnopqrstuvwxyz012345".utf8)
        return String(decoding: bytes.map { letters[Int($0 & 31)] }, as: UTF8.self)
    }
}

/// Bytes nobody can guess; `nil` if the system has none to give.
package func secureRandomBytes(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    return bytes.withUnsafeMutableBytes { csys_random($0.baseAddress, $0.count) } == 0 ? bytes : nil
}

// MARK: What was written

extension FileWriter {
    /// SHA-256 of the last bytes before an offset, at most 64 KiB. Blocks.
    package func tail(before offset: Int64) throws(IOFailure) -> String { try file.tail(before: offset) }

    /// The first bytes. Blocks.
    package func content(upTo count: Int) throws(IOFailure) -> [UInt8] { try file.bytes(count, from: 0) }

    package func write(_ bytes: [UInt8], at offset: Int64) throws(IOFailure) {
        let result = bytes.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try write(bytes, at: offset) } }
        try result.get()
    }
}

extension IOFailure {
    /// A name on another file system was wanted: only a copy gets there.
    package var isAcrossFileSystems: Bool {
        if case .system(EXDEV) = code { true } else { false }
    }
}
