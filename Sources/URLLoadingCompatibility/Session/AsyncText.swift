// SPDX-License-Identifier: Apache-2.0

// Text from asynchronous bytes: characters, scalars and lines, as Apple's sequences of these names. Everything is
// inlinable, because a call per byte into another module costs more than the work itself.

extension AsyncSequence where Element == UInt8 {
    /// The bytes as UTF-8, line by line. Lines end with LF, CR, CR LF, VT, FF, NEL (U+0085), U+2028 or U+2029, which
    /// are removed; empty lines are skipped. Invalid UTF-8 becomes U+FFFD.
    public var lines: AsyncLineSequence<Self> { AsyncLineSequence(self) }

    /// The bytes as UTF-8, character by character.
    public var characters: AsyncCharacterSequence<Self> { AsyncCharacterSequence(self) }

    /// The bytes as UTF-8, scalar by scalar. Invalid UTF-8 becomes U+FFFD.
    public var unicodeScalars: AsyncUnicodeScalarSequence<Self> { AsyncUnicodeScalarSequence(self) }
}

/// Lines of text; the value of `lines`.
public struct AsyncLineSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = String
    public typealias Failure = Base.Failure

    @usableFromInline let base: Base
    @usableFromInline init(_ base: Base) { self.base = base }

    @inlinable public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base.makeAsyncIterator()) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline var base: Base.AsyncIterator
        @usableFromInline var line: [UInt8] = []
        /// Whether the last byte was a CR: a LF that follows ends no further line.
        @usableFromInline var isBehindReturn = false
        @usableFromInline init(_ base: Base.AsyncIterator) { self.base = base }

        /// Returns the next non-empty line; `nil` at the end.
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure)
            -> String?
        {
            while let byte = try await base.next(isolation: actor) {
                let isBehindReturn = isBehindReturn
                self.isBehindReturn = byte == 0x0D
                if byte == 0x0A, isBehindReturn { continue }
                line.append(byte)
                let ending = endingLength
                if ending > 0, let text = take(dropping: ending) { return text }
            }
            return take(dropping: 0)
        }

        /// Returns the length of the line terminator at the end of the buffered bytes, or 0.
        @inlinable var endingLength: Int {
            let count = line.count
            switch line[count - 1] {
            case 0x0A...0x0D: return 1
            case 0x85: return count > 1 && line[count - 2] == 0xC2 ? 2 : 0
            case 0xA8, 0xA9: return count > 2 && line[count - 2] == 0x80 && line[count - 3] == 0xE2 ? 3 : 0
            default: return 0
            }
        }

        @inlinable mutating func take(dropping count: Int) -> String? {
            line.removeLast(count)
            guard !line.isEmpty else { return nil }
            defer { line.removeAll(keepingCapacity: true) }
            return String(decoding: line, as: UTF8.self)
        }
    }
}

/// Scalars of text; the value of `unicodeScalars`.
public struct AsyncUnicodeScalarSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = UnicodeScalar
    public typealias Failure = Base.Failure

    @usableFromInline let base: Base
    @usableFromInline init(_ base: Base) { self.base = base }

    @inlinable public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base.makeAsyncIterator()) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline var base: Base.AsyncIterator
        /// A byte that was read but belongs to the next scalar.
        @usableFromInline var leftOver: UInt8?
        @usableFromInline init(_ base: Base.AsyncIterator) { self.base = base }

        /// Returns the next scalar; `nil` at the end.
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure)
            -> UnicodeScalar?
        {
            let first: UInt8
            if let byte = leftOver {
                (first, leftOver) = (byte, nil)
            } else {
                guard let byte = try await base.next(isolation: actor) else { return nil }
                first = byte
            }
            // Unicode, table 3-7: the number of continuation bytes, and the bounds of the second byte.
            var value: UInt32
            var missing: Int
            var bounds: ClosedRange<UInt8> = 0x80...0xBF
            switch first {
            case ..<0x80: return UnicodeScalar(first)
            case 0xC2...0xDF: (value, missing) = (UInt32(first & 0x1F), 1)
            case 0xE0...0xEF:
                (value, missing) = (UInt32(first & 0x0F), 2)
                if first == 0xE0 { bounds = 0xA0...0xBF } else if first == 0xED { bounds = 0x80...0x9F }
            case 0xF0...0xF4:
                (value, missing) = (UInt32(first & 0x07), 3)
                if first == 0xF0 { bounds = 0x90...0xBF } else if first == 0xF4 { bounds = 0x80...0x8F }
            default: return "\u{FFFD}"
            }
            while missing > 0 {
                guard let byte = try await base.next(isolation: actor) else { return "\u{FFFD}" }
                guard bounds.contains(byte) else {
                    leftOver = byte
                    return "\u{FFFD}"
                }
                value = value << 6 | UInt32(byte & 0x3F)
                missing -= 1
                bounds = 0x80...0xBF
            }
            return UnicodeScalar(value) ?? "\u{FFFD}"
        }
    }
}

/// Characters of text; the value of `characters`.
public struct AsyncCharacterSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = Character
    public typealias Failure = Base.Failure

    @usableFromInline let base: Base
    @usableFromInline init(_ base: Base) { self.base = base }

    @inlinable public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(AsyncUnicodeScalarSequence(base).makeAsyncIterator())
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline var scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator
        /// The current character, which the next scalar may extend.
        @usableFromInline var text = ""
        @usableFromInline init(_ scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator) { self.scalars = scalars }

        /// Returns the next character, as soon as its end is known; `nil` at the end.
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure)
            -> Character?
        {
            while let scalar = try await scalars.next(isolation: actor) {
                text.unicodeScalars.append(scalar)
                let second = text.index(after: text.startIndex)
                if second != text.endIndex {
                    defer { text.removeSubrange(..<second) }
                    return text.first
                }
            }
            defer { text = "" }
            return text.first
        }
    }
}

extension AsyncLineSequence: Sendable where Base: Sendable {}
extension AsyncUnicodeScalarSequence: Sendable where Base: Sendable {}
extension AsyncCharacterSequence: Sendable where Base: Sendable {}
