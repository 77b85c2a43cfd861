public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// Keeps responses, in memory and on disk, and answers from them.
///
/// ```swift
/// let configuration = URLSessionConfiguration.default
/// configuration.urlCache = URLCache(memoryCapacity: 16 << 20, diskCapacity: 256 << 20, diskPath: "/var/cache/images")
/// let kept = configuration.urlCache?.cachedResponse(for: URLRequest(url: url))
/// ```
/// A view of the core's `ResponseCache`, which sessions use without a detour; what may be kept and what answers is HTTP's to
/// say (RFC 9111). Of a subclass sessions ask the methods for data tasks, which ask those for requests: what it overrides is
/// heard. All of it may be used from any thread; looking something up may wait for the disk.
open class URLCache: NSObject, @unchecked Sendable {
    /// Where a response may be kept.
    public enum StoragePolicy: UInt, Sendable {
        case allowed = 0
        /// Never in a file.
        case allowedInMemoryOnly = 1
        case notAllowed = 2
    }

    private static let standard = Lock<URLCache>(URLCache(.shared))
    private static let isReplaced = Atomic<Bool>(false)

    /// What ``URLSessionConfiguration/default`` has: the core's `ResponseCache.shared`, of this user and program, unless
    /// another was set here. Sessions that are there already keep theirs.
    open class var shared: URLCache {
        get { standard.withLock { $0 } }
        set {
            isReplaced.store(true, ordering: .releasing)
            standard.withLock { $0 = newValue }
        }
    }

    static var isSharedReplaced: Bool { isReplaced.load(ordering: .acquiring) }

    final let core: ResponseCache

    /// - Parameters:
    ///   - memoryCapacity: bytes.
    ///   - diskCapacity: bytes; 0 touches no file.
    ///   - path: of a folder, made when it is needed; `nil` for that of this user and program, which all such caches share.
    public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        core = Self.make(memoryCapacity, diskCapacity, path.map { URL(fileURLWithPath: $0, isDirectory: true) })
    }

    /// The same for the URL of a folder.
    public init(memoryCapacity: Int, diskCapacity: Int, directory directoryURL: URL? = nil) {
        core = Self.make(memoryCapacity, diskCapacity, directoryURL)
    }

    private init(_ core: ResponseCache) { self.core = core }

    private static func make(_ memory: Int, _ disk: Int, _ directory: URL?) -> ResponseCache {
        let folder = directory ?? URL(fileURLWithPath: StorageFolders.cache, isDirectory: true)
        return ResponseCache(memoryCapacity: memory, diskCapacity: Int64(disk), directory: disk > 0 ? folder : nil)
    }

    /// Nothing of it can be overridden.
    final var isPlain: Bool { type(of: self) == URLCache.self }

    /// The most bytes of a body worth collecting: one is not to drive out all others.
    final var largestEntry: Int {
        let capacity = max(memoryCapacity, diskCapacity)
        return min(capacity, max(capacity / 20, 64 << 10))
    }

    // MARK: By request

    /// The whole response that is kept for a GET like this, whatever its age.
    open func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        guard case .success(let asked) = Request.make(request) else { return nil }
        return core.cachedResponse(for: asked, ofOthers: true).map { CachedURLResponse($0) }
    }

    /// Keeps a response for GETs like this, in place of what was there. Only http and https are kept, what fits, and what
    /// the ``CachedURLResponse/storagePolicy`` allows. It counts as having come now.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        guard case .success(let asked) = Request.make(request) else { return }
        core.store(cachedResponse.core(for: asked.url), for: asked)
    }

    /// Removes all that is kept for the URL of a request.
    open func removeCachedResponse(for request: URLRequest) {
        if case .success(let asked) = Request.make(request) { core.remove(for: asked) }
    }

    open func removeAllCachedResponses() { core.removeAll() }

    /// Removes what came at this moment or later.
    open func removeCachedResponses(since date: Date) { core.removeAll(since: date) }

    // MARK: For a task

    /// Keeps a response for the request of a task.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        if let request = dataTask.currentRequest { storeCachedResponse(cachedResponse, for: request) }
    }

    /// Gives what is kept for the request of a task.
    /// - Parameter completionHandler: called once, before this returns; a subclass may call it later.
    open func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) { completionHandler(dataTask.currentRequest.flatMap { cachedResponse(for: $0) }) }

    open func removeCachedResponse(for dataTask: URLSessionDataTask) {
        if let request = dataTask.currentRequest { removeCachedResponse(for: request) }
    }

    // MARK: How much

    /// Bytes it may hold in memory. A smaller one takes effect at once.
    open var memoryCapacity: Int {
        get { core.memoryCapacity }
        set { core.memoryCapacity = newValue }
    }

    /// Bytes it may hold on disk; without effect if it was made with 0.
    open var diskCapacity: Int {
        get { core.directory == nil ? 0 : Int(clamping: core.diskCapacity) }
        set { core.diskCapacity = Int64(newValue) }
    }

    open var currentMemoryUsage: Int { core.memoryUsage }
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
