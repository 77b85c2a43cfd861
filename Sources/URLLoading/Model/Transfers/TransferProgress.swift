// SPDX-License-Identifier: Apache-2.0

// Progress of the body of a request or of a response.

/// The number of bytes of one progress event, and the total so far.
public struct TransferProgress: Sendable, Hashable, CustomStringConvertible {
    /// Bytes since the last progress event, at least 1.
    public let count: Int
    /// Bytes since the beginning of the body.
    public let total: Int64
    /// The expected total in bytes; `nil` if unknown.
    public let expected: Int64?

    /// Creates a progress event, for handlers and tests.
    public init(count: Int, total: Int64, expected: Int64?) {
        self.count = count
        self.total = total
        self.expected = expected
    }

    public var description: String { expected.map { "+\(count) \(total)/\($0)" } ?? "+\(count) \(total)" }
}
