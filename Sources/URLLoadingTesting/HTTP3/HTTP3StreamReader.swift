// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingWire

/// Reads the frames of one stream of a client, however its bytes are split.
struct HTTP3StreamReader {
    enum Item {
        /// The type of a stream in one direction (RFC 9114 §6.2).
        case type(UInt64)
        /// A whole frame; of DATA, a piece of it, with the length of the whole.
        case frame(HTTP3Frame)
        /// A frame that is too large to be kept.
        case tooLarge(HTTP3Frame.Kind)
    }

    /// `nil` before the type of a stream in one direction is known.
    private(set) var hasFrames: Bool?
    /// The beginning of a stream's type, or of a frame's type and length.
    private var partial: [UInt8] = []
    private var frame: HTTP3Frame?
    private var rest: UInt64 = 0
    /// The most bytes of a frame other than DATA.
    private static let mostPayload: UInt64 = 256 * 1024

    init(isRequest: Bool) { hasFrames = isRequest ? true : nil }

    /// Whether the stream may end here.
    var isBetweenFrames: Bool { partial.isEmpty && frame == nil }

    mutating func read(_ bytes: [UInt8]) -> [Item] {
        var (items, index) = ([Item](), 0)
        while index < bytes.count {
            if hasFrames == false { return items }
            if frame != nil {
                let count = Int(min(rest, UInt64(bytes.count - index)))
                take(Array(bytes[index..<index + count]), &items)
                index += count
                continue
            }
            partial.append(bytes[index])
            index += 1
            guard let (first, used) = QUICInteger.read(partial[...]) else { continue }
            if hasFrames == nil {
                // Of control streams only: the others carry instructions, or what is unknown.
                (hasFrames, partial) = (first == 0, [])
                items.append(.type(first))
            } else if let (length, _) = QUICInteger.read(partial.dropFirst(used)) {
                partial = []
                begin(HTTP3Frame(.init(rawValue: first)), length, &items)
            }
        }
        return items
    }

    private mutating func begin(_ new: HTTP3Frame, _ length: UInt64, _ items: inout [Item]) {
        guard new.kind == .data || length <= Self.mostPayload else {
            hasFrames = false
            return items.append(.tooLarge(new.kind))
        }
        guard length > 0 else { return items.append(.frame(new)) }
        (frame, rest) = (new, length)
        if new.kind == .data { frame?.declaredLength = length }
    }

    private mutating func take(_ bytes: [UInt8], _ items: inout [Item]) {
        guard var current = frame else { return }
        rest -= UInt64(bytes.count)
        current.payload += bytes
        frame = rest == 0 ? nil : current
        guard current.kind == .data || rest == 0 else { return }
        items.append(.frame(current))
        if current.kind == .data { frame?.payload = [] }
    }
}

#endif
