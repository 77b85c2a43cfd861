// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// Caches responses, in memory and, if it has a directory, on disk, and evicts the least recently used.
///
/// ```swift
/// let cache = ResponseCache(diskCapacity: 256 << 20, directory: URL(filePath: "/var/cache/crawler"))
/// if let entry = cache.cachedResponse(for: Request(url: url)) { show(entry.data) }
/// cache.remove(for: Request(url: url))
/// ```
/// Sessions, caches and processes may share a directory, which must belong to this user. The cache may be deleted at
/// any time: a damaged store is replaced by a new one, a response that does not fit is not stored, and no load fails
/// for these reasons; see ``problem``. All calls are synchronous and may be made from any task. Lookups and ``flush()``
/// may wait for the disk; cancellation does not end that wait.
public final class ResponseCache: Sendable, CustomStringConvertible {
    /// The cache of this user and program: in `$XDG_CACHE_HOME/<program>`, or in `~/.cache/<program>`.
    public static let shared = ResponseCache(
        directory: URL(filePath: StorageFolders.cache, directoryHint: .isDirectory))

    /// The directory of the persistent entries; `nil` for a cache in memory only.
    public let directory: URL?
    let storage: any CacheStorage
    let memory: MemoryStorage
    let disk: DiskStorage?
    private let limits: Lock<Limits>

    private struct Limits: Sendable {
        var memory: Int
        var disk: Int64
        var entry: Int64?

        /// A twentieth of the capacity, so that one response does not evict all others, but at least 64 KiB.
        func entry(in capacity: Int64) -> Int64 { min(capacity, entry ?? max(capacity / 20, 64 << 10)) }
    }

    /// Creates a cache, in memory or with a part on disk.
    /// - Parameters:
    ///   - memoryCapacity: the limit in memory, in bytes, heads included; 0 stores nothing there.
    ///   - diskCapacity: the limit on disk, in bytes; 0 stores nothing there.
    ///   - directory: a `file` URL, created when it is needed; `nil` for a cache in memory that touches no file.
    public init(memoryCapacity: Int = 4 << 20, diskCapacity: Int64 = 128 << 20, directory: URL? = nil) {
        let limits = Limits(memory: max(0, memoryCapacity), disk: max(0, diskCapacity))
        self.directory = directory
        memory = MemoryStorage(
            capacity: limits.memory, maximumEntry: Int(limits.entry(in: Int64(limits.memory))))
        disk = directory.map {
            DiskRegistry.storage($0, capacity: limits.disk, maximumEntry: limits.entry(in: limits.disk))
        }
        storage = if let disk { TieredStorage(memory, disk) } else { memory }
        self.limits = Lock(limits)
    }

    // MARK: Capacities

    /// The limit in memory, in bytes. A lower value takes effect at once.
    public var memoryCapacity: Int {
        get { limits.withLock { $0.memory } }
        set { change { $0.memory = max(0, newValue) } }
    }

    /// The limit on disk, in bytes. A lower value takes effect soon; ``flush()`` waits for that.
    public var diskCapacity: Int64 {
        get { limits.withLock { $0.disk } }
        set { change { $0.disk = max(0, newValue) } }
    }

    /// The size of the largest body to store, in bytes; `nil`, the default, is a twentieth of each capacity, but at
    /// least 64 KiB. Never more than the capacity itself.
    public var maximumEntrySize: Int64? {
        get { limits.withLock { $0.entry } }
        set { change { $0.entry = newValue.map { max(0, $0) } } }
    }

    private func change(_ edit: (inout Limits) -> Void) {
        let limits = limits.withLock { limits in
            edit(&limits)
            return limits
        }
        memory.set(capacity: limits.memory, maximumEntry: Int(limits.entry(in: Int64(limits.memory))))
        disk?.set(capacity: limits.disk, maximumEntry: limits.entry(in: limits.disk))
    }

    /// The bytes stored in memory.
    public var memoryUsage: Int { memory.usage }

    /// The bytes stored on disk, without entries that are about to be removed. May wait for the disk.
    public var diskUsage: Int64 { disk?.usage ?? 0 }

