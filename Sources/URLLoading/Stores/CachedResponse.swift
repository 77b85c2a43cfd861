public import FoundationEssentials

/// A response with its body, as a ``ResponseCache`` gives it out and takes it.
///
/// ```swift
/// var entry = CachedResponse(response: response, data: data)
/// entry.userInfo = Data("checked".utf8)
/// entry.storagePolicy = .allowedInMemoryOnly
/// cache.store(entry, for: request)
/// ```
public struct CachedResponse: Sendable {
    /// Status and fields, and the URL they came from.
    public var response: Response
    /// The whole body, its content coding undone.
    public var data: Data
    /// The caller's own: given back as it was.
    public var userInfo: Data?
    /// Whether it may be kept, and where.
    public var storagePolicy: Response.StoragePolicy

    /// An entry to store.
    public init(
        response: Response, data: Data, userInfo: Data? = nil, storagePolicy: Response.StoragePolicy = .allowed
    ) {
        self.response = response
        self.data = data
        self.userInfo = userInfo
        self.storagePolicy = storagePolicy
    }
}
