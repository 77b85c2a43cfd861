// What must live here: how a message's payload becomes what its receiver gets: inflated, within its limit, and text only
// if it is UTF-8. What this file does not know: frames, and where messages are kept.

/// The payload of one message after the other.
///
/// ```swift
/// case .message(let kind, let isCompressed): reader.begin(kind, isCompressed: isCompressed)
/// case .data(let range): try reader.take(input[range]) { message.append($0) }
/// case .end: try reader.end { message.append($0) }
/// case nil: try reader.expect(codec.remaining)   // …and read on
/// ```
package struct WebSocketMessageReader: Sendable {
    /// Bytes that a message may have, expanded; at least 0.
    package var limit: Int
    private let agreed: MessageDeflate?
    private let role: WebSocketCodec.Role
    private var inflater: MessageInflater?
    private var isCompressed = false
    private var text: UTF8Check?
    private var count = 0

    /// - Parameter limit: bytes that a message may have, expanded; at least 0.
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
            ? MessageInflater(windowBits: agreed.serverWindowBits, forgets: agreed.serverForgets)
            : MessageInflater(windowBits: agreed.clientWindowBits, forgets: agreed.clientForgets)
        guard inflater != nil else { throw .local(.illegalState, "RFC 7692 7.2.2") }
    }

    package mutating func take(
        _ payload: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Void
    ) throws(WireViolation) {
        guard isCompressed, let inflater else { return try check(payload, sink) }
        try inflater.inflate(payload) { (piece) throws(WireViolation) in try check(piece, sink) }
    }

    /// Refuses a message whose frame announces more than the limit. A compressed frame is not refused: it does not
    /// announce what it expands to.
    /// - Parameter remaining: bytes of the frame that are still to come.
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
