// SPDX-License-Identifier: Apache-2.0

/// A storage that lies outside the library, as one load uses it: it answers later, or never, and never on a thread that
/// may block.
protocol AskedStorage: CacheStorage {
    /// Returns what the storage has for the load's request. Waits for a limited time; if that was too short, the
    /// storage has nothing.
    /// - Parameter again: asks even if it was asked before.
    /// - Throws: the reason why the load was stopped.
    func find(_ key: CacheKey, again: Bool) async throws(LoadError) -> [StoredResponse]
    /// Returns a response as the storage may have it; `nil` if it may not. Called before `write` and `store`.
    /// - Parameter removals: the number of removals of the key when the response was asked for: after another one it is
    ///   not stored.
    func admitted(_ response: StoredResponse, _ head: HTTPHead, since removals: Int) -> StoredResponse?
}
