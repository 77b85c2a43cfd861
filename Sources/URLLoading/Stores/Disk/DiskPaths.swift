// What lies where in a cache's directory.

import URLLoadingIO

struct DiskPaths: Sendable {
    let folder: String
    var database: String { folder + "/cache.sqlite" }
    /// One damaged database is kept for whoever wants to look at it.
    var damaged: String { folder + "/cache.sqlite.damaged" }
    /// Held while a database is opened, made, written to or set aside, and while its log is moved.
    var lock: String { folder + "/cache.lock" }
    var bodies: String { folder + "/bodies" }

    /// The folder a body is in: the first two letters of its name, so that no folder has too many.
    func folder(of name: String) -> String { bodies + "/" + name.prefix(2) }
    func body(_ name: String) -> String { folder(of: name) + "/" + name }

    /// All that belongs to a database.
    static let parts = ["", "-wal", "-shm"]

    func makeFolders() throws(IOFailure) {
        try PrivateFolder.make(folder)
        try PrivateFolder.make(bodies)
    }

    func remove(_ body: String) { PrivateFolder.remove(self.body(body)) }
}
