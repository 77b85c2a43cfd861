import URLLoadingCZlib

/// permessage-deflate (RFC 7692): what the two sides agreed upon.
package struct MessageDeflate: Sendable, Hashable, CustomStringConvertible {
    /// Bits of the window, 8 to 15, that each side's compressor may use.
    package var serverWindowBits = 15
    package var clientWindowBits = 15
    /// Each message is compressed by itself.
    package var serverForgets = false
    package var clientForgets = false

    package init() {}

    /// What a client offers.
    /// - Parameter forgets: neither side keeps its window between messages: worse compression, less memory.
    package static func offer(forgets: Bool) -> String {
        "permessage-deflate; client_max_window_bits"
            + (forgets ? "; server_no_context_takeover; client_no_context_takeover" : "")
    }

    /// A server's answer to that offer, as the value of Sec-WebSocket-Extensions (§7.1); `nil` if it holds something that
    /// was not offered or is out of grammar.
    package static func accepted(_ value: String, forgets: Bool) -> MessageDeflate? {
        var scanner = ParameterScanner(value)
        scanner.skipBlanks()
        guard scanner.token()?.lowercasedASCII == "permessage-deflate" else { return nil }
        var agreed = MessageDeflate()
        // What a client promised by itself it may do in any case.
        agreed.clientForgets = forgets
        var seen: Set<String> = []
        while true {
            scanner.skipBlanks()
            if scanner.isAtEnd { break }
            guard scanner.take(";") else { return nil }
            scanner.skipBlanks()
            guard let name = scanner.token(), seen.insert(name).inserted else { return nil }
            scanner.skipBlanks()
            var text: String?
            if scanner.take("=") {
                scanner.skipBlanks()
                guard let value = scanner.tokenOrQuoted() else { return nil }
                text = value
            }
            guard agreed.take(name, text) else { return nil }
        }
        // An offer that asks the server to forget is declined if it does not say that it will (§7.1.1.1).
        return forgets && !agreed.serverForgets ? nil : agreed
    }

    private mutating func take(_ name: String, _ text: String?) -> Bool {
        switch (name, text) {
        case ("server_no_context_takeover", nil): serverForgets = true
        case ("client_no_context_takeover", nil): clientForgets = true
        case ("server_max_window_bits", let text?):
            guard let bits = Self.bits(text) else { return false }
            serverWindowBits = bits
        case ("client_max_window_bits", let text?):
            guard let bits = Self.bits(text) else { return false }
            clientWindowBits = bits
        default: return false
        }
        return true
    }

    private static func bits(_ text: String) -> Int? {
        guard text.utf8.first != UInt8(ascii: "0"), let bits = Int(text), 8...15 ~= bits,
            text.utf8.allSatisfy(\.isDigit)
        else { return nil }
        return bits
    }

    package var description: String {
        "permessage-deflate server \(serverWindowBits)\(serverForgets ? "!" : "") client \(clientWindowBits)\(clientForgets ? "!" : "")"
    }
}

/// What every block of deflate that was flushed ends with, and no message of RFC 7692 does (§7.2.1).
private let flushMark: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

/// Compresses messages (§7.2.1). Takes about 260 KB with a window of 15 bits: made when there is something to compress.
package final class MessageDeflater: @unchecked Sendable {
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private let forgets: Bool

    /// `nil` if zlib cannot: it has no raw window of 8 bits. Then messages go as they are.
    package init?(windowBits: Int, forgets: Bool, level: Int32 = 6) {
        stream.initialize(to: z_stream())
        self.forgets = forgets
        guard 9...15 ~= windowBits,
            deflateInit2_(
                stream, level, Z_DEFLATED, -CInt(windowBits), 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                CInt(MemoryLayout<z_stream>.size)) == Z_OK
        else { return nil }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// One message, whole, as it goes into frames.
    package func deflate(_ message: UnsafeRawBufferPointer) throws(WireViolation) -> [UInt8] {
        var output: [UInt8] = []
        var offset = 0
        var nothing: UInt8 = 0
        repeat {
            // zlib counts in 32 bits.
            let piece = UnsafeRawBufferPointer(rebasing: message[offset..<min(message.count, offset + 1 << 30)])
            offset += piece.count
            try withUnsafeMutablePointer(to: &nothing) { (nothing) throws(WireViolation) in
                stream.pointee.next_in = UnsafeMutablePointer(
                    mutating: piece.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? UnsafePointer(nothing))
                stream.pointee.avail_in = CUnsignedInt(piece.count)
                try run(offset == message.count ? Z_SYNC_FLUSH : Z_NO_FLUSH, &output)
            }
        } while offset < message.count
        if output.suffix(4).elementsEqual(flushMark) { output.removeLast(4) }
        // §7.2.3.6: an empty message is one empty block.
        if output.isEmpty { output = [0x00] }
        if forgets { deflateReset(stream) }
        return output
    }

    private func run(_ flush: CInt, _ output: inout [UInt8]) throws(WireViolation) {
        let room = min(max(256, Int(stream.pointee.avail_in) / 2), 16 * 1024)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 8)
        defer { buffer.deallocate() }
        while true {
            stream.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = CUnsignedInt(room)
            let result = URLLoadingCZlib.deflate(stream, flush)
            output.append(
                contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<(room - Int(stream.pointee.avail_out))]))
            guard result == Z_OK || result == Z_BUF_ERROR else { throw .local(.illegalState, "RFC 7692 7.2.1") }
            if stream.pointee.avail_out > 0, stream.pointee.avail_in == 0 { return }
        }
    }
}

