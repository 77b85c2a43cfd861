// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import URLLoadingIO

/// Shares one storage of a directory within the process: two storages would not see each other's pending changes.
enum DiskRegistry {
    private struct Weak: Sendable {
        weak var storage: DiskStorage?
    }
    private static let storages = Lock<[String: Weak]>([:])

    /// Returns the storage of a directory; the most recently given capacities apply.
    static func storage(_ directory: URL, capacity: Int64, maximumEntry: Int64) -> DiskStorage {
        // The path is not resolved: a path through a link is another storage, which refuses the link.
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
