// SPDX-License-Identifier: Apache-2.0

// Searches eight bytes at a time. The bit operations are exact for the lowest flagged byte, the only one that is used.

private let ones: UInt64 = 0x0101_0101_0101_0101
private let tops: UInt64 = 0x8080_8080_8080_8080

extension UnsafeRawBufferPointer {
    @inline(__always)
    private func word(at index: Int) -> UInt64 {
        UInt64(littleEndian: loadUnaligned(fromByteOffset: index, as: UInt64.self))
    }

    /// Returns the index of the first LF in `start..<end`, or `end`.
    @inline(__always)
    func firstLineFeed(from start: Int, to end: Int) -> Int {
        var index = start
        while index &+ 8 <= end {
            let word = word(at: index) ^ 0x0A0A_0A0A_0A0A_0A0A
            let hit = (word &- ones) & ~word & tops
            if hit != 0 { return index &+ hit.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        while index < end, self[index] != .lf { index &+= 1 }
        return index
    }

    /// Returns the index of the first control character other than HTAB in `start..<end`, or `end`.
    @inline(__always)
    func firstControl(from start: Int, to end: Int) -> Int {
        var index = start
        while index < end {
            if index &+ 8 <= end {
                let word = word(at: index)
                let rubout = word ^ 0x7F7F_7F7F_7F7F_7F7F
                let below = (word &- (ones &* 0x20)) & ~word
                let hit = (below | ((rubout &- ones) & ~rubout)) & tops
                if hit == 0 {
                    index &+= 8
                    continue
                }
                index &+= hit.trailingZeroBitCount &>> 3
            }
            if self[index].isForbiddenInValue { return index }
            index &+= 1
        }
        return end
    }

    /// Returns the index of the first byte in `start..<end` that is neither an ASCII letter nor "-": most field names
    /// have no other bytes. Stops before the last bytes if they are fewer than eight.
    @inline(__always)
    func firstOtherThanLetterOrDash(from start: Int, to end: Int) -> Int {
        var index = start
        while index &+ 8 <= end {
            let word = word(at: index)
            // Without the top bits no sum reaches the next byte.
            let lowered = (word | ones &* 0x20) & ~tops
            let isLetter = (lowered &+ ones &* 0x1F) & ~(lowered &+ ones &* 0x05) & ~word
            let dash = word ^ ones &* UInt64(UInt8(ascii: "-"))
            let isDash = ~(((dash & ~tops) &+ ~tops) | dash)
            let other = ~(isLetter | isDash) & tops
            if other != 0 { return index &+ other.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        return index
    }

    /// Returns whether the bytes in `range` equal `text`, ignoring ASCII case. `text` has letters in lower case,
    /// digits, "-" and ":" only.
    @inline(__always)
    func matches(_ text: StaticString, in range: Range<Int>) -> Bool {
        let count = text.utf8CodeUnitCount
        guard range.count == count else { return false }
        let wanted = UnsafeRawBufferPointer(start: text.utf8Start, count: count)
        guard count >= 8 else {
            for index in 0..<count where self[range.lowerBound &+ index].lowered != wanted[index] { return false }
            return true
        }
        var index = 0
        while index < count {
            // The last word overlaps the one before it.
            let place = Swift.min(index, count &- 8)
            let word = wanted.word(at: place)
            // Case is bit 5 of a letter; the other bytes that `text` has are below 0x40.
            let difference = word ^ self.word(at: range.lowerBound &+ place)
            guard difference & ~((word &>> 1) & (ones &* 0x20)) == 0 else { return false }
            index &+= 8
        }
        return true
    }

    /// Returns whether the bytes in `range`, as many as `text` has, equal those of `text`, ignoring ASCII case. Both
    /// mostly have the same case, so eight bytes are compared at a time.
    @inline(__always)
    func matches(_ text: UnsafeRawBufferPointer, in range: Range<Int>) -> Bool {
        var (index, place) = (0, range.lowerBound)
        while index < text.count {
            if index &+ 8 <= text.count, text.word(at: index) == word(at: place) {
                (index, place) = (index &+ 8, place &+ 8)
                continue
            }
            if self[place].lowered != text[index].lowered { return false }
            (index, place) = (index &+ 1, place &+ 1)
        }
        return true
    }

    /// Returns whether the bytes are those of `text`.
    package func equals(_ text: StaticString) -> Bool {
        count == text.utf8CodeUnitCount && (0..<count).allSatisfy { self[$0] == text.utf8Start[$0] }
    }

    /// Returns `range` without blanks at both ends.
    @inline(__always)
    func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, self[start].isBlank { start &+= 1 }
        while end > start, self[end &- 1].isBlank { end &-= 1 }
        return start..<end
    }

    /// Returns the bytes of `range` as text: UTF-8 if valid, Latin-1 otherwise.
    func text(_ range: Range<Int>) -> String {
        let bytes = UnsafeRawBufferPointer(rebasing: self[range])
        if let valid = String(validating: bytes, as: UTF8.self) { return valid }
        var text = ""
        for byte in bytes { text.unicodeScalars.append(Unicode.Scalar(byte)) }
        return text
    }
}

/// Calls `body` with every non-empty element of a comma-separated list (RFC 9110 §5.6.1), trimmed. For lists of tokens:
/// quoted strings are not recognised.
func forEachListElement(of value: UnsafeRawBufferPointer, _ body: (Range<Int>) -> Void) {
    var start = 0
    for index in 0..<value.count + 1 where index == value.count || value[index] == UInt8(ascii: ",") {
        let element = value.trimmed(start..<index)
        if !element.isEmpty { body(element) }
        start = index + 1
    }
}
