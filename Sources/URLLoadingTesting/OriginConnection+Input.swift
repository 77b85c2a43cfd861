// Receiving: from the transport through the codec.

import URLLoadingIO
import URLLoadingWire

/// What was received and not consumed: `unread` of `bytes`.
struct OriginInput: Sendable {
    private var storage: [UInt8] = []
    private var unread = 0..<0
    /// Where the last event's range counts from.
    private var base = 0
    private(set) var hasEnded = false

    private static let smallest = 4 * 1024
    private static let largest = 64 * 1024

    var isEmpty: Bool { unread.isEmpty }

    func bytes(_ range: Range<Int>) -> ArraySlice<UInt8> { storage[base + range.lowerBound..<base + range.upperBound] }

    /// What was received and nobody has looked at, for whoever speaks something else from here on.
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
        // Heads are bounded by the codec, bodies are consumed as they come: so is this.
        let size = max(Self.smallest, min(storage.count * 4, Self.largest), unread.count * 2)
        // Not by `append`, which takes byte after byte in a debug build.
        var larger = [UInt8](repeating: 0, count: size)
        larger.withUnsafeMutableBytes { room in
            storage.withUnsafeBytes { room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[unread])) }
        }
        storage = larger
        unread = 0..<unread.count
    }

    /// Idle connections hold nothing.
    mutating func rest() {
        if isEmpty { self = OriginInput(hasEnded: hasEnded) }
    }

    private init(hasEnded: Bool) { self.hasEnded = hasEnded }
    init() {}
}

extension OriginConnection {
    /// `nil` if the client left instead.
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

    /// Closing with unread input would reset the connection and could destroy the answer before the
    /// client has read it (RFC 9112 9.6): the rest is read and dropped until the client leaves.
    func linger() async throws(Ending) {
        transport.finishWriting()
        while !input.hasEnded {
            input = OriginInput()
            try await fill()
        }
        throw .close
    }
}
