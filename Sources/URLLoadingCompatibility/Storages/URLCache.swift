// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// Stores responses in memory and on disk, and answers requests from them.
///
/// ```swift
/// let configuration = URLSessionConfiguration.default
/// configuration.urlCache = URLCache(memoryCapacity: 16 << 20, diskCapacity: 256 << 20, diskPath: "/var/cache/images")
/// let kept = configuration.urlCache?.cachedResponse(for: URLRequest(url: url))
/// ```
/// A view of the core's `ResponseCache`, which sessions use directly. RFC 9111 decides which responses may be stored
/// and reused. For a subclass, sessions call the methods for data tasks, whose default implementations call those for
/// requests, so every override takes effect. All members may be used from any thread; a lookup may wait for the disk.
open class URLCache: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// The places where a response may be stored.
    public enum StoragePolicy: UInt, Sendable {
        /// In memory and on disk.
        case allowed = 0
        /// In memory, never in a file.
        case allowedInMemoryOnly = 1
        /// Not at all.
        case notAllowed = 2
    }

    private static let standard = Lock<URLCache>(URLCache(.shared))

    /// The cache of ``URLSessionConfiguration/default``: the core's `ResponseCache.shared` of this user and program,
    /// unless another cache was set. Setting it does not affect existing sessions.
    open class var shared: URLCache {
        get { standard.withLock { $0 } }
        set { standard.withLock { $0 = newValue } }
    }

    final let core: ResponseCache

    /// Creates a cache with a folder named by a path.
    /// - Parameters:
    ///   - memoryCapacity: the memory capacity in bytes.
    ///   - diskCapacity: the disk capacity in bytes; with 0 no file is used.
    ///   - path: the path of a folder, created when it is needed; `nil` for the folder of this user and program, which
    ///     all such caches share.
    public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        core = Self.make(memoryCapacity, diskCapacity, path.map { URL(fileURLWithPath: $0, isDirectory: true) })
    }

    /// Creates a cache in the folder with this URL; `nil` for the folder of this user and program.
    public init(memoryCapacity: Int, diskCapacity: Int, directory directoryURL: URL? = nil) {
        core = Self.make(memoryCapacity, diskCapacity, directoryURL)
    }

    private init(_ core: ResponseCache) { self.core = core }

    private static func make(_ memory: Int, _ disk: Int, _ directory: URL?) -> ResponseCache {
        let folder = directory ?? URL(fileURLWithPath: StorageFolders.cache, isDirectory: true)
        return ResponseCache(memoryCapacity: memory, diskCapacity: Int64(disk), directory: disk > 0 ? folder : nil)
    }

    /// Whether this is `URLCache` itself, so that no method is overridden.
    final var isPlain: Bool { type(of: self) == URLCache.self }

    /// The size in bytes up to which a body is collected for the cache: a single entry must not evict all others.
    final var largestEntry: Int {
        let capacity = max(memoryCapacity, diskCapacity)
        return min(capacity, max(capacity / 20, 64 << 10))
    }

    // MARK: By request

    /// Returns the stored response to a GET of this URL, regardless of its age.
    open func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        guard case .success(let asked) = Request.make(request) else { return nil }
        return core.cachedResponse(for: asked, ofOthers: true).map { CachedURLResponse($0) }
    }

    /// Stores a response for GETs like this one, replacing the stored one. Only responses to http and https are stored,
    /// if they fit and ``CachedURLResponse/storagePolicy`` allows it. The response counts as received now.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        guard case .success(let asked) = Request.make(request) else { return }
        core.store(cachedResponse.core(for: asked.url), for: asked)
    }

    /// Removes all responses stored for the URL of a request.
    open func removeCachedResponse(for request: URLRequest) {
        if case .success(let asked) = Request.make(request) { core.remove(for: asked) }
    }

    /// Removes all responses.
    open func removeAllCachedResponses() { core.removeAll() }

    /// Removes the responses received at this date or later.
    open func removeCachedResponses(since date: Date) { core.removeAll(since: date) }

    // MARK: For a task

    /// Stores a response for the request of a task.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        if let request = dataTask.currentRequest { storeCachedResponse(cachedResponse, for: request) }
    }

    /// Passes the response stored for the request of a task to a closure.
    /// - Parameter completionHandler: called once, before this method returns; a subclass may call it later.
    open func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) { completionHandler(dataTask.currentRequest.flatMap { cachedResponse(for: $0) }) }

    /// Removes the response to the request of a task.
    open func removeCachedResponse(for dataTask: URLSessionDataTask) {
        if let request = dataTask.currentRequest { removeCachedResponse(for: request) }
    }

    // MARK: Capacity and usage

    /// The memory capacity in bytes. A reduction takes effect at once.
    open var memoryCapacity: Int {
        get { core.memoryCapacity }
        set { core.memoryCapacity = newValue }
    }

    /// The disk capacity in bytes; without effect if the cache was created with 0.
    open var diskCapacity: Int {
        get { core.directory == nil ? 0 : Int(clamping: core.diskCapacity) }
        set { core.diskCapacity = Int64(newValue) }
    }

    /// The bytes in use in memory.
    open var currentMemoryUsage: Int { core.memoryUsage }
    /// The bytes of the responses stored on disk, which ``diskCapacity`` limits. The database's log, of up to 4.3 MB,
    /// is not included.
    open var currentDiskUsage: Int { Int(clamping: core.diskUsage) }
}

extension URLCache.StoragePolicy {
    init(_ policy: Response.StoragePolicy) {
        self =
            switch policy {
            case .allowed: .allowed
            case .allowedInMemoryOnly: .allowedInMemoryOnly
            case .notAllowed: .notAllowed
            }
    }

    var core: Response.StoragePolicy {
        switch self {
        case .allowed: .allowed
        case .allowedInMemoryOnly: .allowedInMemoryOnly
        case .notAllowed: .notAllowed
        }
    }
}
