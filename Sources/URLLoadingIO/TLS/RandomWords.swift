// SPDX-License-Identifier: Apache-2.0

import URLLoadingCOpenSSL

/// Draws many cryptographically random numbers with one call.
package enum RandomWords {
    /// Returns `count` numbers; empty if the system cannot provide them.
    package static func draw(_ count: Int) -> [UInt64] {
        guard count > 0, count <= 1 << 16 else { return [] }
        return [UInt64](unsafeUninitializedCapacity: count) { words, filled in
            guard let start = words.baseAddress else { return }
            let isDrawn = start.withMemoryRebound(to: UInt8.self, capacity: 8 * count) {
                RAND_bytes($0, Int32(8 * count)) == 1
            }
            if !isDrawn { ERR_clear_error() }
            filled = isDrawn ? count : 0
        }
    }
}
