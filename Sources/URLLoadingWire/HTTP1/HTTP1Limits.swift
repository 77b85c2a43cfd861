// SPDX-License-Identifier: Apache-2.0

/// Limits of what a peer can make the codec hold or examine. In bytes unless stated otherwise. Bodies have no limit,
/// because they are never held.
package struct HTTP1Limits: Sendable, Hashable {
    /// The size of one head with its start line and final empty line. Servers send a few KiB; nginx accepts 32 KiB by
    /// default, curl 300 KiB, browsers 256 KiB.
    package var headSize = 64 * 1024
    /// The number of field lines in one head or trailer section. Go and curl have no limit but
    /// the size of the head; browsers and Node stop at 1,000 to 2,000.
    package var fieldCount = 1_000
    /// The size of all chunk extensions of one body. They are practically unused, and every chunk can have some:
    /// without a limit, a body of one-byte chunks would cost an attacker nothing. hyper: 16 KiB.
    package var chunkExtensionSize = 16 * 1024
    /// The size of one trailer section. hyper: 16 KiB.
    package var trailerSize = 16 * 1024
    /// The number of interim responses before the final one. RFC 9110 §15.2 sets no limit; hyper and Go stop after a
    /// handful, servers send one or two.
    package var informationalCount = 16

    package init() {}

    /// The limits restricted to 0...1 GiB, a range in which sums cannot overflow.
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
