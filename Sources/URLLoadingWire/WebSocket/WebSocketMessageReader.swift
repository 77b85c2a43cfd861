// SPDX-License-Identifier: Apache-2.0

// Turns the payload of messages into content: decompressed, limited in size, and valid UTF-8 if it is text. Frames and
// the storage of messages are handled elsewhere.

/// Reads the payload of one message after another.
///
/// ```swift
/// case .message(let kind, let isCompressed): reader.begin(kind, isCompressed: isCompressed)
/// case .data(let range): try reader.take(input[range]) { message.append($0) }
/// case .end: try reader.end { message.append($0) }
/// case nil: try reader.expect(codec.remaining)   // …and read on
/// ```
package struct WebSocketMessageReader {
    /// The maximum size of a message in bytes, decompressed; at least 0.
    package var limit: Int
    private let agreed: MessageDeflate?
    private let role: WebSocketCodec.Role
    private var inflater: MessageInflater?
    private var isCompressed = false
    private var text: UTF8Check?
    private var count = 0

    /// - Parameter limit: the maximum size of a message in bytes, decompressed; at least 0.
    package init(role: WebSocketCodec.Role, limit: Int, deflate agreed: MessageDeflate?) {
        self.role = role
        self.limit = max(0, limit)
        self.agreed = agreed
    }

    package mutating func begin(_ kind: WebSocketCodec.Kind, isCompressed: Bool) throws(WireViolation) {
        count = 0
        text = kind == .text ? UTF8Check() : nil
        self.isCompressed = isCompressed
        guard isCompressed, inflater == nil else { return }
        let agreed = agreed ?? MessageDeflate()
        inflater =
            role == .client
            ? MessageInflater(windowBits: agreed.serverWindowBits, forgets: agreed.serverNoContextTakeover)
            : MessageInflater(windowBits: agreed.clientWindowBits, forgets: agreed.clientNoContextTakeover)
        guard inflater != nil else { throw .local(.illegalState, "RFC 7692 7.2.2") }
    }

    package mutating func take(
        _ payload: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Void
    ) throws(WireViolation) {
        guard isCompressed, let inflater else { return try check(payload, sink) }
        try inflater.inflate(payload) { (piece) throws(WireViolation) in try check(piece, sink) }
    }

    /// Refuses a message whose frame announces more than the limit. Compressed frames pass, because they do not
    /// announce their decompressed size.
    /// - Parameter remaining: the bytes of the frame still to be received.
    package func expect(_ remaining: UInt64) throws(WireViolation) {
        guard isCompressed || remaining <= UInt64(max(0, limit - count)) else {
            throw .remote(.messageTooLarge, "RFC 6455 10.4")
        }
    }

    package mutating func end(_ sink: (UnsafeRawBufferPointer) -> Void) throws(WireViolation) {
        if isCompressed, let inflater {
            try inflater.end { (piece) throws(WireViolation) in try check(piece, sink) }
        }
        guard text?.isComplete ?? true else { throw .remote(.invalidText, "RFC 6455 8.1") }
    }

    private mutating func check(
        _ piece: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Void
    ) throws(WireViolation) {
        guard piece.count <= limit - count else { throw .remote(.messageTooLarge, "RFC 6455 10.4") }
        count += piece.count
        if text != nil, text?.take(piece) == false { throw .remote(.invalidText, "RFC 6455 8.1") }
        sink(piece)
    }
}
