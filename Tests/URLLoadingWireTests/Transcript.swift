// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// The result of a run of the codec, with the pieces of a body joined: independent of the cuts.
struct Transcript: Equatable, CustomStringConvertible {
    var lines: [String] = []
    var body: [UInt8] = []
    var violation: WireViolation.Code?
    var reuse = HTTP1Reuse.notYet

    var description: String {
        "\(lines) body \(String(decoding: body, as: UTF8.self)) violation \(violation?.rawValue ?? "-") reuse \(reuse)"
    }

    mutating func add(_ event: HTTP1Event, _ input: UnsafeRawBufferPointer) {
        switch event {
        case .request(let head):
            lines.append("request \(head.method) \(head.target) \(head.version) \(Self.text(head.headers))")
        case .informational(let head): lines.append("informational \(Self.text(head))")
        case .response(let head): lines.append("response \(Self.text(head))")
        case .upgraded(let head): lines.append("upgraded \(Self.text(head))")
        case .data(let range):
            #expect(range.lowerBound >= 0 && range.upperBound <= input.count && !range.isEmpty)
            body += input[range]
        case .end(let trailers): lines.append("end \(Self.text(trailers))")
        }
    }

    private static func text(_ head: HTTP1ResponseHead) -> String {
        "\(head.version) \(head.status.code) \(head.reason) \(text(head.headers))"
    }

    private static func text(_ headers: Headers) -> String {
        "[" + headers.map { "\($0.name): \($0.value)" }.joined(separator: "|") + "]"
    }
}

/// Feeds `pieces` to a codec as a connection does: unconsumed bytes stay in the buffer.
func run(_ codec: HTTP1Codec, _ pieces: [[UInt8]], end: Bool, stopAfterEnd: Bool = true) -> Transcript {
    var codec = codec
    var transcript = Transcript()
    var buffer: [UInt8] = []
    do throws(WireViolation) {
        for piece in pieces {
            buffer += piece
            while try step(&codec, &buffer, &transcript) {}
            #expect(buffer.count <= 70_000)
        }
        if end, let event = try codec.receiveEnd() {
            transcript.add(event, UnsafeRawBufferPointer(start: nil, count: 0))
        }
    } catch {
        transcript.violation = error.code
        #expect(codec.reuse == .never)
    }
    transcript.reuse = codec.reuse
    return transcript
}

private func step(
    _ codec: inout HTTP1Codec, _ buffer: inout [UInt8], _ transcript: inout Transcript
) throws(WireViolation) -> Bool {
    var consumed = 0
    let (bytes, more) = try buffer.withUnsafeBufferPointer { (input) throws(WireViolation) in
        let input = UnsafeRawBufferPointer(input)
        let event = try codec.next(input, consumed: &consumed)
        #expect(consumed >= 0 && consumed <= input.count)
        if let event { transcript.add(event, input) }
        return (consumed, event != nil)
    }
    buffer.removeFirst(bytes)
    return more
}

/// Runs `bytes` whole, byte by byte, and cut in two at every place; all results must be equal.
@discardableResult
func runAllSplits(
    _ codec: HTTP1Codec, _ bytes: [UInt8], end: Bool = false, sourceLocation: SourceLocation = #_sourceLocation
) -> Transcript {
    let whole = run(codec, [bytes], end: end)
    #expect(run(codec, bytes.map { [$0] }, end: end) == whole, "byte by byte", sourceLocation: sourceLocation)
    // Long samples differ only in length: a few hundred cuts suffice.
    let stride = max(1, bytes.count / 400)
    for cut in Swift.stride(from: 0, through: bytes.count, by: stride) {
        let pieces = [Array(bytes[..<cut]), Array(bytes[cut...])]
        #expect(run(codec, pieces, end: end) == whole, "cut at \(cut)", sourceLocation: sourceLocation)
    }
    return whole
}

/// A client codec that has sent a request.
func client(
    _ method: Method = .get, headers: Headers = [:], limits: HTTP1Limits = HTTP1Limits()
) throws -> HTTP1Codec {
    var codec = HTTP1Codec(role: .client, limits: limits)
    var output: [UInt8] = []
    try codec.sendRequest(
        method: method, target: Array("/".utf8), host: Array("h".utf8), headers: headers, framing: .none, into: &output)
    return codec
}

/// Returns the code of the violation that `body` throws.
func violation(_ body: () throws -> Void) -> WireViolation.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? WireViolation)?.code
    }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension HTTP1Codec {
    /// Returns the next event in `bytes`, for tests of single steps.
    mutating func next(_ bytes: [UInt8], _ consumed: inout Int) throws -> HTTP1Event? {
        try bytes.withUnsafeBufferPointer { (input) throws(WireViolation) in
            try next(UnsafeRawBufferPointer(input), consumed: &consumed)
        }
    }
}
