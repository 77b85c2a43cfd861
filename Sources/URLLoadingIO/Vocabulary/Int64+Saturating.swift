// SPDX-License-Identifier: Apache-2.0

extension Int64 {
    /// The sum, or the number nearest to it: times and limits of callers, servers and files may be any numbers.
    package func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other < 0 ? .min : .max) : sum
    }

    /// The difference, or the number nearest to it.
    package func saturatingSubtract(_ other: Int64) -> Int64 {
        let (difference, overflows) = subtractingReportingOverflow(other)
        return overflows ? (other < 0 ? .max : .min) : difference
    }
}
