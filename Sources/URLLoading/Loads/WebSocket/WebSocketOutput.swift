// SPDX-License-Identifier: Apache-2.0

// The outgoing frames of a socket. Each is written once and masked in place. A message is sent in pieces, so that a
// pong can be sent in between.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// A message being sent.
struct WebSocketSending {
    let kind: WebSocketCodec.Kind
    let bytes: Data
    let isCompressed: Bool
    fileprivate(set) var offset = 0
    /// True once a frame of the message was written.
    fileprivate(set) var isBegun = false
    fileprivate(set) var isWritten = false

    init(_ kind: WebSocketCodec.Kind, _ bytes: Data, isCompressed: Bool) {
        (self.kind, self.bytes, self.isCompressed) = (kind, bytes, isCompressed)
    }
}

struct WebSocketOutput {
    private var codec: WebSocketCodec
    private var masks = WebSocketMasks()
    private var bytes: [UInt8] = []
    private var sent = 0

    /// The size of a piece: large enough that the frame header costs nothing, small enough that control frames wait
    /// briefly.
    private static let piece = 128 * 1024
    /// The buffer capacity that an idle socket may keep.
    private static let kept = 2048

    init(allowsCompression: Bool) { codec = WebSocketCodec(role: .client, allowsCompression: allowsCompression) }

    var isEmpty: Bool { sent == bytes.count }

    /// Writes as much as the transport takes; `nil` if there is nothing to write.
    func write(to transport: any Transport) throws(IOFailure) -> Progress? {
        guard !isEmpty else { return nil }
        return try bytes.withUnsafeBytes { all in
            Result { () throws(IOFailure) in try transport.write(UnsafeRawBufferPointer(rebasing: all[sent...])) }
        }.get()
    }

    mutating func moved(_ count: Int) {
        sent += count
        guard isEmpty else { return }
        bytes.removeAll(keepingCapacity: true)
        sent = 0
    }

    /// Releases a large buffer while there is nothing to send.
    mutating func releaseBuffer() { if isEmpty, bytes.capacity > Self.kept { bytes = [] } }

    mutating func append(_ frame: WebSocketControl.Frame) throws(WireViolation) {
        let mask = try masks.next()
        switch frame {
        case .ping(let payload): try codec.sendPing(payload, mask: mask, into: &bytes)
        case .pong(let payload): try codec.sendPong(payload, mask: mask, into: &bytes)
        case .close(let close): codec.sendClose(close, mask: mask, into: &bytes)
        }
    }

    /// Appends the next piece of a message, as a frame of its own.
    mutating func append(_ sending: inout WebSocketSending?) throws(WireViolation) {
        guard var message = sending else { return }
        defer { sending = message }
        let mask = try masks.next()
        let start = message.offset
        let end = min(message.bytes.count, start + Self.piece)
        let isLast = end == message.bytes.count
        let (kind, isFirst, isCompressed) = (message.kind, !message.isBegun, message.isCompressed)
        try message.bytes.withUnsafeBytes { all in
            Result { () throws(WireViolation) in
                try codec.send(
                    kind, UnsafeRawBufferPointer(rebasing: all[start..<end]),
                    at: .init(isFirst: isFirst, isLast: isLast), isCompressed: isCompressed, mask: mask, into: &bytes)
            }
        }.get()
        (message.offset, message.isBegun, message.isWritten) = (end, true, isLast)
    }
}

/// Unpredictable masks (RFC 6455 §5.3, 10.3) from the system's randomness, fetched for many frames at a time.
struct WebSocketMasks {
    private static let stock = Lock<[UInt8]>([])
    private static let batch = 1024

    func next() throws(WireViolation) -> UInt32 {
        let mask = Self.stock.withLock { stock -> UInt32? in
            if stock.count < 4 { stock = secureRandomBytes(Self.batch) ?? [] }
            guard stock.count >= 4 else { return nil }
            let bytes = stock.suffix(4)
            stock.removeLast(4)
            return bytes.reduce(0) { $0 << 8 | UInt32($1) }
        }
        // Without a mask a frame must not be sent.
        guard let mask else { throw WireViolation(.local, .illegalState, section: "RFC 6455 10.3") }
        return mask
    }
}
