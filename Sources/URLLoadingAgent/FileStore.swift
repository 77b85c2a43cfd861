// SPDX-License-Identifier: Apache-2.0

import Glibc
import FoundationEssentials
import URLLoading
import URLLoadingIO

/// Where an agent keeps the files of transfers until they are at their destinations: downloads without one, the
/// responses of uploads, copies of files to upload. Two differ in what other agents see: ``Spool`` and ``FolderStore``.
///
/// A store of objects would be a third one; what it needs besides is an upload in parts under the names of
/// ``complete(_:)``.
protocol FileStore: Sendable {
    /// The folder of files that have no destination.
    var folder: String { get }
    /// The end of the names of files that an agent makes under its claim.
    func suffix(_ transfer: Transfer) -> String
    /// The ends of the names that earlier claims may have left.
    func earlierSuffixes(_ transfer: Transfer) -> [String]
    /// Whether two places are the same file or folder, of which another agent may have seen one.
    func isSame(_ one: FilePlace?, _ other: FilePlace) -> Bool
    /// Whether an agent that has lost its claim, or whose machine is away, may still write a part that is there.
    func mayBeWritten(by writer: String?, notBy agent: String) -> Bool
}

/// The files of one agent.
struct Spool: FileStore {
    let folder: String
    /// The second names of files that programs have taken over.
    private let delivered: String

    init(_ stateFolder: String) throws(IOFailure) {
        folder = stateFolder + "/spool"
        delivered = stateFolder + "/delivered"
        try PrivateFolder.make(folder)
    }

    func suffix(_ transfer: Transfer) -> String { "" }
    func earlierSuffixes(_ transfer: Transfer) -> [String] { [] }
    func isSame(_ one: FilePlace?, _ other: FilePlace) -> Bool { one == other }
    func mayBeWritten(by writer: String?, notBy agent: String) -> Bool { false }

    /// Renames the spool of a journal that was damaged. Blocks.
    /// - Returns: the new path; `nil` if there are no files.
    static func moveAside(_ stateFolder: String) -> String? {
        let folder = stateFolder + "/spool"
        guard !PrivateFolder.names(folder).isEmpty else { return nil }
        let kept = "\(folder).damaged-\(SystemTime.wall / 1_000_000_000)"
        PrivateFolder.rename(folder, kept)
        return kept
    }

    /// Removes delivered files that no program uses. Blocks.
    func removeDelivered() {
        for name in PrivateFolder.names(delivered) where name.hasPrefix(".urlloading-") {
            // A program that still uses the file has claimed it, and removes it. A file without a claim is removed
            // here, when `file` is released.
            guard let file = try? FileWriter.adopt(delivered + "/" + name, toClaim: true), file.claim() else {
                continue
            }
            file.unkeep()
        }
    }
}

/// The files of agents that share a folder, on one machine or several: an agent may go on with what another one has
/// left.
///
/// Names end with the epoch of the claim, so an agent that has lost its claim, and does not know it yet, writes no file
/// of the next one. The journal alone decides: what is complete becomes visible by a link or a rename, after the
/// journal has taken the intention under the claim. Locks of files are not relied on, and devices have other numbers on
/// other machines.
struct FolderStore: FileStore {
    let folder: String

    /// - Parameter folder: an absolute path, the same for all agents; its parent exists.
    init(_ folder: String) throws(IOFailure) {
        self.folder = folder
        try PrivateFolder.make(folder)
    }

    func suffix(_ transfer: Transfer) -> String { "-\(transfer.claim.epoch)" }

    /// The number of earlier claims whose files are looked for.
    private static let earlier: Int64 = 32

    func earlierSuffixes(_ transfer: Transfer) -> [String] {
        let epoch = transfer.claim.epoch
        return (max(0, epoch - Self.earlier)..<max(0, epoch)).reversed().map { "-\($0)" }
    }

    func isSame(_ one: FilePlace?, _ other: FilePlace) -> Bool { one?.inode == other.inode }
    func mayBeWritten(by writer: String?, notBy agent: String) -> Bool { writer.map { $0 != agent } ?? false }
}

