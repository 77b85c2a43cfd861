// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// The result of a run, which must not depend on how the input was split.
private struct Outcome: Equatable {
    /// Of each stream in their order; between streams it depends on when the output is taken.
    var events: [Int32: [HTTP2Event]] = [:]
    var bodies: [Int32: [UInt8]] = [:]
    var violation: WireViolation.Code?
}

/// A server that sends anything: as bytes, or, so that it comes further, as frames made of them.
func fuzzHTTP2(_ bytes: [UInt8], rule: UInt8) {
    let wire = [0, 0, 0, 4, 0, 0, 0, 0, 0] + (rule & 1 == 0 ? bytes : frames(of: bytes))
    for isTolerant in [false, true] {
        let whole = run(wire, isTolerant, sizes: [wire.count])
        promise(same(run(wire, isTolerant, sizes: [1]), whole), "byte by byte gives the same")
        let cut = run(wire, isTolerant, sizes: [Int(rule / 2 % 16) + 1, Int(rule / 32) * 7 + 1])
        promise(same(cut, whole), "any cut gives the same")
    }
}

/// How far a connection came before it failed depends on the cut: the reset of a stream has gone out by then or has
/// not, the first part of a frame has been given on or has not, and a flood may follow what was wrong before. What
/// comes on a stream that we have broken off is ignored once our reset is out, and may end the connection before.
private func same(_ one: Outcome, _ other: Outcome) -> Bool {
    if one.hasBroken || other.hasBroken { return true }
    return (one.violation == nil) == (other.violation == nil) && (one.violation != nil || one == other)
}

extension Outcome {
    fileprivate var hasBroken: Bool {
        events.contains { stream, events in events.contains { $0 == .unprocessed(stream) } }
    }
}

/// A kind, flags, a stream and a length of each few bytes.
private func frames(of bytes: [UInt8]) -> [UInt8] {
    var wire: [UInt8] = []
    var rest = bytes[...]
    while let first = rest.popFirst() {
        let flags = rest.popFirst() ?? 0
        let length = min(Int(rest.popFirst() ?? 0), max(0, rest.count))
        // Streams 0 to 5: two of them are ours, one is the server's, two are idle.
        wire += [0, UInt8(length >> 8), UInt8(length & 255), first % 12, flags, 0, 0, 0, first / 12 % 6]
        wire += rest.prefix(length)
        rest = rest.dropFirst(length)
    }
    return wire
}

private func run(_ wire: [UInt8], _ isTolerant: Bool, sizes: [Int]) -> Outcome {
    var limits = HTTP2Limits()
    limits.headSize = 2_048
    limits.fieldCount = 12
    limits.informationalCount = 3
    limits.continuationCount = 4
    limits.idleFrameCount = 20
    var outcome = Outcome()
    guard let codec = try? HTTP2Codec(limits: limits, isTolerant: isTolerant), ask(codec) else { return outcome }
    var output: [UInt8] = []
    codec.takeOutput(into: &output, upTo: .max)
    note(codec, [], &outcome)
    var buffer: [UInt8] = []
    var sent = 0
    var turn = 0
    while sent < wire.count, outcome.violation == nil {
        let size = max(1, min(sizes[turn % sizes.count], wire.count - sent))
        turn += 1
        buffer += wire[sent..<sent + size]
        sent += size
        let consumed = buffer.withUnsafeBytes { codec.receive($0) }
        promise(consumed >= 0 && consumed <= buffer.count, "consumed lies in the input")
        note(codec, buffer, &outcome)
        buffer.removeFirst(consumed)
        promise(buffer.count < 9 + 16_384, "less than a frame is left")
        codec.takeOutput(into: &output, upTo: .max)
        note(codec, [], &outcome)
    }
    promise(isFrames(output[24...]), "what we send is frames")
    return outcome
}

private func ask(_ codec: HTTP2Codec) -> Bool {
    for hasBody in [false, true] {
        let request = HTTP2Request(
            method: hasBody ? .post : .get, scheme: "https", authority: Array("h".utf8), path: Array("/".utf8),
            framing: hasBody ? .chunked : .none)
        guard let stream = try? codec.submit(request, hasBody: hasBody) else { return false }
        if hasBody { [UInt8](repeating: 1, count: 100_000).withUnsafeBytes { codec.send($0, on: stream) } }
    }
    return true
}

private func note(_ codec: HTTP2Codec, _ input: [UInt8], _ outcome: inout Outcome) {
    for event in codec.takeEvents() {
        switch event {
        case .data(let stream, let range):
            promise(
                !range.isEmpty && range.lowerBound >= 0 && range.upperBound <= input.count, "a range lies in the input")
            promise(hasHead(stream, outcome), "a head comes before its body")
            outcome.bodies[stream, default: []] += input[range]
            codec.arrived(range.count)
            codec.consumed(range.count, on: stream)
        // How much goes into a frame depends on when it is asked for.
        case .sent, .sentAll: break
        case .failed(let violation): outcome.violation = outcome.violation ?? violation.code
        case .end(let stream, _):
            promise(hasHead(stream, outcome), "a head comes before its end")
            promise(!hasEnded(stream, outcome), "a stream ends once")
            outcome.events[stream, default: []].append(event)
        case .response(let stream, _):
            promise(!hasHead(stream, outcome) && !hasEnded(stream, outcome), "one head")
            outcome.events[stream, default: []].append(event)
        case .informational(let stream, _):
            outcome.events[stream, default: []].append(event)
        // Either side may have ended it first, depending on when our reset is sent.
        case .reset(let stream, _), .violation(let stream, _), .unprocessed(let stream):
            // After a complete response, a reset concerns only the rest of the request body.
            promise(outcome.events[stream]?.last != .unprocessed(stream), "a stream is broken off once")
            outcome.events[stream, default: []].append(.unprocessed(stream))
        case .concurrency, .settingsAcknowledged, .pong, .goAway: outcome.events[0, default: []].append(event)
        }
    }
}

private func hasHead(_ stream: Int32, _ outcome: Outcome) -> Bool {
    outcome.events[stream, default: []].contains { if case .response(stream, _) = $0 { true } else { false } }
}

private func hasEnded(_ stream: Int32, _ outcome: Outcome) -> Bool {
    outcome.events[stream, default: []].contains { event in
        switch event {
        case .end(stream, _), .reset(stream, _), .violation(stream, _), .unprocessed(stream): true
        default: false
        }
    }
}

private func isFrames(_ bytes: ArraySlice<UInt8>) -> Bool {
    var rest = bytes
    while rest.count >= 9 {
        let head = rest.prefix(3).map { Int($0) }
        let size = 9 + (head[0] << 16 | head[1] << 8 | head[2])
        guard rest.count >= size else { return false }
        rest = rest.dropFirst(size)
    }
    return rest.isEmpty
}
