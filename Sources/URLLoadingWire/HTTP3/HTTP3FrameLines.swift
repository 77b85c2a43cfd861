// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// Describes the frames of the streams of one direction as lines, however the bytes are split.
struct HTTP3FrameLines {
    private struct Stream {
        /// `nil` before the type of a stream in one direction is known.
        var name: String?
        var hasFrames: Bool
        /// The beginning of a frame's type and length, or of the type of the stream.
        var partial: [UInt8] = []
        /// The bytes left of the current frame.
        var rest: UInt64 = 0
    }
    private var streams: [Int64: Stream] = [:]

    /// Returns the lines of the frames, and of the pieces of other streams, that begin in these bytes.
    mutating func lines(_ bytes: UnsafeRawBufferPointer, isEnd: Bool, on number: Int64) -> [String] {
        let isRequest = number & 2 == 0
        var stream =
            streams[number] ?? Stream(name: isRequest ? "stream \(number)" : nil, hasFrames: isRequest)
        var (lines, index) = ([String](), 0)
        while index < bytes.count {
            if stream.name != nil, !stream.hasFrames {
                lines.append("\(stream.name ?? ""), \(bytes.count - index) bytes")
                break
            }
            if stream.rest > 0 {
                let count = Int(min(stream.rest, UInt64(bytes.count - index)))
                stream.rest -= UInt64(count)
                index += count
                continue
            }
            stream.partial.append(bytes[index])
            index += 1
            guard let (first, used) = QUICInteger.read(stream.partial[...]) else { continue }
            if stream.name == nil {
                (stream.name, stream.hasFrames, stream.partial) = (Self.streamName(first), first < 2, [])
            } else if let (length, _) = QUICInteger.read(stream.partial.dropFirst(used)) {
                lines.append("\(stream.name ?? ""): \(Self.frameName(first)), \(length) bytes")
                (stream.rest, stream.partial) = (length, [])
            }
        }
        if isEnd { lines.append("\(stream.name ?? "stream \(number)") ends") }
        streams[number] = isEnd ? nil : stream
        return lines
    }

    mutating func closed(_ number: Int64) { streams[number] = nil }

    private static func streamName(_ type: UInt64) -> String {
        switch type {
        case 0: "control stream"
        case 1: "push stream"
        case 2: "QPACK encoder stream"
        case 3: "QPACK decoder stream"
        default: "stream of type \(type)"
        }
    }

    private static func frameName(_ type: UInt64) -> String {
        switch type {
        case 0: "DATA"
        case 1: "HEADERS"
        case 3: "CANCEL_PUSH"
        case 4: "SETTINGS"
        case 5: "PUSH_PROMISE"
        case 7: "GOAWAY"
        case 13: "MAX_PUSH_ID"
        case 0xF0700: "PRIORITY_UPDATE"
        default: "frame of type \(type)"
        }
    }
}

#endif
