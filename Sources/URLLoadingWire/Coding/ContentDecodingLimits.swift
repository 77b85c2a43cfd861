/// How far coded content may grow (security 48). Decoding is streamed and holds a few KiB, so these
/// protect whoever collects what comes out.
package struct ContentDecodingLimits: Sendable, Hashable {
    /// Codings in one Content-Encoding, a count. curl: 5. Nobody honest uses two.
    package var layers = 5
    /// Bytes out for each byte in. Deflate reaches 1032 on zeros, so no single layer of it is refused,
    /// and a bomb within a bomb is. br and zstd know no such bound: one layer of them can be a bomb.
    package var ratio = 1100
    /// Output in bytes below which the ratio is not looked at.
    package var ratioThreshold: Int64 = 4 << 20
    /// Output in bytes in all.
    package var outputSize = Int64.max

    package init() {}
}
