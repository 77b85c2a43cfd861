public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// Keeps responses, in memory and, if it has a directory, on disk, those used last longest.
///
/// ```swift
/// let cache = ResponseCache(diskCapacity: 256 << 20, directory: URL(filePath: "/var/cache/crawler"))
/// if let entry = cache.cachedResponse(for: Request(url: url)) { show(entry.data) }
/// cache.remove(for: Request(url: url))
/// ```
/// Sessions, caches and processes may share a directory; it belongs to this user alone. Losing it loses nothing but
/// time: a store that is damaged is begun anew, what does not fit is not kept, and no load ever fails for it; see
/// ``problem``. All calls are synchronous and from any task. Those that look something up, and ``flush()``, may wait
/// for the disk, and no cancellation ends that wait.
public final class ResponseCache: Sendable, CustomStringConvertible {
    /// Of this user and program: in `$XDG_CACHE_HOME/<program>`, or in `~/.cache/<program>`.
    public static let shared = ResponseCache(
        directory: URL(filePath: StorageFolders.cache, directoryHint: .isDirectory))

    /// Where it keeps what must outlive the process; `nil` for nowhere.
    public let directory: URL?
    let storage: any CacheStorage
    let memory: MemoryStorage
    let disk: DiskStorage?
    private let limits: Lock<Limits>

    private struct Limits: Sendable {
        var memory: Int
        var disk: Int64
        var entry: Int64?

        /// A twentieth, so that one response does not drive out all others; but what is small is never refused for it.
        func entry(in capacity: Int64) -> Int64 { min(capacity, entry ?? max(capacity / 20, 64 << 10)) }
    }

    /// - Parameters:
    ///   - memoryCapacity: bytes in memory, heads included; 0 keeps nothing there.
    ///   - diskCapacity: bytes on disk; 0 keeps nothing there.
    ///   - directory: a `file` URL, made when it is needed; `nil` for memory only, and no file is ever touched.
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

    /// Bytes it may hold in memory. A smaller one takes effect at once.
    public var memoryCapacity: Int {
        get { limits.withLock { $0.memory } }
        set { change { $0.memory = max(0, newValue) } }
    }

    /// Bytes it may hold on disk. With a smaller one the disk follows soon; ``flush()`` waits for that.
    public var diskCapacity: Int64 {
        get { limits.withLock { $0.disk } }
        set { change { $0.disk = max(0, newValue) } }
    }

    /// Bytes the largest body may have; by default a twentieth of a capacity, but at least 64 KiB. Never more than the
    /// capacity itself.
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

    /// Bytes it holds in memory.
    public var memoryUsage: Int { memory.usage }

    /// Bytes it holds on disk, with what is about to go not counted any more. May wait for the disk.
    public var diskUsage: Int64 { disk?.usage ?? 0 }

    /// What went wrong with the disk first, if anything did; else that responses were not kept which must not be in a
    /// file, for want of ``memoryCapacity``. No load fails for it. Of the latter ``LoadEvent/notStored(_:)`` tells,
    /// too.
    public var problem: Problem? { disk?.problem ?? (storage as? TieredStorage)?.problem }

    // MARK: By request

    /// The whole response that answers a GET like this, whatever its age; `nil` without one. A field that the request
    /// leaves to its session counts as the one it was stored with. What a login, a client certificate or the cookies of a
    /// store opened, and what came from servers that were believed by other checks than the usual, is for the sessions it
    /// belongs to and is not given out here.
    public func cachedResponse(for request: Request) -> CachedResponse? {
        cachedResponse(for: request, ofOthers: false)
    }

    /// - Parameter ofOthers: also what cookies or other checks made somebody's, if there is nothing that is anybody's; it says
    ///   whose it is, and stays his when it is stored again.
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

    /// Keeps a response for GETs like this, in place of what was there. It counts as having arrived now.
    /// - Returns: `false` if it is not kept: too large, no http or https, no GET, `Vary: *`,
    ///   ``Response/StoragePolicy/notAllowed``, or a disk that takes nothing and no room in memory.
    @discardableResult
    public func store(_ entry: CachedResponse, for request: Request) -> Bool {
        guard let stored = entry.stored(for: request, now: Date().timeIntervalSince1970) else { return false }
        disk?.waitUntilReady()
        return storage.store(stored, body: Array(entry.data))
    }

    /// Removes all that is kept for the URL of a request.
    public func remove(for request: Request) {
        if let key = CacheKey(request) { storage.remove(key) }
    }

    /// Removes all that came at a moment or after it; everything without one.
    public func removeAll(since moment: Date? = nil) { storage.removeAll(since: moment?.timeIntervalSince1970) }

    /// Returns when all that was stored before is where it outlives the process.
    public func flush() { storage.flush() }

    /// How much it holds, and nothing of it.
    public var description: String {
        let memory = "\(memoryUsage)/\(memoryCapacity) bytes in memory"
        guard let disk else { return memory }
        return memory + ", \(disk.knownUsage)/\(diskCapacity) on disk" + (problem.map { " (\($0.reason))" } ?? "")
    }
}

extension StoredBody {
    /// All of it; `nil` if it cannot be read.
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
    /// What went wrong with the disk of a cache.
    public typealias Problem = CacheProblem
}
