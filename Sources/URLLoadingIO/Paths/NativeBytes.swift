// SPDX-License-Identifier: Apache-2.0

// Reads numbers in native byte order at offsets of a byte slice; `nil` beyond its end.

struct NativeBytes {
    let bytes: ArraySlice<UInt8>
    var count: Int { bytes.count }

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    func number<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _: Number.Type) -> Number? {
        guard offset >= 0, count - offset >= MemoryLayout<Number>.size else { return nil }
        return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
    }

    /// Returns the bytes between two offsets; `nil` if they are out of range or out of order.
    func part(_ from: Int, _ to: Int) -> NativeBytes? {
        guard from >= 0, from <= to, to <= count else { return nil }
        return NativeBytes(bytes[bytes.startIndex + from..<bytes.startIndex + to])
    }

    func dropping(_ count: Int) -> NativeBytes { NativeBytes(bytes.dropFirst(max(0, count))) }

    /// NLMSG_ALIGN and RTA_ALIGN of the kernel's headers.
    static func aligned(_ length: Int) -> Int { (length + 3) & ~3 }

    /// Calls `each` for the attributes (struct rtattr) after a header; returns false if the rest is malformed.
    func attributes(from offset: Int, _ each: (UInt16, NativeBytes) -> Void) -> Bool {
        guard offset <= count else { return false }
        var rest = dropping(offset)
        while rest.count > 0 {
            guard let length = rest.number(0, UInt16.self).map(Int.init), let type = rest.number(2, UInt16.self),
                length >= 4, let value = rest.part(4, length)
            else { return false }
            // Strip the flags NLA_F_NESTED and NLA_F_NET_BYTEORDER.
            each(type & 0x3FFF, value)
            rest = rest.dropping(Self.aligned(length))
        }
        return true
    }
}
