// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

private struct Outcome: Equatable {
    var body: [UInt8] = []
    var violation: WireViolation.Code?
}

func fuzzDecoder(_ bytes: [UInt8], rule: UInt8) {
    for coding in ["gzip", "deflate", "br", "zstd", "gzip, deflate, gzip", "zstd, br"] {
        let whole = run(coding, bytes, pieces: max(1, bytes.count), room: 4096)
        let cut = run(coding, bytes, pieces: Int(rule % 16) + 1, room: Int(rule / 16) + 1)
        promise(whole.violation == cut.violation, "any cut ends the same")
        promise(whole.violation != nil || whole.body == cut.body, "any cut gives the same")
    }
}

private func run(_ coding: String, _ bytes: [UInt8], pieces: Int, room: Int) -> Outcome {
    var outcome = Outcome()
    var limits = ContentDecodingLimits()
    limits.outputSize = 1 << 16
    var rest = bytes[...]
    var output = [UInt8](repeating: 0, count: room)
    do throws(WireViolation) {
        guard var decoder = try ContentDecoder(contentEncoding: coding, limits: limits) else { return outcome }
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(piece.count)
            try feed(&decoder, piece, &output, &outcome)
        }
        try decoder.finish()
    } catch {
        outcome.violation = error.code
    }
    return outcome
}

private func feed(
    _ decoder: inout ContentDecoder, _ piece: [UInt8], _ output: inout [UInt8], _ outcome: inout Outcome
) throws(WireViolation) {
    var offset = 0
    while true {
        let step = try piece.withUnsafeBufferPointer { (input) throws(WireViolation) in
            try output.withUnsafeMutableBufferPointer { (output) throws(WireViolation) in
                try decoder.decode(
                    UnsafeRawBufferPointer(input).dropping(offset),
                    into: UnsafeMutableRawBufferPointer(output))
            }
        }
        promise(step.consumed <= piece.count - offset && step.produced <= output.count, "no more than there is")
        offset += step.consumed
        outcome.body += output[..<step.produced]
        if step == (0, 0) { break }
    }
    promise(offset == piece.count, "all input is taken in the end")
}

extension UnsafeRawBufferPointer {
    fileprivate func dropping(_ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[count...])
    }
}
