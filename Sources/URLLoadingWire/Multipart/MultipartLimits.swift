/// How much a peer may make us hold or look at. All in bytes unless said otherwise. Parts have no limit
/// in size: they are never held.
package struct MultipartLimits: Sendable, Hashable {
    /// The fields of one part with the empty line after them. Senders use 100 to 300.
    package var headSize = 16 * 1024
    /// Field lines of one part, a count.
    package var fieldCount = 64
    /// Parts in one body, a count. `Int.max` for multipart/x-mixed-replace, which has no end. Apache
    /// answers no more than 200 ranges.
    package var partCount = 1024
    /// What is skipped before the first part. Mail has a sentence there, HTTP nothing.
    package var preambleSize = 64 * 1024
    /// What is skipped after the last part.
    package var epilogueSize = 64 * 1024

    package init() {}

    /// Numbers that can be added to without a thought.
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
