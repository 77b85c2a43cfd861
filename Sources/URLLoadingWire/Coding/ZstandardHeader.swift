// SPDX-License-Identifier: Apache-2.0

/// The header of a zstd frame, read byte by byte: the frame's kind and the memory it requires.
struct ZstandardHeader {
    enum Kind: Equatable {
        /// A data frame (RFC 8878 §3.1.1) with its window size in bytes.
        case data(window: UInt64)
        /// A skippable frame (RFC 8878 §3.1.2) with the number of bytes after its header.
        case skippable(Int)
    }

    /// RFC 9659 §3: the largest window that a content coding may use and a recipient must support.
    static let maximumWindowLog: CInt = 23
    static let maximumWindow: UInt64 = 1 << 23

    private static let longest = 18
    private static let dataMagic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
    private static let skippableMagic: [UInt8] = [0x50, 0x2A, 0x4D, 0x18]

    private(set) var bytes: [UInt8] = []

    init() { bytes.reserveCapacity(Self.longest) }

    mutating func reset() { bytes.removeAll(keepingCapacity: true) }

    /// Consumes the bytes that belong to the header and returns their number. Throws `contentDecodingFailed` at the
    /// first byte that cannot begin a frame.
    mutating func take(_ input: UnsafeRawBufferPointer) throws(WireViolation) -> Int {
        var consumed = 0
        while consumed < input.count, bytes.count < length {
            bytes.append(input[consumed])
            consumed += 1
            guard hasMagic else { throw .remote(.contentDecodingFailed, "RFC 8878 3.1") }
        }
        return consumed
    }

    /// The frame's kind; `nil` until the header is complete.
    var kind: Kind? {
        guard bytes.count >= 5, bytes.count == length else { return nil }
        return isSkippable ? .skippable(Int(number(4..<8))) : .data(window: window)
    }

    private var isSkippable: Bool { bytes.first.map { $0 & 0xF0 == 0x50 } ?? false }

    private var hasMagic: Bool {
        guard isSkippable else { return bytes.prefix(4).elementsEqual(Self.dataMagic.prefix(bytes.count)) }
        return bytes[1...].prefix(3).elementsEqual(Self.skippableMagic[1...].prefix(bytes.count - 1))
    }

    /// The header's length in bytes, as far as it is known yet.
    private var length: Int {
        if isSkippable { return 8 }
        guard bytes.count >= 5 else { return 5 }
        return sizeOffset + sizeLength
    }

    // MARK: Frame_Header_Descriptor (RFC 8878 §3.1.1.1.1)

    /// True if the content is its own window, without a Window_Descriptor.
    private var isSingleSegment: Bool { bytes[4] & 0x20 != 0 }
    private var dictionaryLength: Int { [0, 1, 2, 4][Int(bytes[4] & 3)] }
    private var sizeLength: Int { [isSingleSegment ? 1 : 0, 2, 4, 8][Int(bytes[4] >> 6)] }
    private var sizeOffset: Int { 5 + (isSingleSegment ? 0 : 1) + dictionaryLength }

    /// The window size (RFC 8878 §3.1.1.1.2 and §3.1.1.1.4).
    private var window: UInt64 {
        guard isSingleSegment else {
            let base: UInt64 = 1 << (10 + UInt64(bytes[5] >> 3))
            return base + base / 8 * UInt64(bytes[5] & 7)
        }
        return number(sizeOffset..<bytes.count) + (sizeLength == 2 ? 256 : 0)
    }

    private func number(_ range: Range<Int>) -> UInt64 {
        bytes[range].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
