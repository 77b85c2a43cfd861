// SPDX-License-Identifier: Apache-2.0

extension Duration {
    /// The duration in nanoseconds: at least one, at most about 146 years.
    var nanoseconds: Int64 {
        guard self > .zero else { return 1 }
        // Compared as durations, because `components` ends the process if the seconds exceed `Int64`.
        guard self < .seconds(Int64.max / 2_000_000_000) else { return .max / 2 }
        return max(1, components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000)
    }

    /// The duration in milliseconds, with one decimal place.
    var inMilliseconds: String {
        let tenths = components.seconds * 10_000 + components.attoseconds / 100_000_000_000_000
        return "\(tenths / 10).\(tenths % 10)"
    }
}
