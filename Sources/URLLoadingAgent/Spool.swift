// SPDX-License-Identifier: Apache-2.0

import Glibc
import FoundationEssentials
import URLLoading
import URLLoadingIO

/// The agent's own files: downloads without a destination, and the responses of uploads.
struct Spool: Sendable {
    let folder: String

    /// The second names of files that programs have taken over.
    private let delivered: String

    init(_ stateFolder: String) throws(IOFailure) {
        folder = stateFolder + "/spool"
        delivered = stateFolder + "/delivered"
        try PrivateFolder.make(folder)
    }

    /// Renames the spool of a journal that was damaged. Blocks.
    /// - Returns: the new path; `nil` if there are no files.
    static func moveAside(_ stateFolder: String) -> String? {
        let folder = stateFolder + "/spool"
        guard !PrivateFolder.names(folder).isEmpty else { return nil }
        let kept = "\(folder).damaged-\(SystemTime.wall / 1_000_000_000)"
        PrivateFolder.rename(folder, kept)
        return kept
    }

    /// The path of a complete download before it is moved. It is beside the destination, because a rename cannot cross
    /// file systems.
    func complete(_ transfer: Transfer) -> String {
        let name = ".urlloading-agent-\(transfer.id)"
        guard let destination = transfer.order.destination, let slash = destination.lastIndex(of: "/") else {
            return folder + "/" + name
        }
        return destination[..<slash] + "/" + name
    }

    func answer(_ transfer: Transfer) -> String { folder + "/.urlloading-answer-\(transfer.id)" }

    /// The path of the copy of an upload's file.
    private func source(_ transfer: Transfer) -> String { folder + "/.urlloading-source-\(transfer.id)" }

    /// Copies the file of an upload, so that the copy survives a power failure. Blocks.
    /// - Returns: the order for the copy; `nil` if the file has changed.
    func copySource(of transfer: Transfer) throws(IOFailure) -> TransferOrder? {
        var order = transfer.order
        guard let path = order.source, let stamp = order.sourceStamp else { return nil }
        let reader = try FileReader(path: path)
        let copy = try FileWriter.create(in: folder, prefix: ".urlloading-copy-")
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
        let place = source(transfer)
        try copy.move(from: copy.path, to: place, replacing: true, synchronizes: true)
        (order.source, order.sourceStamp) = (place, SourceStamp(path: place))
        return order
    }

    /// Removes all files of a transfer. Blocks.
    func remove(_ transfer: Transfer) {
        if let data = transfer.progress.resumption, let token = try? ResumeToken(data) { token.discard() }
        let complete = complete(transfer)
        // An agent that was killed may have set its permissions.
        if (try? FileWriter.adopt(complete)) != nil { PrivateFolder.remove(complete) }
        if transfer.order.kind == .upload {
            PrivateFolder.remove(answer(transfer))
            if transfer.order.copiesSource == true { PrivateFolder.remove(source(transfer)) }
        }
    }

    /// Checks that the folder of the destination is the one that the program named. After a restart of the agent,
    /// another folder may be mounted or created at the path. Blocks.
    func checkDestination(_ order: TransferOrder) throws(LoadError) {
        guard let destination = order.destination, let known = order.destinationFolder,
            let slash = destination.lastIndex(of: "/")
        else { return }
        let folder = slash == destination.startIndex ? "/" : String(destination[..<slash])
        guard FilePlace(folder) != known else { return }
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
        if FilePlace(itself: placing.to) == placing.file { return try FileWriter.synchronizeFolder(of: placing.to) }
        // An agent that was killed before the rename may have set the permissions, which may let the group write.
        let file = try FileWriter.adopt(placing.from)
        guard FilePlace(itself: placing.from) == placing.file else { throw IOFailure(.system(ENOENT), .open) }
        // The umask of this process is that of the program that started it, which may not be this one.
        let permissions =
            order.permissions ?? FileWriter.permissions(at: placing.to) ?? order.permissionsOfNewFiles
            ?? FileWriter.permissionsOfNewFiles
        try file.move(
            from: placing.from, to: placing.to, replacing: order.replaces, permissions: .exactly(permissions),
            synchronizes: true)
    }

    /// The paths of the spool's files. Blocks.
    func files() -> Set<String> {
        Set(PrivateFolder.names(folder).filter { $0.hasPrefix(".urlloading-") }.map { folder + "/" + $0 })
    }

    /// The paths that the files of a transfer have, if they exist.
    func paths(of transfer: Transfer) -> [String] {
        [complete(transfer), answer(transfer), source(transfer)]
            + [transfer.progress.resumption.flatMap(Self.path(ofToken:))].compactMap(\.self)
    }

    /// Removes delivered files that no program uses. Blocks.
    func removeDelivered() {
        for name in PrivateFolder.names(delivered) where name.hasPrefix(".urlloading-") {
            // A program that still uses the file has claimed it, and removes it. A file without a claim is removed
            // here, when `file` is released.
            guard let file = try? FileWriter.adopt(delivered + "/" + name), file.claim() else { continue }
            file.unkeep()
        }
    }

    private static func path(ofToken data: Data) -> String? { (try? ResumeToken(data))?.heldPath }
}
