// SPDX-License-Identifier: Apache-2.0

/// The tagged fields of one frame, or of a record inside a field.
///
/// A field is a tag (u16), a length (u32) and that many bytes; numbers are big-endian. The order of fields with
/// different tags has no meaning. A reader skips unknown tags, so that a newer peer can add fields. The first of
/// several fields with one tag counts, unless the reader asks for all.
package struct AgentFields: Sendable, Equatable {
    private struct Field: Sendable, Equatable {
        let tag: UInt16
        let bytes: [UInt8]
    }
    private var fields: [Field] = []

    package init() {}

    /// The number of bytes that ``append(to:)`` adds.
    package var size: Int { fields.reduce(0) { $0 + 6 + $1.bytes.count } }

    package mutating func set(_ tag: UInt16, bytes: [UInt8]) { fields.append(Field(tag: tag, bytes: bytes)) }
    package mutating func set(_ tag: UInt16, text: String) { set(tag, bytes: Array(text.utf8)) }
    package mutating func set(_ tag: UInt16, integer: Int64) {
        let bits = UInt64(bitPattern: integer)
        set(tag, bytes: (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * $0)) })
    }

    /// Returns the bytes of the first field with this tag; `nil` without one.
    package func bytes(_ tag: UInt16) -> [UInt8]? { fields.first { $0.tag == tag }?.bytes }
    /// Returns the bytes of all fields with this tag, in order.
    package func all(_ tag: UInt16) -> [[UInt8]] { fields.compactMap { $0.tag == tag ? $0.bytes : nil } }

    /// Returns the text of a field; `nil` without one.
    /// - Throws: ``WireViolation/Code/malformedAgentMessage`` if the bytes are not UTF-8.
    package func text(_ tag: UInt16) throws(WireViolation) -> String? {
        guard let bytes = bytes(tag) else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .remote(.malformedAgentMessage, "") }
        return text
    }

    /// Returns the number in a field; `nil` without one.
    /// - Throws: ``WireViolation/Code/malformedAgentMessage`` if the field does not have eight bytes.
    package func integer(_ tag: UInt16) throws(WireViolation) -> Int64? {
        guard let bytes = bytes(tag) else { return nil }
        guard bytes.count == 8 else { throw .remote(.malformedAgentMessage, "") }
        return Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }

    // MARK: Bytes

    /// Appends all fields in wire format.
    package func append(to output: inout [UInt8]) {
        output.reserveCapacity(output.count + size)
        for field in fields {
            output.append(bigEndian: field.tag)
            output.append(bigEndian: UInt32(truncatingIfNeeded: field.bytes.count))
            output += field.bytes
        }
    }

    /// Reads fields that fill all of `bytes`.
    /// - Throws: ``WireViolation/Code/malformedAgentFrame`` if a field is longer than the remaining bytes.
    package init(_ bytes: ArraySlice<UInt8>) throws(WireViolation) {
        var rest = bytes
        while !rest.isEmpty {
            guard rest.count >= 6 else { throw .remote(.malformedAgentFrame, "") }
            let tag = UInt16(truncatingIfNeeded: rest.bigEndian(2))
            let length = Int(rest.dropFirst(2).bigEndian(4))
            rest = rest.dropFirst(6)
            guard length <= rest.count else { throw .remote(.malformedAgentFrame, "") }
            fields.append(Field(tag: tag, bytes: Array(rest.prefix(length))))
            rest = rest.dropFirst(length)
        }
    }
}

extension [UInt8] {
    mutating func append<Number: FixedWidthInteger & UnsignedInteger>(bigEndian number: Number) {
        var shift = Number.bitWidth
        while shift > 0 {
            shift -= 8
            append(UInt8(truncatingIfNeeded: number >> Number(shift)))
        }
    }
}

extension ArraySlice<UInt8> {
    /// Returns the first `count` bytes as a big-endian number. The collection must have that many.
    func bigEndian(_ count: Int) -> UInt64 { prefix(count).reduce(0) { $0 << 8 | UInt64($1) } }
}
