public import FoundationEssentials

/// A response with its body, as a cache keeps it.
///
/// ```swift
/// decisions.cache = Decision { entry in
///     var altered = entry
///     altered.userInfo = Data("seen".utf8)
///     return .instead(altered)
/// }
/// ```
/// A value: what is changed in it changes nothing in a cache until it is stored.
public struct CachedResponse: Sendable {
    /// Status and fields. Its URL is where it came from.
    public var response: Response
    /// The whole body, with its content coding undone as for every caller.
    public var data: Data
    /// Whatever its owner wants to have back with it; `nil` for nothing. Kept as it is, never sent.
    public var userInfo: Data?
    /// Where it may be kept.
    public var storagePolicy: Response.StoragePolicy

    /// An entry of its parts.
    public init(
        response: Response, data: Data, userInfo: Data? = nil, storagePolicy: Response.StoragePolicy = .allowed
    ) {
        self.response = response
        self.data = data
        self.userInfo = userInfo
        self.storagePolicy = storagePolicy
    }
}
