// SPDX-License-Identifier: Apache-2.0

// In this folder: networks that a test invents

// Messages of rtnetlink(7) as the kernel writes them: in native byte order, padded to four bytes.

package enum RouteBytes {
    package static func message(
        _ type: UInt16, flags: UInt16 = 2, sequence: UInt32 = 0, port: UInt32 = 0, _ body: [UInt8]
    ) -> [UInt8] {
        padded(number(UInt32(16 + body.count)) + number(type) + number(flags) + number(sequence) + number(port) + body)
    }

    /// Returns a message with the sequence number and port of a request, which turns it into an answer.
    package static func answering(_ message: [UInt8], _ sequence: UInt32, _ port: UInt32) -> [UInt8] {
        Array(message[..<8]) + number(sequence) + number(port) + message[16...]
    }

    package static func link(
        _ index: Int32, _ name: String, flags: UInt32 = 0x41, hardware: UInt16 = 1, family: UInt8 = 0,
        isGone: Bool = false
    ) -> [UInt8] {
        let head = [family, 0] + number(hardware) + number(index) + number(flags) + number(UInt32(0))
        return message(
            isGone ? 17 : 16, head + attribute(3, Array(name.utf8) + [0]) + attribute(4, number(UInt32(1500))))
    }

    package static func address(
        _ index: Int32, _ octets: [UInt8], scope: UInt8 = 0, flags: UInt32 = 0x80, isGone: Bool = false
    ) -> [UInt8] {
        let head = [octets.count == 16 ? 10 : 2, 24, UInt8(truncatingIfNeeded: flags), scope] + number(index)
        return message(isGone ? 21 : 20, head + attribute(1, octets) + attribute(8, number(flags)))
    }

    /// What distinguishes a route from the default route of the main table.
    package enum Difference: Sendable {
        case table(UInt32)
        case type(UInt8)
        /// The length of the destination's prefix in bits.
        case length(UInt8)
    }

    package static func defaultRoute(
        isIPv6: Bool = false, through indices: [Int32], metric: UInt32 = 0, but difference: Difference? = nil,
        isGone: Bool = false
    ) -> [UInt8] {
        var (table, type, length) = (UInt32(254), UInt8(1), UInt8(0))
        switch difference {
        case .table(let other)?: table = other
        case .type(let other)?: type = other
        case .length(let other)?: length = other
        case nil: break
        }
        let head = [isIPv6 ? 10 : 2, length, 0, 0, UInt8(truncatingIfNeeded: table), 3, 0, type] + number(UInt32(0))
        let nextHops =
            indices.count == 1
            ? attribute(4, number(indices[0]))
            : attribute(9, indices.flatMap { number(UInt16(8)) + [0, 0] + number($0) })
        return message(isGone ? 25 : 24, head + attribute(15, number(table)) + attribute(6, number(metric)) + nextHops)
    }

    package static let done = message(3, number(Int32(0)))
    package static func failure(_ number: Int32) -> [UInt8] { message(2, Self.number(0 &- number)) }

    package static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        padded(number(UInt16(4 + value.count)) + number(type) + value)
    }

    package static func number(_ value: some FixedWidthInteger & BitwiseCopyable) -> [UInt8] {
        withUnsafeBytes(of: value) { Array($0) }
    }

    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: -bytes.count & 3)
    }
}
