// SPDX-License-Identifier: Apache-2.0

// In this folder: frames, messages, compression and the handshake of WebSockets, both roles

import URLLoadingCZlib

/// The negotiated parameters of permessage-deflate (RFC 7692).
package struct MessageDeflate: Sendable, Hashable, CustomStringConvertible {
    /// The window size in bits, 8 to 15, that each side's compressor may use.
    package var serverWindowBits = 15
    package var clientWindowBits = 15
    /// Whether each side compresses every message independently ("no context takeover").
    package var serverNoContextTakeover = false
    package var clientNoContextTakeover = false

    package init() {}

    /// Returns the client's offer.
    /// - Parameter forgets: whether neither side keeps its window between messages: worse compression, less memory.
    package static func offer(forgets: Bool) -> String {
        "permessage-deflate; client_max_window_bits"
            + (forgets ? "; server_no_context_takeover; client_no_context_takeover" : "")
    }

    /// Parses the server's response to the offer, the value of Sec-WebSocket-Extensions (§7.1); `nil` if it contains
    /// something that was not offered or violates the grammar.
    package static func accepted(_ value: String, forgets: Bool) -> MessageDeflate? {
        var scanner = ParameterScanner(value)
        scanner.skipBlanks()
        guard scanner.token()?.lowercasedASCII == "permessage-deflate" else { return nil }
        var agreed = MessageDeflate()
        // The client may always drop its own window as it offered, whatever the server answers.
        agreed.clientNoContextTakeover = forgets
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
        // §7.1.1.1: a server that accepts an offer with server_no_context_takeover must confirm it.
        return forgets && !agreed.serverNoContextTakeover ? nil : agreed
    }

    private mutating func take(_ name: String, _ text: String?) -> Bool {
        switch (name, text) {
        case ("server_no_context_takeover", nil): serverNoContextTakeover = true
        case ("client_no_context_takeover", nil): clientNoContextTakeover = true
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
        "permessage-deflate server \(serverWindowBits)\(serverNoContextTakeover ? "!" : "") "
            + "client \(clientWindowBits)\(clientNoContextTakeover ? "!" : "")"
    }
}

/// The end of a flushed deflate block, which messages of RFC 7692 omit (§7.2.1).
private let flushMark: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

/// Compresses messages (§7.2.1). Takes about 260 KB with a window of 15 bits, so it is created only when there is
/// something to compress.
package final class MessageDeflater {
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private let forgets: Bool

    /// Creates a compressor; `nil` if zlib does not support the window: it has no raw window of 8 bits. Messages are
    /// then sent uncompressed.
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

    /// Compresses a complete message for its frames.
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

/// Decompresses messages, piece by piece (§7.2.2). Takes about 40 KB once used.
package final class MessageInflater {
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private let forgets: Bool
    private static let room = 16 * 1024
    /// True if nothing was decompressed since the last message, or since the final block of a deflate stream.
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

    /// Decompresses a piece of the payload and passes the output to `sink`.
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

    /// Ends a message: adds the empty block that its sender omitted (§7.2.2). A message without bytes, or one that ends
    /// with the final block of a deflate stream, is complete without that block: some senders produce them.
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

    /// Whether the last block has ended, on a byte boundary. In `data_type`, zlib reports the end of a block as 128,
    /// and the number of unused bits below 64.
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
            // A block marked as final ends a deflate stream, not the message (§7.2.3.4).
            case Z_STREAM_END:
                inflateReset(stream)
                isBetweenStreams = stream.pointee.avail_in == 0
            default: throw .remote(.contentDecodingFailed, "RFC 7692 7.2.2")
            }
            if stream.pointee.avail_in == 0, stream.pointee.avail_out > 0 { return }
        }
    }
}
