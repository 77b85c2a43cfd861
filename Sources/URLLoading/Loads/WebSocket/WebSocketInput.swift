// SPDX-License-Identifier: Apache-2.0

// The received bytes that were not parsed, and the message that they form. An idle socket holds no buffer; it borrows
// one when there is something to read.

import FoundationEssentials
import URLLoadingWire

struct WebSocketInput {
    private var codec: WebSocketCodec
    private var reader: WebSocketMessageReader
    private var kind = WebSocketCodec.Kind.binary
    private var message = Data()
    private var storage: ChunkStorage?
    private var unread = 0..<0

    enum Event: Sendable {
        case message(WebSocketMessage)
        case ping([UInt8])
        case pong([UInt8])
        case close(WebSocketClose?)
    }

    init(limit: Int, deflate: MessageDeflate?, received: Chunk?) {
        codec = WebSocketCodec(role: .client, allowsCompression: deflate != nil)
        reader = WebSocketMessageReader(role: .client, limit: limit, deflate: deflate)
        guard let received else { return }
        (storage, unread) = (received.storage, received.range)
    }

    /// Sets the maximum size of later messages, and of the rest of the current one.
    mutating func setLimit(_ limit: Int) { if reader.limit != limit { reader.limit = max(0, limit) } }

    /// True if there are bytes that were not parsed; an incomplete frame header does not count.
    private(set) var mayHoldMore = true
    /// The number of bytes of the message that is being received.
    var held: Int { message.count }

    /// Returns the next event in the received bytes; `nil` if more must be read.
    mutating func next() throws(WireViolation) -> Event? {
        while let event = try parse() {
            if let event { return event }
        }
        mayHoldMore = false
        return nil
    }

    private mutating func parse() throws(WireViolation) -> Event?? {
        let input =
            storage.map { UnsafeMutableRawBufferPointer(start: $0.base + unread.lowerBound, count: unread.count) }
            ?? UnsafeMutableRawBufferPointer(start: nil, count: 0)
        var consumed = 0
        defer { unread = unread.lowerBound + consumed..<unread.upperBound }
        guard let event = try codec.next(input, consumed: &consumed) else {
            try reader.expect(codec.remaining)
            return .none
        }
        switch event {
        case .message(let kind, let isCompressed):
            self.kind = kind
            try reader.begin(kind, isCompressed: isCompressed)
            return .some(nil)
        case .data(let range):
            // Reserves at most a fixed amount, because a peer may announce a length that it never sends.
            if message.isEmpty {
                message.reserveCapacity(range.count + Int(clamping: min(codec.remaining, Self.maximumReserve)))
            }
            try extend { (reader, sink) throws(WireViolation) in
                try reader.take(UnsafeRawBufferPointer(rebasing: input[range]), sink)
            }
            return .some(nil)
        case .end:
            try extend { (reader, sink) throws(WireViolation) in try reader.end(sink) }
            return .some(.message(takeMessage()))
        case .ping(let payload): return .some(.ping(payload))
        case .pong(let payload): return .some(.pong(payload))
        case .close(let close): return .some(.close(close))
        }
    }

    private mutating func extend(
        _ read: (inout WebSocketMessageReader, (UnsafeRawBufferPointer) -> Void) throws(WireViolation) -> Void
    ) throws(WireViolation) {
        var longer = Data()
        swap(&longer, &message)
        defer { swap(&longer, &message) }
        try read(&reader) { longer.append(contentsOf: $0) }
    }

    private static let maximumReserve: UInt64 = 1 << 20

    private mutating func takeMessage() -> WebSocketMessage {
        defer { message = Data() }
        return kind == .text ? .text(String(decoding: message, as: UTF8.self)) : .data(message)
    }

    // MARK: The buffer

    /// Returns the free space to read into. The caller calls `received` if bytes were read.
    mutating func room(_ buffers: ReadBuffers) -> UnsafeMutableRawBufferPointer {
        if isKnownUniquelyReferenced(&storage), let storage {
            if unread.isEmpty { unread = 0..<0 }
            if storage.capacity - unread.upperBound >= Self.leastRoom { return storage.room(from: unread.upperBound) }
        }
        // The unread rest is at most a frame header or a control frame.
        let new = buffers.take()
        if let storage, !unread.isEmpty {
            new.base.copyMemory(from: storage.base + unread.lowerBound, byteCount: unread.count)
        }
        giveBack(buffers)
        unread = 0..<unread.count
        storage = new
        return new.room(from: unread.upperBound)
    }
    private static let leastRoom = 4096

    mutating func received(_ count: Int) {
        unread = unread.lowerBound..<unread.upperBound + count
        mayHoldMore = true
    }

    /// Notes that there may be more to parse, because the reader stopped early.
    mutating func leave() { mayHoldMore = true }

    /// Releases the buffer of an idle socket.
    mutating func releaseBuffer(_ buffers: ReadBuffers) {
        guard unread.isEmpty else {
            // An incomplete frame header does not keep a large buffer.
            guard unread.count <= 256, let old = storage, old.capacity > 256 else { return }
            let small = ChunkStorage(capacity: 256)
            small.base.copyMemory(from: old.base + unread.lowerBound, byteCount: unread.count)
            giveBack(buffers)
            (storage, unread) = (small, 0..<unread.count)
            return
        }
        giveBack(buffers)
        unread = 0..<0
    }

    /// Discards all received bytes.
    mutating func drop(_ buffers: ReadBuffers) {
        message = Data()
        unread = 0..<0
        giveBack(buffers)
        mayHoldMore = false
    }

    private mutating func giveBack(_ buffers: ReadBuffers) {
        if isKnownUniquelyReferenced(&storage), let storage { buffers.giveBack(storage) }
        storage = nil
    }
}
