// SPDX-License-Identifier: Apache-2.0

// In this folder: a cache outside the library: what it may be given, and its records

public import FoundationEssentials

/// Keeps the responses of sessions where the program keeps its own data: in Redis, Valkey or memcached, or in a
/// database.
///
/// A session asks its store by the rules that it has for its own cache (RFC 9111); the store keeps bytes under keys,
/// and knows neither URLs nor HTTP.
///
/// ```swift
/// struct Rows: ResponseStore {
///     let table: Table
///     func value(for key: String) async throws -> ResponseStoreValue? {
///         try await table.row(key).map { ResponseStoreValue($0.bytes) }
///     }
///     func store(_ value: ResponseStoreValue, for key: String, lifetime: Duration) async throws {
///         try await table.replace(key, try await value.data, expiring: lifetime)
///     }
///     func removeValue(for key: String) async throws { try await table.delete(key) }
/// }
/// configuration.caching.external = ExternalCache(Rows(table: table))
/// ```
/// The methods are called at the same time for different keys, in tasks of their own, and never on the main actor's
/// behalf. No load fails and none waits beyond ``ExternalCache/timeout`` because of a store: a call that throws or is
/// too late counts as one that found nothing, or stored nothing. The task of a call that is too late, or whose load has
/// ended, is cancelled, and a call that ignores that is left alone; after several failures in a row the store is left
/// alone for two seconds.
///
/// A value protects itself: the session uses one only if it is complete, unchanged, and was stored under this key. So a
/// store may lose values, and need not replace one atomically.
public protocol ResponseStore: Sendable {
    /// Returns the value stored under a key.
    /// - Parameter key: 64 hexadecimal digits, which reveal nothing of the URL. A program that keeps other data in the
    ///   same place puts a prefix of its own before it.
    /// - Returns: `nil` without a value. The session stops reading a value that is larger than it can be.
    func value(for key: String) async throws -> ResponseStoreValue?

    /// Stores a value under a key, in place of an earlier one.
    /// - Parameters:
    ///   - value: at most ``ExternalCache/maximumEntrySize`` bytes, and 256 KiB for the head.
    ///   - key: as for ``value(for:)``.
    ///   - lifetime: at least one second. After that time the value is of no more use, and should be gone; a store
    ///     may drop it earlier.
    func store(_ value: ResponseStoreValue, for key: String, lifetime: Duration) async throws

    /// Removes the value of a key, if there is one. Called for each URL that an unsafe method invalidates (RFC 9111
    /// §4.4); this one key makes all variants of the URL unreachable. If it throws, the session uses nothing that is
    /// stored under the key until it has removed or replaced it.
    func removeValue(for key: String) async throws
}

/// A value of a ``ResponseStore``: bytes, in one piece or several.
///
/// ```swift
/// return ResponseStoreValue(bytes)              // in one piece
/// return ResponseStoreValue(pieces: stream)     // as they come: the session reads no more than it needs
/// for try await piece in value { try await file.append(piece) }
/// ```
public struct ResponseStoreValue: AsyncSequence, Sendable {
    /// The number of bytes, if it is known; that of a value to store always is.
    public let count: Int?
    private let makePull: @Sendable () -> () async throws -> Data?

    /// Creates a value of bytes in one piece.
    public init(_ bytes: Data) {
        count = bytes.count
        makePull = {
            var rest: Data? = bytes
            return { rest.take() }
        }
    }

    /// Creates a value of pieces, which are pulled no faster than the session reads them, in one task.
    /// - Parameters:
    ///   - pieces: an error that it throws is that of the call.
    ///   - count: the number of bytes, if it is known.
    public init<Pieces: AsyncSequence & Sendable>(pieces: Pieces, count: Int? = nil) where Pieces.Element == Data {
        self.count = count
        makePull = {
            nonisolated(unsafe) var iterator = pieces.makeAsyncIterator()
            return { try await iterator.next() }
        }
    }

    /// A value of a head and a body in memory, of which a copy is made piece by piece.
    init(_ head: [UInt8], _ body: Chunk?) {
        count = head.count + (body?.count ?? 0)
        makePull = {
            var first: [UInt8]? = head
            var rest = body
            return {
                if let head = first.take() { return Data(head) }
                guard let chunk = rest, chunk.count > 0 else { return nil }
                let (piece, others) = chunk.split(at: Swift.min(chunk.count, Self.pieceSize))
                rest = others
                return Data(piece)
            }
        }
    }

    private static let pieceSize = 64 << 10

    /// All bytes in one piece.
    public var data: Data {
        get async throws {
            var all = Data(capacity: count ?? 0)
            for try await piece in self { all.append(piece) }
            return all
        }
    }

    public func makeAsyncIterator() -> Iterator { Iterator(pull: makePull()) }

    /// Yields the pieces of a value.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pull: () async throws -> Data?

        /// Returns the next piece; `nil` at the end.
        /// - Throws: the error of the pieces that the value was made of.
        public mutating func next() async throws -> Data? { try await pull() }
    }
}
