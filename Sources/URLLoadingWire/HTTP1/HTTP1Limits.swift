/// How much a peer may make us hold or look at before we give up (security 47, 48). All in bytes
/// unless said otherwise. Bodies have no limit here: they are never held.
package struct HTTP1Limits: Sendable, Hashable {
    /// One head with its start line and the empty line at its end. Servers send a few KiB; nginx
    /// takes 32 KiB by default, curl 300 KiB, browsers 256 KiB.
    package var headSize = 64 * 1024
    /// Field lines in one head or trailer section, a count. hyper and Apache stop at 100, and large
    /// sites with many cookies come close to it.
    package var fieldCount = 256
    /// Chunk extensions of one whole body. Nobody uses them, and every chunk can carry some: without
    /// a limit a body of one-byte chunks costs the attacker nothing. hyper: 16 KiB.
    package var chunkExtensionSize = 16 * 1024
    /// One trailer section. hyper: 16 KiB.
    package var trailerSize = 16 * 1024
    /// Interim responses before the final one, a count. RFC 9110 15.2 has no limit; hyper and Go stop
    /// at a handful, servers send one or two.
    package var informationalCount = 16

    package init() {}

    /// Numbers that can be added to without a thought: from nothing to a GiB.
    var clamped: HTTP1Limits {
        func clamp(_ number: Int) -> Int { min(max(0, number), 1 << 30) }
        var limits = self
        limits.headSize = clamp(headSize)
        limits.fieldCount = clamp(fieldCount)
        limits.chunkExtensionSize = clamp(chunkExtensionSize)
        limits.trailerSize = clamp(trailerSize)
        limits.informationalCount = clamp(informationalCount)
        return limits
    }
}