extension FileStore {
    /// The path of a complete download before it is moved. It is beside the destination, because a rename cannot cross
    /// file systems.
    func complete(_ transfer: Transfer) -> String {
        complete(transfer, suffix(transfer))
    }

    private func complete(_ transfer: Transfer, _ suffix: String) -> String {
        let name = ".urlloading-agent-\(transfer.id)\(suffix)"
        guard let destination = transfer.order.destination, let slash = destination.lastIndex(of: "/") else {
            return folder + "/" + name
        }
        return destination[..<slash] + "/" + name
    }

    func answer(_ transfer: Transfer) -> String { answer(transfer, suffix(transfer)) }

    private func answer(_ transfer: Transfer, _ suffix: String) -> String {
        folder + "/.urlloading-answer-\(transfer.id)\(suffix)"
    }

    /// Takes over a complete download of an earlier claim, whose agent has not said so any more. Blocks.
    func takeOver(_ transfer: Transfer) {
        let own = complete(transfer)
        guard PathIdentity(own) == nil else { return }
        for suffix in earlierSuffixes(transfer) {
            let path = complete(transfer, suffix)
            if PathIdentity(path)?.isOwnFile == true { return PrivateFolder.rename(path, own) }
        }
    }

    /// The path of the copy of an upload's file; `nil` if there is none.
    private func source(_ transfer: Transfer) -> String? {
        guard transfer.order.copiesSource == true, let path = transfer.order.source,
            path.hasPrefix(folder + "/.urlloading-source-\(transfer.id)")
        else { return nil }
        return path
    }

