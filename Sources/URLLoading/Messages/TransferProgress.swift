// How far the body of a request or of a response has come.

/// How many bytes one event is about, and how many there were up to now.
public struct TransferProgress: Sendable, Hashable, CustomStringConvertible {
    /// Since the last such event, at least 1.
    public let count: Int
    /// Since the beginning.
    public let total: Int64
    /// How many there will be, if that is known.
    public let expected: Int64?

    public init(count: Int, total: Int64, expected: Int64?) {
        self.count = count
        self.total = total
        self.expected = expected
    }

    public var description: String { expected.map { "+\(count) \(total)/\($0)" } ?? "+\(count) \(total)" }
}
