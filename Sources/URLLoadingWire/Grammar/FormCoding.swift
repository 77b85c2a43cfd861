// SPDX-License-Identifier: Apache-2.0

/// The serializer of application/x-www-form-urlencoded, and the parser of one of its names or values (WHATWG URL 5.2).
package enum FormCoding {
    package static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: " "): bytes.append(UInt8(ascii: "+"))
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "*"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"):
                bytes.append(byte)
            default: PercentCoding.append(byte, to: &bytes)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Decodes one name or value (§5.1). If one "%" is not followed by two digits, all percent escapes stay as they
    /// are.
    package static func decoded(_ text: some StringProtocol) -> String {
        let spaced = text.utf8.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        return String(decoding: PercentCoding.decode(spaced) ?? spaced, as: UTF8.self)
    }
}
