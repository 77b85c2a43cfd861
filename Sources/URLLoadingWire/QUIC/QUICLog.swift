// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// The log of a connection that ngtcp2 writes: records of qlog, as JSON behind a byte 0x1E (RFC 7464).
struct QUICLog {
    private var records: [[UInt8]] = []

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty { records.append(Self.withoutTokens(bytes)) }
    }

    mutating func takeRecords() -> [[UInt8]] {
        defer { records = [] }
        return records
    }

    private static let token = Array("token\":{".utf8)

    /// Returns a record without its tokens: one of a server lets others seem to be this client (RFC 9000 §8.1), and one
    /// for a reset ends the connection (RFC 9000 §10.3).
    static func withoutTokens(_ record: UnsafeRawBufferPointer) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(record.count)
        var isInToken = false
        for byte in record {
            if isInToken, byte != UInt8(ascii: "}") { continue }
            isInToken = false
            result.append(byte)
            if byte == UInt8(ascii: "{") { isInToken = result.suffix(token.count).elementsEqual(token) }
        }
        return result
    }
}

#endif
