// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// The result of a run of the reader, with the pieces of each part joined: independent of the cuts.
struct MultipartTranscript: Equatable, CustomStringConvertible {
    struct Part: Equatable {
        var fields: String
        var content: [UInt8] = []
        var isComplete = false
    }

    var parts: [Part] = []
    var isEnded = false
    var violation: WireViolation.Code?
    /// The violation thrown by `receiveEnd`.
    var end: WireViolation.Code?

    /// The content of each part, with "…" after an incomplete one.
    var contents: [String] { parts.map { String(decoding: $0.content, as: UTF8.self) + ($0.isComplete ? "" : "…") } }
    var fields: [String] { parts.map(\.fields) }

    var description: String {
        "\(fields) \(contents) ended \(isEnded) violation \(violation?.rawValue ?? "-") end \(end?.rawValue ?? "-")"
    }

    mutating func add(_ event: MultipartEvent, _ input: UnsafeRawBufferPointer) {
        switch event {
        case .part(let headers):
            #expect(parts.last?.isComplete != false && !isEnded)
            parts.append(Part(fields: headers.map { "\($0.name): \($0.value)" }.joined(separator: "|")))
        case .data(let range):
            #expect(range.lowerBound >= 0 && range.upperBound <= input.count && !range.isEmpty)
            guard !parts.isEmpty, parts.last?.isComplete == false else {
                return #expect(Bool(false), "data outside of a part")
            }
            parts[parts.count - 1].content += input[range]
        case .partEnd:
            guard !parts.isEmpty, parts.last?.isComplete == false else {
                return #expect(Bool(false), "an end without a part")
            }
            parts[parts.count - 1].isComplete = true
        case .end:
            #expect(!isEnded)
            isEnded = true
        }
    }
}

/// Feeds `pieces` as they arrive: unconsumed bytes stay in the buffer, which must stay small.
func run(_ reader: MultipartReader, _ pieces: some Sequence<ArraySlice<UInt8>>, held: Int) -> MultipartTranscript {
    var reader = reader
    var transcript = MultipartTranscript()
    var buffer: [UInt8] = []
    do throws(WireViolation) {
        for piece in pieces {
            buffer += piece
            while try step(&reader, &buffer, &transcript) {}
            #expect(buffer.count <= held)
        }
    } catch {
        transcript.violation = error.code
        #expect(violation { _ = try reader.next([], 0) } == .illegalState)
    }
    transcript.end = violation { try reader.receiveEnd() }
    return transcript
}

private func step(
    _ reader: inout MultipartReader, _ buffer: inout [UInt8], _ transcript: inout MultipartTranscript
) throws(WireViolation) -> Bool {
    var consumed = 0
    let event = try buffer.withUnsafeBufferPointer { (input) throws(WireViolation) in
        let input = UnsafeRawBufferPointer(input)
        let event = try reader.next(input, consumed: &consumed)
        #expect(consumed >= 0 && consumed <= input.count)
        if let event { transcript.add(event, input) }
        return event
    }
    buffer.removeFirst(consumed)
    return event != nil
}

/// Runs `body` whole, byte by byte, and cut in two and in three at every place; all results must be equal.
@discardableResult
func readAllSplits(
    _ body: [UInt8], boundary: String = "b", limits: MultipartLimits = MultipartLimits(), held: Int = 16 * 1024,
    sourceLocation: SourceLocation = #_sourceLocation
) throws -> MultipartTranscript {
    let boundary = try MultipartBoundary(contentType: "multipart/mixed; boundary=\"\(boundary)\"")
    let reader = MultipartReader(boundary: boundary, limits: limits)
    let whole = run(reader, [body[...]], held: held)
    #expect(
        run(reader, body.indices.map { body[$0...$0] }, held: held) == whole, "byte by byte",
        sourceLocation: sourceLocation)
    let stride = max(1, body.count / 300)
    for cut in Swift.stride(from: 0, through: body.count, by: stride) {
        #expect(
            run(reader, [body[..<cut], body[cut...]], held: held) == whole, "cut at \(cut)",
            sourceLocation: sourceLocation)
        let next = min(body.count, cut + 1 + cut % 5)
        let pieces = [body[..<cut], body[cut..<next], body[next...]]
        #expect(run(reader, pieces, held: held) == whole, "cut at \(cut) and \(next)", sourceLocation: sourceLocation)
    }
    return whole
}

extension MultipartReader {
    mutating func next(_ bytes: [UInt8], _ ignored: Int) throws(WireViolation) -> MultipartEvent? {
        var consumed = 0
        return try bytes.withUnsafeBufferPointer { (input) throws(WireViolation) in
            try next(UnsafeRawBufferPointer(input), consumed: &consumed)
        }
    }
}
