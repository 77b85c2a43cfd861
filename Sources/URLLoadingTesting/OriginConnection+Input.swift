// SPDX-License-Identifier: Apache-2.0

// Receiving: from the transport through the codec.

import URLLoadingIO
import URLLoadingWire

/// Received but unconsumed bytes: the range `unread` of the storage.
struct OriginInput: Sendable {
    private var storage: [UInt8] = []
    private var unread = 0..<0
    /// The offset to which the last event's range is relative.
    private var base = 0
    private(set) var hasEnded = false

    private static let smallest = 4 * 1024
    private static let largest = 64 * 1024

    var isEmpty: Bool { unread.isEmpty }

    func bytes(_ range: Range<Int>) -> ArraySlice<UInt8> { storage[base + range.lowerBound..<base + range.upperBound] }

    /// Takes the unprocessed bytes, for a connection that continues with another protocol.
    mutating func takeRest() -> [UInt8] {
        defer { unread = unread.upperBound..<unread.upperBound }
        return Array(storage[unread])
    }

    mutating func next(_ codec: inout HTTP1Codec) throws(WireViolation) -> HTTP1Event? {
        base = unread.lowerBound
        var consumed = 0
        let result = storage.withUnsafeBytes { bytes in
            Result { () throws(WireViolation) in
                try codec.next(UnsafeRawBufferPointer(rebasing: bytes[unread]), consumed: &consumed)
            }
        }
        unread = unread.lowerBound + consumed..<unread.upperBound
        if let event = try result.get() { return event }
        return hasEnded ? try codec.receiveEnd() : nil
    }

    mutating func read(_ transport: any Transport) throws(IOFailure) -> Progress {
        makeRoom()
        let result = storage.withUnsafeMutableBytes { bytes in
            Result { () throws(IOFailure) in
                try transport.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[unread.upperBound...]))
            }
        }
        let progress = try result.get()
        switch progress {
        case .moved(let count): unread = unread.lowerBound..<unread.upperBound + count
        case .end: hasEnded = true
        case .blocked: break
        }
        return progress
    }

    private mutating func makeRoom() {
        if unread.isEmpty { unread = 0..<0 }
        guard unread.upperBound == storage.count else { return }
        // Bounded, because the codec bounds heads, and bodies are consumed as they arrive.
        let size = max(Self.smallest, min(storage.count * 4, Self.largest), unread.count * 2)
        // Not `append`, which copies byte by byte in a debug build.
        var larger = [UInt8](repeating: 0, count: size)
        larger.withUnsafeMutableBytes { room in
            storage.withUnsafeBytes { room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[unread])) }
        }
        storage = larger
        unread = 0..<unread.count
    }

    /// Releases the buffer of an idle connection.
    mutating func releaseBuffer() {
        if isEmpty { self = OriginInput(hasEnded: hasEnded) }
    }

    private init(hasEnded: Bool) { self.hasEnded = hasEnded }
    init() {}
}

extension OriginConnection {
    /// Receives the head of a request; `nil` if the client left instead.
    func requestHead() async throws(Ending) -> HTTP1RequestHead? {
        while true {
            if case .request(let head)? = try event() { return head }
            guard !input.hasEnded else { return nil }
            try await fill()
        }
    }

    func nextEvent() async throws(Ending) -> HTTP1Event {
        while true {
            if let event = try event() { return event }
            guard !input.hasEnded else { throw .close }
            try await fill()
        }
    }

    func event() throws(Ending) -> HTTP1Event? {
        do throws(WireViolation) { return try input.next(&codec) } catch { throw .close }
    }

    func fill() async throws(Ending) {
        while true {
            guard token.stopReason == nil else { throw .close }
            let progress: Progress
            do throws(IOFailure) { progress = try input.read(transport) } catch { throw .close }
            guard case .blocked(let interest) = progress else { return }
            await Poller.shared.park(transport.slot, interest, token)
        }
    }

    /// Reads and drops the rest of the input until the client leaves: closing with unread input would reset the
    /// connection and could destroy the response before the client has read it (RFC 9112 §9.6).
    func linger() async throws(Ending) {
        transport.finishWriting()
        while !input.hasEnded {
            input = OriginInput()
            try await fill()
        }
        throw .close
    }
}
