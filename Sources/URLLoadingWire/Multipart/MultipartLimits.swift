// SPDX-License-Identifier: Apache-2.0

/// Limits of what a peer can make the reader hold or examine. In bytes unless stated otherwise. Parts have no size
/// limit, because they are never held.
package struct MultipartLimits: Sendable, Hashable {
    /// The size of one part's fields with the empty line after them. Senders use 100 to 300 bytes.
    package var headSize = 16 * 1024
    /// The number of field lines of one part.
    package var fieldCount = 64
    /// The number of parts in one body. `Int.max` for multipart/x-mixed-replace, which has no end. Apache sends at most
    /// 200 ranges.
    package var partCount = 1024
    /// The size of the preamble, which is skipped. Mail has a sentence there, HTTP nothing.
    package var preambleSize = 64 * 1024
    /// The size of the epilogue, which is skipped.
    package var epilogueSize = 64 * 1024

    package init() {}

    /// The limits restricted to a range in which sums cannot overflow.
    var clamped: MultipartLimits {
        func clamp(_ number: Int) -> Int { min(max(0, number), 1 << 30) }
        var limits = self
        limits.headSize = clamp(headSize)
        limits.fieldCount = clamp(fieldCount)
        limits.preambleSize = clamp(preambleSize)
        limits.epilogueSize = clamp(epilogueSize)
        return limits
    }
}
