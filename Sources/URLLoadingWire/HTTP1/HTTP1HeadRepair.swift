// SPDX-License-Identifier: Apache-2.0

// Rewrites the head of a response that breaks the grammar and has one reading by the precedence of the RFCs. The result
// is a head without faults, which the same parser reads as any other: there is one parser, and this is a step before it
// that a clean response never takes. docs/decisions/0018-tolerant-reading.md has the table.

/// A repaired head, and what was wrong with it.
struct HTTP1HeadRepair {
    private(set) var bytes: [UInt8] = []
    /// Each kind of fault once.
    private(set) var violations: [WireViolation] = []

    private let input: UnsafeRawBufferPointer
    private var fields: [Field] = []

    /// The line before the current one, which a continuation belongs to.
    private enum Line { case none, status, field, leftOut }

    private struct Field {
        var name: [UInt8]
        var value: [UInt8]

        func isNamed(_ known: StaticString) -> Bool { name.withUnsafeBytes { $0.matches(known, in: 0..<$0.count) } }
        /// A field whose value must be free of faults: it frames the message, or leads elsewhere.
        var isStrict: Bool {
            isNamed("content-length") || isNamed("transfer-encoding") || isNamed("connection") || isNamed("upgrade")
                || isNamed("location")
        }
    }

    /// Whether a repair can remove the fault.
    static func isRepairable(_ code: WireViolation.Code) -> Bool {
        switch code {
        case .whitespaceBeforeColon, .malformedFieldName, .malformedFieldValue, .malformedStatusLine, .bareLineFeed,
            .obsoleteFolding, .transferEncodingWithContentLength, .unsupportedTransferEncoding,
            .transferEncodingInOldVersion:
            true
        default: false
        }
    }

    /// - Parameter head: a whole head, with the empty line at its end.
    /// - Throws: a violation that leaves no reading.
    init(_ head: UnsafeRawBufferPointer) throws(WireViolation) {
        input = head
        var start = 0
        var previous = Line.none
        while let line = try nextLine(&start), !line.isEmpty {
            switch previous {
            case .none:
                copyStatusLine(line)
                previous = .status
            case .status where input[line.lowerBound].isBlank: note(.obsoleteFolding, "RFC 9112 2.2")
            case .field where input[line.lowerBound].isBlank: try unfold(line)
            case .leftOut where input[line.lowerBound].isBlank: break
            case .status, .field, .leftOut: previous = try addField(line) ? .field : .leftOut
            }
        }
        for index in fields.indices { try cleanValue(index) }
        fields.removeAll { $0.isNamed("set-cookie") && $0.value.contains(0) }
        repairFraming()
        for field in fields { bytes += field.name + [UInt8(ascii: ":"), 0x20] + field.value + [.cr, .lf] }
        bytes += [.cr, .lf]
    }

    /// Whether the chunks of a message of HTTP/1.0 are to be read as those of HTTP/1.1.
    var readsChunksOfOldVersion: Bool { violations.contains { $0.code == .transferEncodingInOldVersion } }

    private mutating func note(_ code: WireViolation.Code, _ section: String) {
        let violation = WireViolation.remote(code, section)
        if !violations.contains(violation) { violations.append(violation) }
    }

    // MARK: Lines

    /// Returns the next line without its end; an LF alone is one (RFC 9112 §2.2).
    private mutating func nextLine(_ start: inout Int) throws(WireViolation) -> Range<Int>? {
        guard start < input.count else { return nil }
        let feed = input.firstLineFeed(from: start, to: input.count)
        var end = feed
        if feed > start, input[feed - 1] == .cr { end -= 1 } else { note(.bareLineFeed, "RFC 9112 2.2") }
        // Some recipients end a line at a CR alone, others do not.
        if let carriageReturn = input[start..<end].firstIndex(of: .cr) {
            throw .remote(.malformedFieldValue, at: carriageReturn, "RFC 9112 2.2")
        }
        defer { start = feed + 1 }
        return start..<end
    }

    /// Writes the status line with one space after the version, and a reason phrase without control characters.
    private mutating func copyStatusLine(_ line: Range<Int>) {
        let version = line.prefix(8)
        let rest = line.dropFirst(8).drop { input[$0].isBlank }
        var text = Array(input[version.startIndex..<version.endIndex])
        if rest.startIndex > version.endIndex { text.append(0x20) }
        // The status itself is left to the parser.
        for (place, index) in rest.enumerated() {
            let isReplaced = place == 3 ? input[index] == 0x09 : place > 3 && Self.replacesControl(input[index])
            text.append(isReplaced ? 0x20 : input[index])
        }
        if !text.elementsEqual(input[line]) { note(.malformedStatusLine, "RFC 9112 4") }
        bytes += text + [.cr, .lf]
    }

