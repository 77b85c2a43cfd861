// SPDX-License-Identifier: Apache-2.0

/// A set of ASCII characters as two words: a test is a shift, without a table in memory.
struct ByteSet: Sendable {
    let low: UInt64
    let high: UInt64

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        let word = byte < 64 ? low : high
        return byte < 128 && (word &>> UInt64(byte & 63)) & 1 != 0
    }

    // Computed, so that the words become constants in the code; tests compare them with the characters.

    /// RFC 9110 §5.6.2.
    static var token: ByteSet { ByteSet(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE) }
    /// RFC 3986 §2.3.
    static var unreserved: ByteSet { ByteSet(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }
    /// RFC 3986 §3.3: pchar and "/", with "%".
    static var path: ByteSet { ByteSet(low: 0x2FFF_FFF2_0000_0000, high: 0x47FF_FFFE_87FF_FFFF) }
    /// RFC 3986 §3.4, with "%"; the fragment has the same characters (3.5).
    static var query: ByteSet { ByteSet(low: 0xAFFF_FFF2_0000_0000, high: 0x47FF_FFFE_87FF_FFFF) }
    /// RFC 3986 §3.2.1, with "%".
    static var userinfo: ByteSet { ByteSet(low: 0x2FFF_7FF2_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }
    /// RFC 3986 §3.2.2, with "%".
    static var registeredName: ByteSet { ByteSet(low: 0x2BFF_7FF2_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }
    /// RFC 3986 §3.1.
    static var scheme: ByteSet { ByteSet(low: 0x03FF_6800_0000_0000, high: 0x07FF_FFFE_07FF_FFFE) }
    /// The characters of a Host value (RFC 9110 §7.2), without the comma that would join two values.
    static var hostField: ByteSet { ByteSet(low: 0x2FFF_6FF2_0000_0000, high: 0x47FF_FFFE_AFFF_FFFE) }
    /// a-z, 0-9, "-", "_" and "." of a host name in normal form.
    static var hostName: ByteSet { ByteSet(low: 0x03FF_6000_0000_0000, high: 0x07FF_FFFE_8000_0000) }
    /// Characters that are illegal but harmless in a path or query: space | " < > ^ ` { } [ ].
    static var repairable: ByteSet { ByteSet(low: 0x5000_0005_0000_0000, high: 0x3800_0001_6800_0000) }
    /// VCHAR, the characters of any request target.
    static var visible: ByteSet { ByteSet(low: 0xFFFF_FFFE_0000_0000, high: 0x7FFF_FFFF_FFFF_FFFF) }
}

extension UInt8 {
    @inline(__always) var isDigit: Bool { self &- 0x30 < 10 }
    @inline(__always) var isAlpha: Bool { (self | 0x20) &- 0x61 < 26 }
    /// Maps A-Z to a-z and leaves everything else unchanged: independent of locale and Unicode.
    @inline(__always) var lowered: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
    /// SP or HTAB (RFC 9110 §5.6.3).
    @inline(__always) var isBlank: Bool { self == 0x20 || self == 0x09 }
    /// A control character other than HTAB, forbidden in field values (RFC 9110 §5.5).
    @inline(__always) var isForbiddenInValue: Bool { (self < 0x20 && self != 0x09) || self == 0x7F }

    @inline(__always) var hexValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : nil
    }

    static var cr: UInt8 { 0x0D }
    static var lf: UInt8 { 0x0A }

    static func upperHex(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }
}
