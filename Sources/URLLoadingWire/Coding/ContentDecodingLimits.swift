// SPDX-License-Identifier: Apache-2.0

/// Limits of the expansion of coded content, against decompression bombs. Decoding is streamed and holds only a few KiB
/// itself, so the limits protect callers that collect the output.
package struct ContentDecodingLimits: Sendable, Hashable {
    /// The number of codings in one Content-Encoding. curl allows 5; legitimate servers never use two.
    package var layers = 5
    /// Output bytes for each input byte. Deflate reaches 1032 on zeros, so a single layer of it is never refused, but
    /// nested bombs are. br and zstd have no such bound: one layer of them can be a bomb.
    package var ratio = 1100
    /// Output in bytes below which the ratio is not checked.
    package var ratioThreshold: Int64 = 4 << 20
    /// The total output in bytes.
    package var outputSize = Int64.max

    package init() {}
}