    /// Copies the file of an upload, so that the copy survives a power failure. Blocks.
    ///
    /// Each copy has a name of its own: a program whose agent has gone submits the transfer to another one, which
    /// copies the file again, and the first agent removes its copy when the submission is refused.
    /// - Returns: the order for the copy; `nil` if the file has changed.
    func copySource(of transfer: Transfer) throws(IOFailure) -> TransferOrder? {
        var order = transfer.order
        guard let path = order.source, let stamp = order.sourceStamp else { return nil }
        let reader = try FileReader(path: path)
        let copy = try FileWriter.create(in: folder, prefix: ".urlloading-source-\(transfer.id)-")
        try copy.reserve(stamp.size)
        var offset: Int64 = 0
        var room = [UInt8](repeating: 0, count: 256 * 1024)
        while offset <= stamp.size {
            let read = room.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in try reader.read(into: room, at: offset) }
            }
            let count = try read.get()
            guard count > 0 else { break }
            try copy.write(Array(room.prefix(count)), at: offset)
            offset += Int64(count)
        }
        guard offset == stamp.size, SourceStamp(path: path) == stamp else { return nil }
        try copy.synchronize()
        try FileWriter.synchronizeFolder(of: copy.path)
        copy.keep()
        (order.source, order.sourceStamp) = (copy.path, SourceStamp(path: copy.path))
        return order
    }

    /// Removes all files of a transfer. Blocks.
    func remove(_ transfer: Transfer) {
        if let data = transfer.progress.resumption, let token = try? ResumeToken(data) { token.discard() }
        let suffixes = [suffix(transfer)] + earlierSuffixes(transfer)
        for complete in suffixes.map({ complete(transfer, $0) }) {
            // An agent that was killed may have set its permissions.
            if (try? FileWriter.adopt(complete)) != nil { PrivateFolder.remove(complete) }
        }
        if transfer.order.kind == .upload {
            for suffix in suffixes { PrivateFolder.remove(answer(transfer, suffix)) }
            if let source = source(transfer) { PrivateFolder.remove(source) }
        }
    }

    /// Checks that the folder of the destination is the one that the program named. After a restart of the agent,
    /// another folder may be mounted or created at the path. Blocks.
    func checkDestination(_ order: TransferOrder) throws(LoadError) {
        guard let destination = order.destination, let known = order.destinationFolder,
            let slash = destination.lastIndex(of: "/")
        else { return }
        let folder = slash == destination.startIndex ? "/" : String(destination[..<slash])
        guard !isSame(FilePlace(folder), known) else { return }
        throw LoadError(
            .destinationChanged, phase: .receiving, party: .system,
            detail: "\(folder) is not the folder any more that it was when the transfer was created")
    }

    /// Writes a response so that it survives a power failure. Blocks.
    func write(_ bytes: [UInt8], for transfer: Transfer) throws(IOFailure) -> String {
        let file = try FileWriter.create(in: folder, prefix: ".urlloading-")
        try file.write(bytes, at: 0)
        let path = answer(transfer)
        try file.move(from: file.path, to: path, replacing: true, synchronizes: true)
        return path
    }

    /// Renames a complete file to its destination, unless that has happened already. Blocks.
    func place(_ placing: TransferState.Placing, _ order: TransferOrder) throws(IOFailure) {
        // The rename happened before a crash, which may have been one of the system.
        if isSame(FilePlace(itself: placing.to), placing.file) {
            return try FileWriter.synchronizeFolder(of: placing.to)
        }
        // An agent that was killed before the rename may have set the permissions, which may let the group write.
        let file = try FileWriter.adopt(placing.from)
        guard isSame(FilePlace(itself: placing.from), placing.file) else { throw IOFailure(.system(ENOENT), .open) }
        // The umask of this process is that of the program that started it, which may not be this one.
        let permissions =
            order.permissions ?? FileWriter.permissions(at: placing.to) ?? order.permissionsOfNewFiles
            ?? FileWriter.permissionsOfNewFiles
        try file.move(
            from: placing.from, to: placing.to, replacing: order.replaces, permissions: .exactly(permissions),
            synchronizes: true)
    }

    /// Returns the paths of the store's files. Blocks.
    /// - Parameter age: the seconds for which they have not been changed at least.
    func files(unchangedFor age: Int) -> Set<String> {
        let now = time(nil)
        let paths = PrivateFolder.names(folder).filter { $0.hasPrefix(".urlloading-") }.map { folder + "/" + $0 }
        guard age > 0 else { return Set(paths) }
        return Set(
            paths.filter { path in
                var info = stat()
                return lstat(path, &info) == 0 && now - info.st_mtim.tv_sec >= age
            })
    }

    /// Whether the file of an upload is the one that was submitted. Blocks.
    func isUnchanged(_ path: String, since stamp: SourceStamp) -> Bool {
        guard let now = SourceStamp(path: path) else { return false }
        return isSame(now.place, stamp.place) && now.size == stamp.size && now.modified == stamp.modified
    }
}

/// Files of a ``FileStore`` that may belong to no transfer. Pure.
struct OrphanedFiles: Sendable, Equatable {
    private(set) var paths: Set<String>
    /// The paths by what may be the id in their names, which end with an epoch or with random text, or with neither.
    private let named: [String: [String]]

    init(_ paths: Set<String>) {
        self.paths = paths
        var named: [String: [String]] = [:]
        for path in paths {
            let name = path.split(separator: "/").last ?? ""
            // ".urlloading-agent-ID-EPOCH"
            let parts = name.dropFirst().split(separator: "-", maxSplits: 2)
            guard parts.count == 3 else { continue }
            named[String(parts[2]), default: []].append(path)
            if let dash = parts[2].lastIndex(of: "-") { named[String(parts[2][..<dash]), default: []].append(path) }
        }
        self.named = named
    }

    /// Keeps the files of a transfer: those with its id in their names, and its partial file.
    mutating func keep(_ transfer: Transfer) {
        paths.subtract(named[transfer.id] ?? [])
        for token in [transfer.progress.resumption, transfer.order.resumption] {
            if let path = token.flatMap({ (try? ResumeToken($0))?.heldPath }) { paths.remove(path) }
        }
    }

    /// Removes the files, except those that a process of this machine is writing. Blocks.
    func remove() {
        for path in paths {
            guard let file = try? FileWriter.adopt(path, toClaim: true), file.claim() else { continue }
            file.unkeep()
        }
    }
}
