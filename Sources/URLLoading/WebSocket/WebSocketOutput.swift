// What is going out: frames, each written once and masked where it lies. A message goes in pieces, so that a pong can
// go between.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// A message on its way.
struct WebSocketSending {
    let kind: WebSocketCodec.Kind
    let bytes: Data
    let isCompressed: Bool
    fileprivate(set) var offset = 0
    /// A frame of it was written.
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

    /// Large enough that its head costs nothing, small enough that nobody waits long behind it.
    private static let piece = 128 * 1024
    /// What a socket at rest may keep.
    private static let kept = 2048

    init(allowsCompression: Bool) { codec = WebSocketCodec(role: .client, allowsCompression: allowsCompression) }

    var isEmpty: Bool { sent == bytes.count }

    /// `nil` if there is nothing.
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

    /// Nothing more goes out for now.
    mutating func rest() { if isEmpty, bytes.capacity > Self.kept { bytes = [] } }

    mutating func append(_ frame: WebSocketControl.Frame) throws(WireViolation) {
        let mask = try masks.next()
        switch frame {
        case .ping(let payload): try codec.sendPing(payload, mask: mask, into: &bytes)
        case .pong(let payload): try codec.sendPong(payload, mask: mask, into: &bytes)
        case .close(let close): codec.sendClose(close, mask: mask, into: &bytes)
        }
    }

    /// The next piece of a message, as a frame of its own.
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
                    kind, UnsafeRawBufferPointer(rebasing: all[start..<end]), isFirst: isFirst, isLast: isLast,
                    isCompressed: isCompressed, mask: mask, into: &bytes)
            }
        }.get()
        (message.offset, message.isBegun, message.isWritten) = (end, true, isLast)
    }
}

/// Masks nobody can guess (RFC 6455 5.3, 10.3), of the system's own randomness, fetched for many frames at a time.
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
        // Without one nothing may be sent.
        guard let mask else { throw WireViolation(.local, .illegalState, section: "RFC 6455 10.3") }
        return mask
    }
}
