// SPDX-License-Identifier: Apache-2.0

// In this folder: stored responses, their keys, and the storage in memory

// The storage of a cache: in memory, on disk, or both. It knows no HTTP rules: it stores entries until it needs the
// room, and returns an entry completely or not at all. All calls may be made from any task; those marked "may block"
// belong on threads that may block (`BlockingThreads.files`).

protocol CacheStorage: Sendable, AnyObject {
    /// Returns all variants under a key, without bodies, the one stored last first. Returns `nil` if only `variants`
    /// can find them. Never waits for a disk.
    func variantsNow(_ key: CacheKey) -> [StoredResponse]?
    /// Returns all variants under a key, without bodies, the one stored last first. May block.
    func variants(_ key: CacheKey) -> [StoredResponse]
    /// Returns the body of a stored response and marks it as used, if all of it is in memory, the storage's or the
    /// kernel's. For `nil`, `body` tells more. Never waits for a disk.
    func bodyNow(_ response: StoredResponse) -> (any StoredBody)?
    /// Returns the body of a stored response and marks it as used; `nil` if it is gone, or damaged and therefore
    /// removed. May block.
    func body(_ response: StoredResponse) -> (any StoredBody)?

    /// Begins to store a response. Entries with the same key and varying fields stay until the new one is complete.
    /// Returns `nil` if the response cannot be stored: too large, no room, or a failed storage. Does not block.
    /// - Parameter length: the length of the body in bytes, if known.
    func write(_ response: StoredResponse, length: Int64?) -> (any CacheWriting)?
    /// Begins to complete a partial response; `nil` as for `write`. Does not block.
    func append(to response: StoredResponse) -> (any CacheWriting)?
    /// Stores a complete response.
    func store(_ response: StoredResponse, body: [UInt8]) -> Bool
    /// Replaces head and times of a stored response (RFC 9111 §3.2, §4.3.4); its body stays. Does not block.
    func update(_ response: StoredResponse)

    /// Removes one variant, all variants of a key, all responses that arrived at or after a moment (seconds since
    /// 1970), or everything. After the return, no lookup finds a removed entry; the disk follows later.
    func remove(_ response: StoredResponse)
    func remove(_ key: CacheKey)
    func removeAll(since moment: Double?)

    /// Returns why a response cannot be stored by any tier although its size fits, and what to do about it; `nil`
    /// without such a reason. The cache reports the problem from then on.
    func refusal(of response: StoredResponse) -> CacheProblem?

    /// Counts removals, so that a load that began before a removal does not store its response after it.
    var removals: CacheRemovals { get }

    /// Blocks until all earlier writes have reached their destination.
    func flush()
}

extension CacheStorage {
    func refusal(of response: StoredResponse) -> CacheProblem? { nil }
}

/// Receives the body of a response to store. It has one owner; released before `finish` or `abandon`, it stores
/// nothing.
protocol CacheWriting: AnyObject {
    /// Takes a piece; returns `false` if the storage has given up. Does not block.
    func append(_ chunk: Chunk) -> Bool
    /// Unwritten pieces have accumulated: await `ready` before the next piece.
    var isBehind: Bool { get }
    func ready(_ handle: LoadHandle) async
    /// Completes the body; lookups find the response from now on.
    func finish()
    /// Ends a body that was cut off. The bytes are kept if a range request can complete them (`isResumable`).
    func abandon(isResumable: Bool)
}

/// A stored body. It stays readable to its end even if its entry is removed.
protocol StoredBody: AnyObject, Sendable {
    var length: Int64 { get }
    /// The bytes, if all of them are in memory.
    var bytes: Chunk? { get }
    /// Returns a piece from an offset: at least one byte unless the offset is the end, at most `atMost`; `nil` if the
    /// body is damaged or unreadable. Blocks, unless `bytes` is set.
    func read(at offset: Int64, atMost: Int) -> Chunk?
}
