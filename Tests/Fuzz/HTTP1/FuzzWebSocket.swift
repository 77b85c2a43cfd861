// SPDX-License-Identifier: Apache-2.0

// Frames of a WebSocket, their messages, inflated where they say so, and the parameters of the extension: any cut of
// the input tells the same, and nothing goes beyond its limits.

import URLLoadingWire

func fuzzWebSocket(_ role: WebSocketCodec.Role, _ bytes: [UInt8], rule: UInt8) {
    let whole = conversation(role, bytes, pieces: max(1, bytes.count))
    let cut = conversation(role, bytes, pieces: Int(rule % 16) + 1)
    promise(whole.violation == cut.violation, "any cut of frames ends the same")
    promise(whole.violation != nil || whole.told == cut.told, "any cut of frames gives the same")
    let text = String(decoding: bytes, as: UTF8.self)
    for forgets in [false, true] {
        guard let agreed = MessageDeflate.accepted("permessage-deflate;" + text, forgets: forgets) else { continue }
        promise(8...15 ~= agreed.serverWindowBits && 8...15 ~= agreed.clientWindowBits, "a window there is")
    }
}

private struct Conversation {
    var told: [UInt8] = []
    var violation: WireViolation.Code?
}

private let limit = 64 * 1024

private func conversation(_ role: WebSocketCodec.Role, _ bytes: [UInt8], pieces: Int) -> Conversation {
    var outcome = Conversation()
    var message: [UInt8] = []
    var codec = WebSocketCodec(role: role, allowsCompression: true, frameFlood: 50)
    var reader = WebSocketMessageReader(role: role, limit: limit, deflate: MessageDeflate())
    do throws(WireViolation) {
        try feed(bytes, pieces: pieces) { (input, consumed) throws(WireViolation) in
            let event = try input.withUnsafeMutableBufferPointer { (all) throws(WireViolation) in
                try codec.next(UnsafeMutableRawBufferPointer(all), consumed: &consumed)
            }
            switch event {
            case .message(let kind, let isCompressed)?:
                outcome.told += "message \(kind)".utf8
                try reader.begin(kind, isCompressed: isCompressed)
            case .data(let range)?:
                promise(!range.isEmpty && range.upperBound <= consumed, "a range of what was consumed")
                try input.withUnsafeBufferPointer { (all) throws(WireViolation) in
                    try reader.take(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: all[range]))) {
                        message += $0
                    }
                }
            case .end?:
                try reader.end { message += $0 }
                promise(message.count <= limit, "no more than the limit")
                outcome.told += message
                message = []
            case .ping(let payload)?: outcome.told += "ping".utf8 + payload
            case .pong(let payload)?: outcome.told += "pong".utf8 + payload
            case .close(let close)?: outcome.told += "close \(close?.code.rawValue ?? 0)".utf8
            case nil:
                promise(input.count - consumed <= 139, "little is left lying")
                return false
            }
            return true
        }
    } catch {
        outcome.violation = error.code
    }
    return outcome
}
