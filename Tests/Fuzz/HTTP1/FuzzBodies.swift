// SPDX-License-Identifier: Apache-2.0

// The formats inside bodies and fields, and the handshakes of SOCKS: the result does not depend on where the input is
// cut.

import URLLoadingWire

func fuzzBodies(_ bytes: [UInt8], rule: UInt8) {
    let whole = parts(bytes, pieces: max(1, bytes.count))
    let cut = parts(bytes, pieces: Int(rule % 16) + 1)
    promise(whole.violation == cut.violation, "any cut of parts ends the same")
    promise(whole.violation != nil || whole.told == cut.told, "any cut of parts gives the same")
    let all = events(in: bytes, pieces: max(1, bytes.count))
    let others = events(in: bytes, pieces: Int(rule / 16) + 1)
    promise(all == others, "any cut of a stream of events gives the same")
    fuzzFields(String(decoding: bytes, as: UTF8.self))
    fuzzSOCKS(bytes, rule: rule)
}

private struct Parts {
    var told: [UInt8] = []
    var violation: WireViolation.Code?
}

private func parts(_ bytes: [UInt8], pieces: Int) -> Parts {
    var outcome = Parts()
    guard let boundary = try? MultipartBoundary("b") else { return outcome }
    var reader = MultipartReader(boundary: boundary)
    do throws(WireViolation) {
        try feed(bytes, pieces: pieces) { (input, consumed) throws(WireViolation) in
            let event = try input.withUnsafeBufferPointer { (all) throws(WireViolation) in
                try reader.next(UnsafeRawBufferPointer(all), consumed: &consumed)
            }
            switch event {
            case .part(let headers): outcome.told += "part \(headers)".utf8
            case .data(let range):
                promise(!range.isEmpty && range.upperBound <= input.count, "a range of the input")
                outcome.told += input[range]
            case .partEnd: outcome.told += "end".utf8
            case .end: outcome.told += "END".utf8
            case nil: return false
            }
            return true
        }
        try reader.receiveEnd()
    } catch {
        outcome.violation = error.code
    }
    return outcome
}

private func events(in bytes: [UInt8], pieces: Int) -> [String] {
    var parser = EventStreamParser()
    var told: [String] = []
    var rest = bytes[...]
    do throws(WireViolation) {
        while !rest.isEmpty {
            var piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(piece.count)
            var consumed = 0
            while true {
                let item = try piece.withUnsafeBufferPointer { (all) throws(WireViolation) in
                    try parser.next(UnsafeRawBufferPointer(all), consumed: &consumed)
                }
                guard let item else { break }
                told.append("\(item)")
                piece.removeFirst(consumed)
            }
            promise(consumed == piece.count, "all of it is taken")
        }
    } catch {
        told.append("\(error.code)")
    }
    return told
}

private func fuzzFields(_ text: String) {
    if let disposition = ContentDisposition(text) { _ = disposition.fileName?.utf8.count }
    if let tag = EntityTag(text) { promise(EntityTag(tag.description) == tag, "a tag reads as itself") }
    if case .part(let range, let total)? = ContentRange(text) {
        promise(!range.isEmpty && range.lowerBound >= 0 && range.upperBound <= total ?? .max, "a range of the whole")
    }
    if let after = RetryAfter(text) { _ = after.seconds(after: HTTPDate(secondsSince1970: .min)) }
    if let number = StructuredField.integer(text) {
        promise(abs(number) <= StructuredField.largestInteger, "an integer of 15 digits")
    }
    _ = StructuredField.integers(text)
    if let boundary = try? MultipartBoundary(contentType: text) {
        promise(!boundary.description.isEmpty, "a boundary draws itself")
    }
}

private func fuzzSOCKS(_ bytes: [UInt8], rule: UInt8) {
    guard
        var handshake = try? SOCKSHandshake(
            rule & 1 == 0 ? .socks5 : .socks4a, to: SOCKSAddress(.name(Array("a.example".utf8)), port: 80),
            user: rule & 2 == 0 ? nil : "u")
    else { return }
    var rest = bytes[...]
    var output: [UInt8] = []
    do throws(WireViolation) {
        while case .needsBytes(let count) = handshake.next() {
            promise(count > 0 && count <= 512, "a few bytes, and some")
            handshake.send(into: &output)
            guard !rest.isEmpty else { return try handshake.receiveEnd() }
            let piece = rest.prefix(rule & 4 == 0 ? count : 1)
            rest = rest.dropFirst(piece.count)
            try handshake.receive(Array(piece))
        }
    } catch {
        promise(error.party == .remote, "what a proxy sends is no fault of ours")
    }
}
