// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A response with its body, as an entry of a ``ResponseCache``.
///
/// ```swift
/// var entry = CachedResponse(response: response, data: data)
/// entry.userInfo = Data("checked".utf8)
/// entry.storagePolicy = .allowedInMemoryOnly
/// cache.store(entry, for: request)
/// ```
public struct CachedResponse: Sendable {
    /// The status, the fields, and the URL of the response.
    public var response: Response
    /// The complete body, decoded from its content coding.
    public var data: Data
    /// Data of the caller's own, returned unchanged.
    public var userInfo: Data?
    /// Whether and where the response may be stored.
    public var storagePolicy: Response.StoragePolicy

    /// Makes an entry to store.
    public init(
        response: Response, data: Data, userInfo: Data? = nil, storagePolicy: Response.StoragePolicy = .allowed
    ) {
        self.response = response
        self.data = data
        self.userInfo = userInfo
        self.storagePolicy = storagePolicy
    }
}
