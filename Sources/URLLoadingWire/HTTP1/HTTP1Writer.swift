// SPDX-License-Identifier: Apache-2.0

/// Serialises checked values into a buffer that the caller keeps and reuses.
enum HTTP1Writer {
    static func requestLine(
        _ method: Method, _ target: [UInt8], _ host: [UInt8], isOld: Bool, _ buffer: inout [UInt8]
    ) {
        buffer += method.rawValue.utf8
        buffer.append(0x20)
        buffer += target
        // Host is the first field: RFC 9110 §7.2 recommends it, and some servers need it early to choose their limits.
        if isOld { append(" HTTP/1.0\r\nHost: ", &buffer) } else { append(" HTTP/1.1\r\nHost: ", &buffer) }
        buffer += host
        append("\r\n", &buffer)
    }

    static func statusLine(_ status: Status, _ buffer: inout [UInt8]) {
        append("HTTP/1.1 ", &buffer)
        decimal(Int64(status.code), &buffer)
        buffer.append(0x20)
        buffer += status.reasonPhrase.utf8
        append("\r\n", &buffer)
    }

    /// Writes all fields except Host and the framing fields, which are written separately.
    static func fields(_ headers: Headers, _ buffer: inout [UInt8]) {
        headers.forEachRaw { name, value in
            if !isWrittenByCodec(name) { field(name, value, &buffer) }
        }
    }

    static func framing(_ framing: HTTP1BodyFraming, _ buffer: inout [UInt8]) {
        switch framing {
        case .none, .untilClose: break
        case .chunked: append("Transfer-Encoding: chunked\r\n", &buffer)
        case .length(let length):
            append("Content-Length: ", &buffer)
            decimal(length, &buffer)
            append("\r\n", &buffer)
        }
    }

    static func connectionClose(_ buffer: inout [UInt8]) { append("Connection: close\r\n", &buffer) }
    static func connectionTE(_ buffer: inout [UInt8]) { append("Connection: TE\r\n", &buffer) }

    static func endOfSection(_ buffer: inout [UInt8]) { append("\r\n", &buffer) }

    static func chunkHeader(_ size: Int, _ buffer: inout [UInt8]) {
        var shift = max(0, (Int.bitWidth - size.leadingZeroBitCount - 1) / 4 * 4)
        while shift >= 0 {
            buffer.append(.upperHex(UInt8(truncatingIfNeeded: size >> shift) & 15))
            shift -= 4
        }
        append("\r\n", &buffer)
    }

    static func lastChunk(_ trailers: Headers, _ buffer: inout [UInt8]) {
        append("0\r\n", &buffer)
        trailers.forEachRaw { field($0, $1, &buffer) }
        append("\r\n", &buffer)
    }

    private static func field(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ buffer: inout [UInt8]
    ) {
        buffer.append(contentsOf: name)
        append(": ", &buffer)
        buffer.append(contentsOf: value)
        append("\r\n", &buffer)
    }

    private static func isWrittenByCodec(_ name: UnsafeRawBufferPointer) -> Bool {
        switch name.count {
        case 4: name.matches("host", in: 0..<4)
        case 14: name.matches("content-length", in: 0..<14)
        case 17: name.matches("transfer-encoding", in: 0..<17)
        default: false
        }
    }

    @inline(__always)
    private static func append(_ text: StaticString, _ buffer: inout [UInt8]) {
        buffer.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private static func decimal(_ number: Int64, _ buffer: inout [UInt8]) {
        var divisor: Int64 = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            buffer.append(0x30 + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }
}
