// SPDX-License-Identifier: Apache-2.0

/// A message of PKCS#7 that carries certificates and is not signed (RFC 2315 §9.1).
package enum PKCS7 {
    package static func message(_ certificates: [[UInt8]]) -> [UInt8] {
        let signedData: [UInt8] = [0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 7, 2]
        let data: [UInt8] = [0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 7, 1]
        let content =
            [0x02, 1, 1] + value(0x31, []) + value(0x30, data) + value(0xA0, certificates.flatMap(\.self))
            + value(0x31, [])
        return value(0x30, signedData + value(0xA0, value(0x30, content)))
    }

    private static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let length: [UInt8] =
            count < 0x80 ? [UInt8(count)] : [0x82, UInt8(count >> 8), UInt8(truncatingIfNeeded: count)]
        return [tag] + length + content
    }
}
