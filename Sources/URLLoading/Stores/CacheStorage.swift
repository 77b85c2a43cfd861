// Where a cache keeps responses: in memory, on disk, or in both. It knows nothing of HTTP's rules: it keeps what it is
// given until it needs the room, and gives back the whole of it or nothing. All calls are from any task; those marked
// "may block" are for threads that may (`BlockingThreads.files`), unless `isImmediate` says that they never do.

import URLLoadingIO

protocol CacheStorage: Sendable, AnyObject {
    /// All variants under a key, without bodies, the one stored last first. `nil`: whoever asks must ask again where he
    /// may block. Never waits for a disk.
    func variantsNow(_ key: CacheKey) -> [StoredResponse]?
    /// The same. May block.
    func variants(_ key: CacheKey) -> [StoredResponse]
    /// The body of a stored response, and that it was used now; `nil` if it is gone meanwhile, or its storage finds
    /// that it is damaged: then it goes away. May block, unless `isInMemory`.
    func body(_ response: StoredResponse) -> (any StoredBody)?
    /// True if `body` of this response would not block.
    func isInMemory(_ response: StoredResponse) -> Bool

    /// Begins to store a response in place of those with the same key and varying fields, which stay until the new one is
    /// whole. `nil` if it will not be kept: too large, no room, storage that failed. Does not block.
    /// - Parameter length: of the body, if it is known.
    func write(_ response: StoredResponse, length: Int64?) -> (any CacheWriting)?
    /// Begins to complete one that is only a beginning; `nil` as above. Does not block.
    func append(to response: StoredResponse) -> (any CacheWriting)?
    /// Stores one that is here whole.
    func store(_ response: StoredResponse, body: [UInt8]) -> Bool
    /// Replaces head and times of a stored response (RFC 9111 §3.2, §4.3.4); its body stays. Does not block.
    func update(_ response: StoredResponse)

    /// Removes one variant; all of a key; all that came after a moment (seconds since 1970); everything. When these
    /// return, no look-up finds what they removed; the disk follows.
    func remove(_ response: StoredResponse)
    func remove(_ key: CacheKey)
    func removeAll(since moment: Double?)

    /// Why a response is kept nowhere, although others as large are, and what to do about it; `nil` for no such reason.
    /// Says so in the cache's problem from then on.
    func refusal(of response: StoredResponse) -> CacheProblem?

    /// Counts removals, so that who began to load before one does not store after it.
    var removals: CacheRemovals { get }

    /// Returns when all that was stored before is where it belongs. Blocks.
    func flush()
}

extension CacheStorage {
    func refusal(of response: StoredResponse) -> CacheProblem? { nil }
}

/// The body of a response while it comes in. One owner; dropped without a word it stores nothing.
protocol CacheWriting: AnyObject, Sendable {
    /// Takes a piece; `false` if the storage has given up, and wants no more. Does not block.
    func append(_ chunk: Chunk) -> Bool
    /// More was given than the storage could write so far: before the next piece `ready` should be awaited.
    var isBehind: Bool { get }
    func ready(_ handle: LoadHandle) async
    /// The body is whole: from now on it is found.
    func finish()
    /// It broke off. What came is kept if a range can complete it (`isResumable`), otherwise nothing is.
    func abandon(isResumable: Bool)
}

/// A body that is stored. It stays readable to its end, whatever is removed meanwhile.
protocol StoredBody: AnyObject, Sendable {
    var length: Int64 { get }
    /// The bytes, if all of them are in memory.
    var bytes: Chunk? { get }
    /// A piece from an offset, at least one byte unless that is the end, at most so many; `nil` if it cannot be read any
    /// more or is not what was stored. Blocks, unless `bytes` is there.
    func read(at offset: Int64, atMost: Int) -> Chunk?
}
