// SPDX-License-Identifier: Apache-2.0

// In this folder: open files, growing files, and their digests

// A file that is being written: under an unguessable name, accessible to its owner only, and removed unless it was kept
// or moved. Removal checks that the path still names this file, so a replacement under the same name survives.

import Glibc
import Synchronization
import URLLoadingCSystem

package final class FileWriter: Sendable {
    /// The path at which the file was created.
    package let path: String
    fileprivate let file: OpenFile
    private var descriptor: Int32 { file.descriptor }
    private let progress: DiskProgress
    private struct Hold: Sendable {
        /// True once the file belongs to another owner or is meant to stay; `deinit` then does not remove it.
        var isKept = false
        /// True while a writer has claimed the file.
        var isClaimed = false
        /// True once the complete file was handed to the caller: later claims fail.
        var isDelivered = false
        /// True while a later process may remove the file if this one is killed (`Leftovers`). The lock between
        /// processes is then held whether the file is claimed or not.
        var isMarked = false
    }
    private let hold = Lock(Hold())

    private init(path: String, descriptor: Int32) {
        self.path = path
        file = OpenFile(descriptor)
        progress = DiskProgress(file, in: Self.folder(of: path))
    }

    /// Returns the folder part of a path, unresolved.
    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Creates a new file in a folder. Blocks.
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

    /// Creates the file of a download, claimed. A later download into the folder removes it if this process is killed
    /// before ``keep()``; what earlier processes have left in that way is removed now. Blocks.
    package static func createPartial(in folder: String, prefix: String) throws(IOFailure) -> FileWriter {
        Leftovers.sweepSometimes(folder, prefix: prefix)
        let file = try create(in: folder, prefix: prefix)
        guard file.claim() else { throw IOFailure(.system(EWOULDBLOCK), .open) }
        file.hold.withLock { $0.isMarked = Leftovers.mark(file.descriptor) }
        return file
    }

    /// Opens a file that an earlier process left behind; it must be a regular file that only this user can have
    /// written. Blocks.
    /// - Returns: the file and its size. The file is kept until ``unkeep()``.
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

    /// Opens a complete file that another process of this user has handed over. Unlike ``reopen(_:)`` it is not written
    /// further, so other names and permissions of it do no harm. Blocks.
    /// - Parameter toClaim: opens it for writing if it may be written: NFS and SMB give the lock of ``claim()`` to no
    ///   other descriptors (flock(2)). While a file is open for writing, no process can execute it.
    /// - Returns: the file, which is kept until ``unkeep()``.
    package static func adopt(_ path: String, toClaim: Bool = false) throws(IOFailure) -> FileWriter {
        let flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        var descriptor = open(path, (toClaim ? O_RDWR : O_RDONLY) | flags)
        if descriptor < 0, toClaim, [EACCES, EPERM, EROFS, ETXTBSY].contains(errno) {
            descriptor = open(path, O_RDONLY | flags)
        }
        guard descriptor >= 0 else { throw IOFailure(.system(errno), .open) }
        let writer = FileWriter(path: path, descriptor: descriptor)
        writer.keep()
        var info = stat()
        guard fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG, info.st_uid == geteuid() else {
            throw IOFailure(.system(EPERM), .open)
        }
        return writer
    }

    /// Gives a file a second name in a folder, one that cannot be guessed, and opens it there. Blocks.
    /// - Returns: the file under its new name, which is removed with the last reference to it.
    package static func adopt(_ path: String, in folder: String, prefix: String) throws(IOFailure) -> FileWriter {
        let other = "\(folder)/\(prefix)\(try randomText())"
        guard link(path, other) == 0 else { throw IOFailure(.system(errno), .open) }
        do throws(IOFailure) {
            let writer = try adopt(other, toClaim: true)
            writer.unkeep()
            return writer
        } catch {
            _ = csys_file_remove(other)
            throw error
        }
    }

    deinit { discard() }

    /// Keeps the file when the last reference to it is dropped, and when this process is killed.
    package func keep() {
        hold.withLock { hold in
            hold.isKept = true
            unmark(&hold)
        }
    }

    private func unmark(_ hold: inout Hold) {
        guard hold.isMarked else { return }
        hold.isMarked = false
        Leftovers.unmark(descriptor)
        if !hold.isClaimed { _ = csys_file_unclaim(descriptor) }
    }

    /// Removes the file when the last reference to it is dropped. A stored token may still name it, so it is kept when
    /// this process is killed.
    package func unkeep() { hold.withLock { $0.isKept = false } }

    /// Claims the right to write the file, among all processes. Returns false if another writer has claimed it, or if
    /// the file is complete and was delivered.
    package func claim() -> Bool {
        hold.withLock { hold in
            guard !hold.isClaimed, !hold.isDelivered, hold.isMarked || csys_file_claim(descriptor) >= 0 else {
                return false
            }
            hold.isClaimed = true
            return true
        }
    }

    package func unclaim() {
        hold.withLock { hold in
            hold.isClaimed = false
            if !hold.isMarked { _ = csys_file_unclaim(descriptor) }
        }
    }

    /// Notes that the file is complete and handed to the caller, who may move it without this object.
    package func deliver() {
        hold.withLock { hold in
            hold.isDelivered = true
            unmark(&hold)
        }
    }
    package var wasDelivered: Bool { hold.withLock { $0.isDelivered } }

    /// Removes the file under the name that it was moved to.
    package func remove(at current: String) {
        if csys_file_is_same(current, descriptor) { _ = csys_file_remove(current) }
    }

    /// Removes the file unless it is kept.
    package func discard() {
        let isKept = hold.withLock { hold in
            defer { hold.isKept = true }
            return hold.isKept
        }
        if !isKept, csys_file_is_same(path, descriptor) { _ = csys_file_remove(path) }
    }

    /// Writes all of `bytes`. Blocks while the system's buffers are full.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(IOFailure) {
        var done = 0
        while done < bytes.count {
            let moved = csys_file_write(
                descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done, offset + Int64(done))
            // A full disk may accept part of the bytes first.
            guard moved > 0 else { throw IOFailure(.system(moved == 0 ? ENOSPC : Int32(-moved)), .write) }
            done += moved
        }
    }

    package func truncate(to size: Int64) throws(IOFailure) {
        progress.cut(to: size)
        try check(csys_file_truncate(descriptor, size))
    }

    /// Allocates the room for a file of this size, without changing its size. File systems that cannot do so are
    /// ignored. Blocks.
    /// - Throws: `ENOSPC`, `EDQUOT` or `EFBIG` if there is no room; `EIO`.
    package func reserve(_ size: Int64) throws(IOFailure) {
        let outcome = size > 0 ? csys_file_reserve(descriptor, size) : 0
        guard [ENOSPC, EDQUOT, EFBIG, EIO].contains(-outcome) else { return }
        throw IOFailure(.system(-outcome), .write)
    }

    /// Gives the room of a range back to the file system; its bytes become zeros, or stay where the file system cannot
    /// do so. Blocks.
    /// - Parameter range: whole blocks of the file system.
    package func free(_ range: Range<Int64>) {
        _ = csys_file_punch(descriptor, range.lowerBound, range.upperBound - range.lowerBound)
    }

    /// Whether the path at which the file was created names it still. Blocks.
    package var isInPlace: Bool { csys_file_is_same(path, descriptor) }

    // MARK: Progress on the disk

    /// Records that content is written from the start up to `offset`. Every 64 MiB, and with the first bytes after 5
    /// seconds, a separate thread synchronises the file; the writer never waits for that.
    /// - Parameter now: monotonic nanoseconds.
    package func wrote(upTo offset: Int64, now: Int64) { progress.wrote(upTo: offset, now: now) }

    /// The prefix that would survive a loss of power; `nil` if none is known.
    package var mark: DiskMark? { progress.mark }

    /// Continues from the mark that an earlier process stored for a file that was reopened.
    package func resume(from mark: DiskMark) { progress.resume(from: mark) }

    package var size: Int64 { csys_file_size(descriptor) }

    /// Reads what was written; returns fewer bytes only at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(IOFailure) -> Int {
        let count = csys_file_read(descriptor, buffer.baseAddress, buffer.count, offset)
        guard count >= 0 else { throw IOFailure(.system(Int32(-count)), .read) }
        return count
    }

    /// Returns once the bytes are on the disk. Blocks.
    package func synchronize() throws(IOFailure) { try check(csys_file_sync(descriptor)) }

    /// The permissions that a file gets when it is moved to its final name.
    package enum Permissions: Sendable {
        /// Leaves the permissions as they are: 0600 for a file that this process created.
        case unchanged
        /// The permissions of the file that is replaced, if there is one. Otherwise 0666 less the umask, if the
        /// file is still at the `path` at which it was created; a file that was moved before keeps its own.
        case usual
        /// Bits beyond 0777 are ignored.
        case exactly(UInt16)
    }

    /// Moves the file to its final name in one step; replaces an existing file if `replacing` says so. Blocks.
    ///
    /// File systems without permissions ignore `permissions`. On failure the file stays where it was, with the
    /// permissions it had.
    /// - Parameters:
    ///   - current: where the file is now.
    ///   - permissions: set together with the name.
    ///   - synchronizes: if true, content and name are on the disk when this returns.
    package func move(
        from current: String, to destination: String, replacing: Bool, permissions: Permissions = .unchanged,
        synchronizes: Bool
    ) throws(IOFailure) {
        guard !Self.isSpecial(destination) else { throw IOFailure(.system(EEXIST), .open) }
        let before = csys_file_mode(descriptor)
        let wanted: UInt32? =
            switch permissions {
            // The mark of a partial file is no permission.
            case .unchanged: hold.withLock({ $0.isMarked }) && before >= 0 ? UInt32(before) & 0o777 : nil
            case .usual: usualPermissions(at: destination, from: current)
            case .exactly(let mode): UInt32(mode) & 0o777
            }
        // In another folder the file might, under its old name, be within reach of users that the destination folder
        // excludes.
        let isSameFolder = Self.folder(of: current) == Self.folder(of: destination)
        // The mark stays until the file has its name, so that a kill before leaves a file that is removed later.
        let mark = hold.withLock { $0.isMarked } ? UInt32(S_ISVTX) : 0
        if isSameFolder, let wanted { _ = csys_file_set_mode(descriptor, wanted | mark) }
        do throws(IOFailure) {
            if synchronizes { try synchronize() }
            try check(
                replacing
                    ? csys_file_rename(current, destination)
                    : csys_file_rename_unless_exists(current, destination, false))
        } catch {
            // An NFS server repeats a call whose answer was lost, and then reports that the old name is gone, or that
            // the new one exists: the file itself tells whether it has been moved.
            guard case .system(let number) = error.code, [ENOENT, EEXIST].contains(number),
                csys_file_is_same(destination, descriptor)
            else {
                if isSameFolder, wanted != nil, before >= 0 { _ = csys_file_set_mode(descriptor, UInt32(before)) }
                throw error
            }
            // A file with one link may have the same name in two spellings.
            var info = stat()
            if fstat(descriptor, &info) == 0, info.st_nlink > 1 { remove(at: current) }
        }
        keep()
        if !isSameFolder, let wanted {
            _ = csys_file_set_mode(descriptor, wanted)
            if synchronizes { try synchronize() }
        }
        if synchronizes { try Self.synchronizeFolder(of: destination) }
    }

    /// Whether a path names a device, a pipe or a socket. None is replaced by a file: a program of the superuser would
    /// take `/dev/null` from the whole machine.
    private static func isSpecial(_ path: String) -> Bool {
        var info = stat()
        guard lstat(path, &info) == 0 else { return false }
        return ![S_IFREG, S_IFLNK, S_IFDIR].contains(info.st_mode & S_IFMT)
    }

    /// Whether a path names a folder, which no file can replace. Blocks.
    package static func isFolder(_ path: String) -> Bool {
        var info = stat()
        return path.hasSuffix("/") || lstat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }

    /// Returns once a path's name is on the disk. Blocks.
    package static func synchronizeFolder(of path: String) throws(IOFailure) {
        let outcome = csys_directory_sync(folder(of: path))
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .write) }
    }

    /// Returns the permissions for `Permissions.usual`; `nil` to leave the file's own.
    private func usualPermissions(at destination: String, from current: String) -> UInt32? {
        if let replaced = Self.permissions(at: destination) { return UInt32(replaced) }
        return current == path ? UInt32(Self.permissionsOfNewFiles) : nil
    }

    /// Returns the permissions of the regular file at `path`, not following a symbolic link; `nil` if there is none.
    package static func permissions(at path: String) -> UInt16? {
        var info = csys_path_info()
        guard csys_path_look(path, &info) >= 0, info.is_regular else { return nil }
        return UInt16(info.mode)
    }

    /// Returns the permissions of a new file: 0666 less the process's umask, or 0600 where the system does not reveal
    /// the umask. Read on each call, because the umask may change.
    package static var permissionsOfNewFiles: UInt16 {
        let mask = csys_file_mask()
        return mask >= 0 ? 0o666 & ~UInt16(mask) : 0o600
    }

    /// Copies the file's content, or a beginning of it, into a new file. Blocks.
    /// - Parameter end: the number of bytes to copy at most.
    package func copy(upTo end: Int64 = .max, to folder: String, prefix: String) throws(IOFailure) -> FileWriter {
        let copy = try Self.createPartial(in: folder, prefix: prefix)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(buffer.count), end - offset))])
            let count = room.isEmpty ? 0 : try read(into: room, at: offset)
            guard count > 0 else { return copy }
            try copy.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
            offset += Int64(count)
        }
    }

    private func check(_ outcome: Int32) throws(IOFailure) {
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .write) }
    }

    /// Returns 120 random bits as letters and digits.
    private static func randomText() throws(IOFailure) -> String {
        var bytes = [UInt8](repeating: 0, count: 24)
        let outcome = bytes.withUnsafeMutableBytes { csys_random($0.baseAddress, $0.count) }
        guard outcome == 0 else { throw IOFailure(.system(-outcome), .open) }
        let letters = Array("abcdefghijklmnopqrstuvwxyz012345".utf8)
        return String(decoding: bytes.map { letters[Int($0 & 31)] }, as: UTF8.self)
    }
}