    /// The first problem with the disk. If the disk has none: that responses which must not be written to a file were
    /// not stored, because ``memoryCapacity`` is 0; ``LoadEvent/notStored(_:)`` reports these as well. `nil` without a
    /// problem. No load fails for it.
    public var problem: Problem? { disk?.problem ?? (storage as? TieredStorage)?.problem }

    // MARK: By request

    /// Returns the complete stored response to an equal GET, whatever its age; `nil` without one.
    ///
    /// A field that the request leaves to its session counts as equal to the stored one. Responses that belong to a
    /// login, a client certificate or the cookies of a store, and responses of servers that were trusted by non-default
    /// checks, are served to their sessions only and are not returned here.
    public func cachedResponse(for request: Request) -> CachedResponse? {
        cachedResponse(for: request, ofOthers: false)
    }

    /// - Parameter ofOthers: also returns a response that belongs to cookies or to non-default checks, if there is no
    ///   public one. The entry carries its owner, and keeps it when it is stored again.
    package func cachedResponse(for request: Request, ofOthers: Bool) -> CachedResponse? {
        guard request.method == .get, let key = CacheKey(request) else { return nil }
        let query = CacheQuery(request)
        let fitting = storage.variants(key).filter { $0.isWhole && Varying.mismatch($0, query) == nil }
        let others = ofOthers ? fitting.filter { CacheOwner.isHidden($0.varying) } : []
        for stored in fitting.filter({ !CacheOwner.isHidden($0.varying) }) + others {
            if let data = storage.body(stored)?.data { return CachedResponse(stored, data: data) }
        }
        return nil
    }

    /// Stores a response for equal GETs, in place of an earlier one. Its arrival time is now.
    /// - Returns: `false` if it is not stored: too large, a scheme other than http and https, a method other than GET,
    ///   `Vary: *`, ``Response/StoragePolicy/notAllowed``, or a disk that accepts nothing and no room in memory.
    @discardableResult
    public func store(_ entry: CachedResponse, for request: Request) -> Bool {
        guard let stored = entry.stored(for: request, now: Date().timeIntervalSince1970) else { return false }
        disk?.waitUntilReady()
        return storage.store(stored, body: Array(entry.data))
    }

    /// Removes all responses stored for the URL of a request.
    public func remove(for request: Request) {
        if let key = CacheKey(request) { storage.remove(key) }
    }

    /// Removes all responses that arrived at a moment or after it; everything for `nil`.
    public func removeAll(since moment: Date? = nil) { storage.removeAll(since: moment?.timeIntervalSince1970) }

    /// Blocks until the directory has all earlier changes, at most five seconds longer than the disk takes.
    ///
    /// Heads and small bodies are synchronised to the disk. Bodies above 16 KiB and the names of new files are not: a
    /// loss of power may cost such an entry, and what is left of it is not served. While another process holds the
    /// directory's lock for more than a quarter of a second, or the disk is full, nothing is stored, and removals are
    /// tried again for five seconds; ``problem`` then says that they are not on disk yet. Until they are, this process
    /// does not serve what they remove.
    public func flush() { storage.flush() }

    /// The sizes and capacities, without any content.
    public var description: String {
        let memory = "\(memoryUsage)/\(memoryCapacity) bytes in memory"
        guard let disk else { return memory }
        return memory + ", \(disk.knownUsage)/\(diskCapacity) on disk" + (problem.map { " (\($0.reason))" } ?? "")
    }
}

extension StoredBody {
    /// The complete body; `nil` if it cannot be read.
    var data: Data? {
        if let bytes { return Data(bytes) }
        var data = Data(capacity: Int(clamping: length))
        while Int64(data.count) < length {
            guard let chunk = read(at: Int64(data.count), atMost: 256 << 10), chunk.count > 0 else { return nil }
            data.append(chunk)
        }
        return data
    }
}

extension ResponseCache {
    /// A problem with the disk of a cache.
    public typealias Problem = CacheProblem
}
