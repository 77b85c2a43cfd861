// SPDX-License-Identifier: Apache-2.0

// The received data of a connection: bytes, frames not consumed yet, and the client's flow-control windows.

import URLLoadingIO

/// A received frame, with the fields if it completes a field section.
struct HTTP2Arrival: Sendable {
    let frame: HTTP2Frame
    var fields: HTTP2Fields?
    /// The number of the server's SETTINGS that the client had acknowledged when it sent this frame; later ones do not
    /// bind it yet.
    var acknowledged = 0
    /// Whether the client had acknowledged the server's first SETTINGS (RFC 9113 §6.5.3).
    var knowsSettings: Bool { acknowledged > 0 }
}

struct HTTP2PeerInput: Sendable {
    enum Next: Sendable {
        case frame(HTTP2Arrival)
        case broken(String)
        case end, none
    }

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private var reader = HTTP2FrameReader()
    private var hasPreface = false
    private var arrived: [HTTP2Arrival] = []
    private var taken = 0
    private var broken: String?
    private var acknowledged = 0
    private var hasEnded = false
    private nonisolated(unsafe) var hpack = HPACKReader()
    /// The field section that is still incomplete.
    private var block: [UInt8]?
    private var room = [UInt8](repeating: 0, count: 32 * 1024)

    private(set) var windows = HTTP2SendWindows()
    /// The number of reads that have brought data or the end.
    private(set) var reads = 0

    /// Whether no more data will arrive.
    var isOver: Bool { hasEnded || broken != nil }

    mutating func next() -> Next {
        if taken < arrived.count {
            defer {
                taken += 1
                if taken == arrived.count { (arrived, taken) = ([], 0) }
            }
            return .frame(arrived[taken])
        }
        if let broken { return .broken(broken) }
        return hasEnded ? .end : .none
    }

    mutating func read(_ transport: any Transport) -> Progress {
        guard !hasEnded, broken == nil else { return .end }
        let result = room.withUnsafeMutableBytes { room in
            Result { () throws(IOFailure) in try transport.read(into: room) }
        }
        switch result {
        case .success(.moved(let count)):
            reads += 1
            reader.receive(room[..<count])
            return .moved(count)
        case .success(.blocked(let interest)): return .blocked(interest)
        case .success(.end), .failure:
            reads += 1
            hasEnded = true
            return .end
        }
    }

    /// Parses bytes into frames; returns the new ones.
    mutating func parse() -> [HTTP2Arrival] {
        let start = arrived.count
        if !hasPreface { readPreface() }
        while hasPreface, broken == nil, let frame = reader.next() {
            windows.note(frame)
            if frame.kind == .settings, frame.isAck { acknowledged += 1 }
            arrived.append(HTTP2Arrival(frame: frame, fields: section(frame), acknowledged: acknowledged))
        }
        return Array(arrived[start...])
    }

    private mutating func readPreface() {
        guard
            reader.unread.elementsEqual(Self.preface.prefix(reader.unread.count))
                || reader.unread.starts(with: Self.preface)
        else {
            broken = "no preface of HTTP/2 but \(String(decoding: reader.unread.prefix(40), as: UTF8.self))"
            return
        }
        hasPreface = reader.take(Self.preface.count) != nil
    }

    private mutating func section(_ frame: HTTP2Frame) -> HTTP2Fields? {
        guard frame.kind == .headers || frame.kind == .continuation, let content = frame.content else { return nil }
        let whole = frame.kind == .headers ? content : (block ?? []) + content
        guard frame.flags.contains(.endHeaders) else {
            block = whole
            return nil
        }
        block = nil
        do throws(HPACKReader.Failure) { return try hpack.fields(of: whole) } catch {
            broken = "a field section that cannot be read: \(error.detail)"
            return nil
        }
    }

    mutating func takeWindow(stream: Int, upTo count: Int) -> Int { windows.take(stream: stream, upTo: count) }
}

/// The flow-control windows for sending to the client (RFC 9113 §5.2), and the streams it has reset.
struct HTTP2SendWindows: Sendable {
    private(set) var connection = 65_535
    private(set) var initial = 65_535
    private(set) var maxFrameSize = 16_384
    /// Credit granted and used for each stream, apart from the initial window, which can change for open streams
    /// (§6.9.2).
    private var changes: [Int: Int] = [:]
    private(set) var resets: [Int: HTTP2Frame.ErrorCode] = [:]

    func stream(_ stream: Int) -> Int { initial + (changes[stream] ?? 0) }

    mutating func note(_ frame: HTTP2Frame) {
        switch frame.kind {
        case .settings where !frame.isAck:
            for setting in frame.settings ?? [] {
                if setting.identifier == 4 { initial = Int(setting.value) }
                if setting.identifier == 5 { maxFrameSize = max(1, Int(setting.value)) }
            }
        case .windowUpdate where frame.stream == 0: connection += frame.increment ?? 0
        case .windowUpdate: changes[frame.stream, default: 0] += frame.increment ?? 0
        case .resetStream: resets[frame.stream] = frame.errorCode
        default: break
        }
    }

    /// Uses up to `count` bytes of both windows, at most one frame; returns 0 if there is no room.
    mutating func take(stream: Int, upTo count: Int) -> Int {
        let size = max(0, min(count, connection, self.stream(stream), maxFrameSize))
        connection -= size
        changes[stream, default: 0] -= size
        return size
    }

    mutating func forget(_ stream: Int) {
        changes[stream] = nil
        resets[stream] = nil
    }
}

extension HTTP2PeerInput {
    mutating func forget(stream: Int) { windows.forget(stream) }
}
