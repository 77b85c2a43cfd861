// SPDX-License-Identifier: Apache-2.0

// The files in a cache's directory.

import URLLoadingIO

struct DiskPaths: Sendable {
    let folder: String
    var database: String { folder + "/cache.sqlite" }
    /// The last damaged database, kept for inspection until everything is removed.
    var damaged: String { folder + "/cache.sqlite.damaged" }
    /// Held while a database is opened, created, written, or set aside, and during a checkpoint.
    var lock: String { folder + "/cache.lock" }
    var bodies: String { folder + "/bodies" }

    /// The folder of a body: the first two letters of its name, so that no folder has too many files.
    func folder(of name: String) -> String { bodies + "/" + name.prefix(2) }
    func body(_ name: String) -> String { folder(of: name) + "/" + name }

    /// Whether a name that was read from the disk can only refer to a file of bodies.
    static func isName(_ file: String) -> Bool {
        file.utf8.count > 2
            && file.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }

    /// The name of a file of bodies.
    static func name(of file: FileWriter) -> String { file.path.split(separator: "/").last.map(String.init) ?? "" }

    /// Creates and claims a file of bodies, whose name begins with the name of its folder. Blocks.
    func makeFile(_ prefix: String) throws(IOFailure) -> FileWriter {
        let folder = folder(of: prefix)
        try PrivateFolder.make(folder)
        while true {
            let made = try FileWriter.create(in: folder, prefix: prefix)
            // A sweep may already have claimed the new file, or removed it; a claimed file is not swept.
            if made.claim(), made.isInPlace { return made }
        }
    }

    /// The suffixes of the files of a database.
    static let parts = ["", "-wal", "-shm"]

    /// Removes the last damaged database. The caller holds the folder's lock.
    func removeDamaged() { for part in Self.parts { PrivateFolder.remove(damaged + part) } }

    /// Sets the database aside. The caller holds the folder's lock.
    func setAside() {
        // The log of an earlier one would be taken for that of this one.
        removeDamaged()
        for part in Self.parts { PrivateFolder.rename(database + part, damaged + part) }
    }

    func makeFolders() throws(IOFailure) {
        try PrivateFolder.make(folder)
        try PrivateFolder.make(bodies)
    }

    func remove(_ body: String) { PrivateFolder.remove(self.body(body)) }
}
