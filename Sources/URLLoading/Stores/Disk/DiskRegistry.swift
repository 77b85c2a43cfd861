import FoundationEssentials
import Synchronization
import URLLoadingIO

/// One storage for a directory, whoever asks for it in this process: two would hide from each other what they are
/// about to do.
enum DiskRegistry {
    private struct Weak: Sendable {
        weak var storage: DiskStorage?
    }
    private static let storages = Lock<[String: Weak]>([:])

    /// The storage of a directory; the capacities said last hold.
    static func storage(_ directory: URL, capacity: Int64, maximumEntry: Int64) -> DiskStorage {
        // As it was given: of two spellings one goes through a link, which a storage does not take.
        let name = path(directory)
        let (storage, isNew) = storages.withLock { storages in
            if let storage = storages[name]?.storage { return (storage, false) }
            storages = storages.filter { $0.value.storage != nil }
            let storage = DiskStorage(name, capacity: capacity, maximumEntry: maximumEntry)
            storages[name] = Weak(storage: storage)
            return (storage, true)
        }
        if !isNew { storage.set(capacity: capacity, maximumEntry: maximumEntry) }
        return storage
    }

    private static func path(_ directory: URL) -> String {
        let path = directory.absoluteURL.standardizedFileURL.path(percentEncoded: false)
        return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }
}
