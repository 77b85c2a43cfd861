// SPDX-License-Identifier: Apache-2.0

// A cache implemented by the program: asked before a load, and given the responses to keep. `CachePlan` decides whether
// a stored response may be used, as for the library's own cache.

/// Stores responses in place of a ``ResponseCache``; used by the URLSession layer.
package protocol ForeignCache: AnyObject, Sendable {
    /// Returns the response stored for an equal GET, whatever its age. The load waits at most until its own end or its
    /// idle timeout, and then continues as if nothing were stored. Called on the event loop, so it must not block.
    func cachedResponse(for request: Request) async -> CachedResponse?
    /// Stores a response that a server has sent or confirmed.
    func store(_ entry: CachedResponse, for request: Request)
    /// Removes the responses stored for the URL of a request.
    func remove(for request: Request)
    /// The largest body worth collecting, in bytes.
    var largestEntry: Int { get }
}
