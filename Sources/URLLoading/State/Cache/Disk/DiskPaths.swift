// SPDX-License-Identifier: Apache-2.0

// The files in a cache's directory.

import URLLoadingIO

struct DiskPaths: Sendable {
    let folder: String
    var database: String { folder + "/cache.sqlite" }
    /// The last damaged database, kept for inspection.
    var damaged: String { folder + "/cache.sqlite.damaged" }
    /// Held while a database is opened, created, written, or set aside, and during a checkpoint.
    var lock: String { folder + "/cache.lock" }
    var bodies: String { folder + "/bodies" }

    /// The folder of a body: the first two letters of its name, so that no folder has too many files.
    func folder(of name: String) -> String { bodies + "/" + name.prefix(2) }
    func body(_ name: String) -> String { folder(of: name) + "/" + name }

    /// The name of a file of bodies.
    static func name(of file: FileWriter) -> String { file.path.split(separator: "/").last.map(String.init) ?? "" }

    /// Creates and claims a file of bodies, whose name begins with the name of its folder. Blocks.
    func makeFile(_ prefix: String) throws(IOFailure) -> FileWriter {
        let folder = folder(of: prefix)
        try PrivateFolder.make(folder)
        while true {
            let made = try FileWriter.create(in: folder, prefix: prefix)
            // A sweep may already have removed the new file; a claimed file is not swept.
            if made.claim() { return made }
        }
    }

    /// The suffixes of the files of a database.
    static let parts = ["", "-wal", "-shm"]

    func makeFolders() throws(IOFailure) {
        try PrivateFolder.make(folder)
        try PrivateFolder.make(bodies)
    }

    func remove(_ body: String) { PrivateFolder.remove(self.body(body)) }
}