/// Undoes the compression of messages, piece by piece (§7.2.2). Takes about 40 KB once it was used.
package final class MessageInflater: @unchecked Sendable {
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private let forgets: Bool
    private static let room = 16 * 1024
    /// Nothing was inflated since the last message, or since the last block of a deflate stream.
    private var isBetweenStreams = true

    package init?(windowBits: Int, forgets: Bool) {
        stream.initialize(to: z_stream())
        self.forgets = forgets
        guard 8...15 ~= windowBits,
            inflateInit2_(stream, -CInt(windowBits), ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size)) == Z_OK
        else { return nil }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Gives `sink` what a piece of the payload expands to.
    package func inflate(
        _ piece: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws(WireViolation) -> Void
    ) throws(WireViolation) {
        guard let start = piece.baseAddress, !piece.isEmpty else { return }
        stream.pointee.next_in = UnsafeMutablePointer(mutating: start.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = CUnsignedInt(clamping: piece.count)
        isBetweenStreams = false
        try run(sink)
        // zlib counts in 32 bits.
        if piece.count > Int(CUnsignedInt.max) {
            try inflate(UnsafeRawBufferPointer(rebasing: piece[Int(CUnsignedInt.max)...]), sink)
        }
    }

    /// Ends a message: puts back the empty block that its sender left out (§7.2.2). A message of no bytes, and one
    /// that ends with the last block of a deflate stream, is whole without that block: some senders produce them.
    /// - Throws: `contentDecodingFailed` for a message that ends within a block.
    package func end(_ sink: (UnsafeRawBufferPointer) throws(WireViolation) -> Void) throws(WireViolation) {
        if !isBetweenStreams {
            try flushMark.withUnsafeBufferPointer { (bytes) throws(WireViolation) in
                try inflate(UnsafeRawBufferPointer(bytes), sink)
            }
            guard isAtBlock else { throw .remote(.contentDecodingFailed, "RFC 7692 7.2.2") }
            isBetweenStreams = true
        }
        if forgets { inflateReset(stream) }
    }

    /// The last block has ended, and with a whole byte. In `data_type` zlib reports the end of a block as 128, and the
    /// count of unused bits below 64.
    private var isAtBlock: Bool { stream.pointee.data_type & 0xBF == 128 }

    private func run(_ sink: (UnsafeRawBufferPointer) throws(WireViolation) -> Void) throws(WireViolation) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.room, alignment: 8)
        defer { buffer.deallocate() }
        while true {
            stream.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = CUnsignedInt(buffer.count)
            let result = URLLoadingCZlib.inflate(stream, Z_SYNC_FLUSH)
            let produced = buffer.count - Int(stream.pointee.avail_out)
            if produced > 0 { try sink(UnsafeRawBufferPointer(rebasing: buffer[..<produced])) }
            switch result {
            case Z_OK: break
            case Z_BUF_ERROR: return
            // A block marked as the last ends a stream of deflate, not the message (§7.2.3.4).
            case Z_STREAM_END:
                inflateReset(stream)
                isBetweenStreams = stream.pointee.avail_in == 0
            default: throw .remote(.contentDecodingFailed, "RFC 7692 7.2.2")
            }
            if stream.pointee.avail_in == 0, stream.pointee.avail_out > 0 { return }
        }
    }
}
