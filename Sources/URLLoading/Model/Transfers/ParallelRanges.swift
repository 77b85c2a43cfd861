// SPDX-License-Identifier: Apache-2.0

/// How many parts of a file are downloaded at once, and how small a part may be; for
/// ``DownloadOptions/parallelRanges``.
///
/// ```swift
/// options.parallelRanges = .automatic
/// options.parallelRanges = 8
/// options.parallelRanges = ParallelRanges(4, minimumPartSize: 16 << 20)
/// ```
public struct ParallelRanges: Sendable, Hashable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// The number of parts at once, 1 to 16. Each has a connection of its own, or over HTTP/2 a stream of one, and
    /// there are never more than ``Configuration/Connections/maximumPerHost``.
    public var count: Int { didSet { count = Self.valid(count) } }
    /// The size, in bytes, below which no part is divided further; 64 KiB to 4 EiB, 1 MiB by default. A file with less
    /// than twice as many bytes is loaded as a whole.
    public var minimumPartSize: Int64 { didSet { minimumPartSize = Self.valid(minimumPartSize) } }

    /// Four parts at once of at least 1 MiB: enough where a server limits each connection, and few enough for servers
    /// that limit the connections of a client.
    public static let automatic = ParallelRanges(4)

    /// Creates a number of parts; values outside of the ranges of the properties become the nearest in them.
    public init(_ count: Int, minimumPartSize: Int64 = 1 << 20) {
        (self.count, self.minimumPartSize) = (Self.valid(count), Self.valid(minimumPartSize))
    }

    private static func valid(_ count: Int) -> Int { min(max(count, 1), 16) }
    private static func valid(_ size: Int64) -> Int64 { min(max(size, 64 << 10), 1 << 62) }

    /// Creates a number of parts of the usual smallest size.
    public init(integerLiteral count: Int) { self.init(count) }

    /// The number of parts and their least size: `4 of 1048576`.
    public var description: String { "\(count) of \(minimumPartSize)" }

    /// Reads the text of ``description``; `nil` for another.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 3, words[1] == "of", let count = Int(words[0]), let size = Int64(words[2]) else {
            return nil
        }
        self.init(count, minimumPartSize: size)
    }
}
