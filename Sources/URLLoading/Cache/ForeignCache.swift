// A cache that is somebody else's code: asked before a load, and given what may be kept. What a stored response is good
// for, `CachePlan` says as ever.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// Keeps responses in the place of a ``ResponseCache``; for the classic shape.
package protocol ForeignCache: AnyObject, Sendable {
    /// What is kept for a GET like this, whatever its age. The load waits for it, but not beyond its own end, nor longer than
    /// it would wait for a server that says nothing: then nothing is kept.
    func cachedResponse(for request: Request) async -> CachedResponse?
    /// Keeps what a server has confirmed.
    func store(_ entry: CachedResponse, for request: Request)
    /// Removes what is kept for the URL of a request.
    func remove(for request: Request)
    /// The most bytes of a body worth collecting.
    var largestEntry: Int { get }
}
