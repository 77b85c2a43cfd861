import URLLoadingCOpenSSL

/// Numbers that nobody can guess, many for one call.
package enum RandomWords {
    /// Empty if the system has none to give.
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
