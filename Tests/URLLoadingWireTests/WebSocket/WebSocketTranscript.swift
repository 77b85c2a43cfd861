// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// The result of reading a stream of frames, independent of the cuts.
struct WebSocketTranscript: Equatable {
    enum Item: Equatable {
        case message(WebSocketCodec.Kind, [UInt8])
        case ping([UInt8])
        case pong([UInt8])
        case close(WebSocketClose?)
    }
    var items: [Item] = []
    var violation: WireViolation.Code?

    static func run(
        _ pieces: [[UInt8]], role: WebSocketCodec.Role = .client, deflate: MessageDeflate? = nil, limit: Int = 1 << 20
    ) -> WebSocketTranscript {
        var codec = WebSocketCodec(role: role, allowsCompression: deflate != nil)
        var reader = WebSocketMessageReader(role: role, limit: limit, deflate: deflate)
        var transcript = WebSocketTranscript()
        var (input, message) = ([UInt8](), [UInt8]())
        var kind = WebSocketCodec.Kind.binary
        do throws(WireViolation) {
            for piece in pieces {
                input += piece
                while true {
                    var consumed = 0
                    let event = try input.withUnsafeMutableBufferPointer { (bytes) throws(WireViolation) in
                        try codec.next(UnsafeMutableRawBufferPointer(bytes), consumed: &consumed)
                    }
                    switch event {
                    case .message(let begun, let isCompressed)?:
                        (kind, message) = (begun, [])
                        try reader.begin(begun, isCompressed: isCompressed)
                    case .data(let range)?:
                        let payload = Array(input[range])
                        try payload.withUnsafeBufferPointer { (bytes) throws(WireViolation) in
                            try reader.take(UnsafeRawBufferPointer(bytes)) { message += $0 }
                        }
                    case .end?:
                        try reader.end { message += $0 }
                        transcript.items.append(.message(kind, message))
                    case .ping(let bytes)?: transcript.items.append(.ping(bytes))
                    case .pong(let bytes)?: transcript.items.append(.pong(bytes))
                    case .close(let close)?: transcript.items.append(.close(close))
                    case nil: try reader.expect(codec.remaining)
                    }
                    input.removeFirst(consumed)
                    if event == nil { break }
                }
                // Only a head or a control frame is buffered.
                #expect(input.count <= WebSocketFrame.maximumHeadBytes + WebSocketFrame.maximumControlBytes)
            }
        } catch {
            transcript.violation = error.code
        }
        return transcript
    }

    /// Reads the bytes whole, byte by byte, and cut in two at every place.
    static func runAllSplits(
        _ stream: [UInt8], role: WebSocketCodec.Role = .client, deflate: MessageDeflate? = nil, limit: Int = 1 << 20,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> WebSocketTranscript {
        let whole = run([stream], role: role, deflate: deflate, limit: limit)
        let single = run(stream.map { [$0] }, role: role, deflate: deflate, limit: limit)
        #expect(single == whole, "byte by byte", sourceLocation: sourceLocation)
        for cut in Swift.stride(from: 0, through: stream.count, by: max(1, stream.count / 300)) {
            let parts = [Array(stream[..<cut]), [], Array(stream[cut...])]
            #expect(
                run(parts, role: role, deflate: deflate, limit: limit) == whole, "cut at \(cut)",
                sourceLocation: sourceLocation)
        }
        return whole
    }
}

/// Makes a frame from any values, valid or not.
func frame(
    _ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true, reserved: UInt8 = 0, mask: [UInt8]? = nil,
    lengthForm: Int? = nil
) -> [UInt8] {
    let form = lengthForm ?? (payload.count < 126 ? 0 : payload.count <= 0xFFFF ? 2 : 8)
    var bytes = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
    bytes.append((mask == nil ? 0 : 0x80) | (form == 0 ? UInt8(payload.count) : form == 2 ? 126 : 127))
    for index in (0..<form).reversed() { bytes.append(UInt8(truncatingIfNeeded: payload.count >> (8 * index))) }
    guard let mask else { return bytes + payload }
    return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
}

func frame(_ opcode: UInt8, _ text: String, isFinal: Bool = true) -> [UInt8] {
    frame(opcode, Array(text.utf8), isFinal: isFinal)
}
