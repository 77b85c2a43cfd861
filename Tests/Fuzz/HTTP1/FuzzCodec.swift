// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// The result of a run, which must not depend on how the input was split.
private struct Outcome: Equatable {
    var heads: [HTTP1Event] = []
    var body: [UInt8] = []
    var violation: WireViolation.Code?
    var end: WireViolation.Code?
    var reuse = HTTP1Reuse.notYet
}

func fuzzCodec(_ role: HTTP1Codec.Role, method: Method, _ bytes: [UInt8], rule: UInt8) {
    check(bytes, rule) { run(role, method, bytes, sizes: $0) }
    guard role == .client else { return }
    check(bytes, rule) { run(role, method, bytes, isTolerant: true, sizes: $0) }
    let (strict, tolerant) = (
        run(role, method, bytes, sizes: [bytes.count]), run(role, method, bytes, isTolerant: true, sizes: [bytes.count])
    )
    promise(strict.violation != nil || strict == tolerant, "a tolerant client reads as a strict one what both accept")
}

private func check(_ bytes: [UInt8], _ rule: UInt8, _ run: ([Int]) -> Outcome) {
    let whole = run([bytes.count])
    promise(run([1]) == whole, "byte by byte gives the same")
    promise(run([Int(rule % 16) + 1, Int(rule / 16) + 1]) == whole, "any cut gives the same")
}

private func run(
    _ role: HTTP1Codec.Role, _ method: Method, _ bytes: [UInt8], isTolerant: Bool = false, sizes: [Int]
) -> Outcome {
    var limits = HTTP1Limits()
    limits.headSize = 512
    limits.fieldCount = 12
    limits.chunkExtensionSize = 24
    limits.trailerSize = 128
    limits.informationalCount = 3
    var codec = HTTP1Codec(role: role, limits: limits, isTolerant: isTolerant)
    var outcome = Outcome()
    var buffer: [UInt8] = []
    var sent = 0
    var turn = 0
    do throws(WireViolation) {
        if role == .client { try ask(&codec, method) }
        while sent < bytes.count {
            let size = max(1, min(sizes[turn % sizes.count], bytes.count - sent))
            turn += 1
            buffer += bytes[sent..<sent + size]
            sent += size
            while try step(&codec, &buffer, &outcome) {}
            promise(
                buffer.count <= 1024 || codec.isReceiveComplete || codec.reuse == .never || size > 512,
                "memory is bounded")
        }
    } catch {
        outcome.violation = error.code
        promise(codec.reuse == .never, "nothing goes on after a violation")
    }
    do throws(WireViolation) {
        if let event = try codec.receiveEnd() { outcome.heads.append(event) }
    } catch {
        outcome.end = error.code
    }
    outcome.reuse = codec.reuse
    return outcome
}

private func ask(_ codec: inout HTTP1Codec, _ method: Method) throws(WireViolation) {
    var output: [UInt8] = []
    try codec.sendRequest(
        method: method, target: Array("/".utf8), host: Array("h".utf8),
        headers: [.connection: "upgrade", .upgrade: "x"], framing: .none, into: &output)
}

private func step(
    _ codec: inout HTTP1Codec, _ buffer: inout [UInt8], _ outcome: inout Outcome
) throws(WireViolation) -> Bool {
    var consumed = 0
    let event = try buffer.withUnsafeBufferPointer { (input) throws(WireViolation) in
        try codec.next(UnsafeRawBufferPointer(input), consumed: &consumed)
    }
    promise(consumed >= 0 && consumed <= buffer.count, "consumed lies in the input")
    if case .data(let range) = event {
        promise(!range.isEmpty && range.upperBound <= buffer.count, "a range lies in the input")
        outcome.body += buffer[range]
    } else if let event {
        look(at: event)
        outcome.heads.append(event)
    }
    buffer.removeFirst(consumed)
    return event != nil
}

/// Touches everything a head can be asked for.
private func look(at event: HTTP1Event) {
    switch event {
    case .request(let head): look(at: head.headers)
    case .response(let head), .informational(let head), .upgraded(let head): look(at: head.headers)
    case .end(let trailers): look(at: trailers)
    case .data: break
    }
}

private func look(at headers: Headers) {
    var copy = Headers()
    for field in headers {
        promise(field.name.isValid, "received names are tokens")
        promise(headers.contains(field.name), "a name is found")
        _ = headers[field.name]
        copy.append(field.name, field.value)
    }
    promise(copy.count == headers.count, "fields can be copied")
    _ = headers.description
    _ = headers.hashValue
}