    /// Adds a field. Returns false if the line is left out: its name is no token, and a name that is repaired by a
    /// guess could be another field's (RFC 9110 §5.1).
    private mutating func addField(_ line: Range<Int>) throws(WireViolation) -> Bool {
        guard let colon = input[line].firstIndex(of: UInt8(ascii: ":")) else {
            note(.malformedFieldName, "RFC 9112 5")
            return false
        }
        var end = colon
        while end > line.lowerBound, input[end - 1].isBlank { end -= 1 }
        let name = line.lowerBound..<end
        guard !name.isEmpty, name.allSatisfy({ ByteSet.token.contains(input[$0]) }) else {
            // Some recipients drop bytes such as NUL, and would find the field that frames the message.
            let rest = Field(name: input[name].filter { ByteSet.token.contains($0) }, value: [])
            guard !rest.isStrict else { throw .remote(.malformedFieldName, at: line.lowerBound, "RFC 9110 5.1") }
            note(.malformedFieldName, "RFC 9110 5.1")
            return false
        }
        if end < colon { note(.whitespaceBeforeColon, "RFC 9112 5.1") }
        fields.append(
            Field(name: Array(input[name]), value: Array(input[input.trimmed(colon + 1..<line.upperBound)])))
        return true
    }

    /// Joins a continued line with its field (RFC 9112 §5.2).
    private mutating func unfold(_ line: Range<Int>) throws(WireViolation) {
        let value = input.trimmed(line)
        guard let last = fields.indices.last else { return }
        guard !fields[last].isStrict else { throw .remote(.obsoleteFolding, at: line.lowerBound, "RFC 9112 5.2") }
        guard !value.isEmpty else { return }
        if !fields[last].value.isEmpty { fields[last].value.append(0x20) }
        fields[last].value += input[value]
    }

    /// Puts a space in the place of each control character (RFC 9110 §5.5). A cookie with one is left out: with NUL
    /// here, with any other by the parser.
    private mutating func cleanValue(_ index: Int) throws(WireViolation) {
        guard fields[index].value.contains(where: Self.replacesControl) else { return }
        guard !fields[index].isStrict else { throw .remote(.malformedFieldValue, "RFC 9110 5.5") }
        note(.malformedFieldValue, "RFC 9110 5.5")
        guard !fields[index].isNamed("set-cookie") else { return }
        let spaced = fields[index].value.map { Self.replacesControl($0) ? 0x20 : $0 }
        fields[index].value = spaced.withUnsafeBytes { Array($0[$0.trimmed(0..<$0.count)]) }
    }

    private static func replacesControl(_ byte: UInt8) -> Bool { (byte < 0x20 && byte != 0x09) || byte == 0x7f }

    // MARK: Framing (RFC 9112 §6)

    private mutating func repairFraming() {
        let codings = fields.indices.filter { fields[$0].isNamed("transfer-encoding") }
        guard let place = codings.first else { return }
        var (chunked, identity, others, endsChunked) = (0, 0, 0, true)
        for index in codings {
            fields[index].value.withUnsafeBytes { value in
                forEachListElement(of: value) { element in
                    endsChunked = value.matches("chunked", in: element)
                    if endsChunked {
                        chunked += 1
                    } else if value.matches("identity", in: element) {
                        identity += 1
                    } else {
                        others += 1
                    }
                }
            }
        }
        // The end of a body in another coding, or in one after `chunked`, is not known: the parser refuses it.
        guard others == 0, chunked == 0 || endsChunked else { return }
        if chunked != 1 || identity > 0 { note(.unsupportedTransferEncoding, "RFC 9112 6.1") }
        if chunked > 0 {
            fields[place] = Field(name: Array("Transfer-Encoding".utf8), value: Array("chunked".utf8))
            if fields.contains(where: { $0.isNamed("content-length") }) {
                note(.transferEncodingWithContentLength, "RFC 9112 6.3")
            }
            if bytes.starts(with: "HTTP/1.0".utf8) { note(.transferEncodingInOldVersion, "RFC 9112 6.1") }
        }
        let kept = chunked > 0 ? place : nil
        let indices = fields.indices.filter { index in
            guard index != kept else { return true }
            return !fields[index].isNamed("transfer-encoding")
                && !(chunked > 0 && fields[index].isNamed("content-length"))
        }
        fields = indices.map { fields[$0] }
    }
}