/// Returns cryptographically random bytes; `nil` if the system cannot provide any.
package func secureRandomBytes(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    return bytes.withUnsafeMutableBytes { csys_random($0.baseAddress, $0.count) } == 0 ? bytes : nil
}

// MARK: Reading back

extension FileWriter {
    /// Returns the SHA-256 of the last bytes before `offset`, at most 64 KiB. Blocks.
    package func tail(before offset: Int64) throws(IOFailure) -> String { try file.tail(before: offset) }

    /// Returns the first `count` bytes. Blocks.
    package func content(upTo count: Int) throws(IOFailure) -> [UInt8] { try file.bytes(count, from: 0) }

    /// Returns `count` bytes from `offset`. Blocks.
    package func bytes(_ count: Int, at offset: Int64) throws(IOFailure) -> [UInt8] {
        try file.bytes(count, from: offset)
    }

    package func write(_ bytes: [UInt8], at offset: Int64) throws(IOFailure) {
        let result = bytes.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try write(bytes, at: offset) } }
        try result.get()
    }
}

extension IOFailure {
    /// Whether the disk, or the limits of the process, may allow later what failed now.
    package var mayPass: Bool {
        guard case .system(let number) = code else { return false }
        return [EIO, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN].contains(number)
    }

    /// True if a move failed because the destination is on another file system, so that only a copy can reach it.
    package var isAcrossFileSystems: Bool {
        if case .system(EXDEV) = code { true } else { false }
    }
}

extension FileWriter {
    /// Renames a file to a path at which there is nothing.
    /// - Returns: 0, or a negative error number: `-EEXIST` if there is a file.
    package static func rename(_ current: String, toUnused path: String) -> Int32 {
        csys_file_rename_unless_exists(current, path, false)
    }
}
