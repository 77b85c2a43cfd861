// SPDX-License-Identifier: Apache-2.0

// In this folder: files, folders and terminals

// A file that appears under its name only when it is complete: it is written under a temporary name in the same folder
// and renamed at the end. Its mode is 0666 less the umask, as with curl or a shell's `>`; a replaced file keeps its
// mode. A symbolic link is kept and its target replaced.

import Glibc
import Synchronization
import URLLoadingIO

/// Used by one task only.
final class AtomicFile {
    /// What becomes of the complete file if there is another one under its name.
    enum Collision: Sendable { case replace, number, skip }

    /// The path as given; with a number if another file had it at the end (``Collision/number``).
    private(set) var name: String
    /// True after a commit that has found another file under the name and dropped this one.
    private(set) var isDropped = false
    private let collision: Collision
    private var path: String
    private let temporary: String?
    private let descriptor: FileDescriptor
    private var isOpen = true

    init(path: String, collision: Collision = .replace) throws(OutputError) {
        (name, self.collision) = (path, collision)
        if let standard = FileDescriptor.standard(path) {
            (temporary, self.path) = (nil, path)
            let number = dup(standard.number)
            guard number >= 0 else { throw .system(errno, path) }
            descriptor = FileDescriptor(number: number, name: path)
            return
        }
        var status = stat()
        let exists = stat(path, &status) == 0
        if exists, status.st_mode & S_IFMT != S_IFREG {
            // A device or a pipe cannot be replaced; it is written to.
            temporary = nil
            self.path = path
            descriptor = try Self.open(path, path, O_WRONLY)
            return
        }
        let target = exists && collision == .replace ? Self.resolved(path) : path
        let new = Self.temporaryName(target)
        Leftovers.sweepSometimes(Self.folder(of: target), prefix: Self.prefix)
        descriptor = try Self.open(new, path, O_WRONLY | O_CREAT | O_EXCL)
        // Fails only on file systems without modes, where it does not matter.
        if exists { fchmod(descriptor.number, status.st_mode & 0o777) }
        // A later run removes the file if this one is killed.
        _ = Leftovers.mark(descriptor.number)
        self.path = target
        temporary = new
        UnfinishedFiles.add(new)
    }

    deinit { discard() }

    func write(_ bytes: UnsafeRawBufferPointer) throws(OutputError) { try descriptor.write(bytes) }
    func write(_ text: String) throws(OutputError) { try descriptor.write(text) }
    func write(_ bytes: [UInt8]) throws(OutputError) { try descriptor.write(bytes) }

    /// Renames the file to its final name.
    func commit() throws(OutputError) {
        isOpen = false
        if temporary != nil { Leftovers.unmark(descriptor.number) }
        // Some file systems report a failed write only in `close`.
        guard close(descriptor.number) == 0 else { throw failed() }
        guard let temporary else { return }
        guard collision == .replace else { return try placeUnlessTaken(temporary) }
        guard rename(temporary, path) == 0 else { throw failed() }
        UnfinishedFiles.remove(temporary)
    }

    /// Another load, or another program, may have taken the name since this file was begun.
    private func placeUnlessTaken(_ temporary: String) throws(OutputError) {
        while true {
            let outcome = FileWriter.rename(temporary, toUnused: path)
            if outcome == 0 { return UnfinishedFiles.remove(temporary) }
            guard outcome == -EEXIST else {
                UnfinishedFiles.delete(temporary)
                throw .system(-outcome, path)
            }
            guard collision == .number else {
                isDropped = true
                return UnfinishedFiles.delete(temporary)
            }
            name = FileName.free(name)
            path = name
        }
    }

    /// Ends the file early and keeps its content under another name.
    /// - Returns: false for a device or a pipe, or if it cannot be kept.
    func leave(as name: String) -> Bool {
        guard isOpen, let temporary else { return false }
        Leftovers.unmark(descriptor.number)
        guard rename(temporary, name) == 0 else { return false }
        isOpen = false
        _ = close(descriptor.number)
        UnfinishedFiles.remove(temporary)
        return true
    }

    private func failed() -> OutputError {
        let error = OutputError.system(errno, path)
        if let temporary { UnfinishedFiles.delete(temporary) }
        return error
    }

    private func discard() {
        guard isOpen else { return }
        isOpen = false
        _ = close(descriptor.number)
        if let temporary { UnfinishedFiles.delete(temporary) }
    }

    private static func open(_ path: String, _ name: String, _ flags: Int32) throws(OutputError) -> FileDescriptor {
        let number = Glibc.open(path, flags | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw .system(errno, name) }
        return FileDescriptor(number: number, name: name)
    }

    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    /// In the same folder, because `rename` cannot cross file systems. Short, because names are limited to 255 bytes.
    private static func temporaryName(_ path: String) -> String {
        let random = String(UInt64.random(in: .min ... .max), radix: 36)
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        let digits = String(repeating: "0", count: max(0, 13 - random.count)) + random
        return folder + prefix + digits
    }

    private static let prefix = ".urlload-"

    private static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }
}

/// The temporary files that exist. A forced end (`Signals`) removes them without waiting for their owners.
enum UnfinishedFiles {
    private static let names = Lock<[String]>([])

    static func add(_ name: String) { names.withLock { $0.append(name) } }
    static func remove(_ name: String) { names.withLock { $0.removeAll { $0 == name } } }

    static func delete(_ name: String) {
        unlink(name)
        remove(name)
    }

    static func deleteAll() {
        for name in names.withLock({ $0 }) { unlink(name) }
    }
}
