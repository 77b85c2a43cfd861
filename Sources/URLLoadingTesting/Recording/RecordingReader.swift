// SPDX-License-Identifier: Apache-2.0

// Reads the text of a recording line by line. The functions follow the grammar: each one consumes its own lines, and
// reports the first unexpected one.

import FoundationEssentials
import URLLoadingWire

extension Recording {
    /// Reads the text of a file.
    /// - Throws: ``RecordingError`` with the line number.
    public init(text: some Sequence<UInt8>) throws(RecordingError) {
        var reader = try RecordingReader(Array(text))
        self.init(try reader.exchanges())
    }

    /// Reads the text of a file.
    /// - Throws: ``RecordingError`` with the line number.
    public init(text: String) throws(RecordingError) { try self.init(text: text.utf8) }
}

struct RecordingReader {
    /// A line split into its first word or mark and the rest.
    struct Line {
        let number: Int
        let word: String
        let rest: ArraySlice<UInt8>
    }
    private var lines: ArraySlice<Line>
    private let last: Int

    init(_ text: [UInt8]) throws(RecordingError) {
        var rest = text[...]
        if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
        guard text.last == 0x0A else {
            throw RecordingError(line: max(1, text.count { $0 == 0x0A } + 1), problem: "the file ends within a line")
        }
        // The last line feed ends a line and begins none.
        let split = rest.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false)
        last = split.count
        // The writer always escapes carriage returns, so these come from an editor.
        let plain = split.map { $0.last == 0x0D ? $0.dropLast() : $0 }
        let known = [Recording.firstLine, Recording.firstLineWithTokens]
        guard let first = plain.first, known.contains(where: { first.elementsEqual($0.utf8) }) else {
            throw RecordingError(line: 1, problem: "not \"\(Recording.firstLine)\", or 2")
        }
        lines = plain.enumerated().dropFirst().compactMap { Line(number: $0.offset + 1, $0.element) }[...]
    }

    mutating func exchanges() throws(RecordingError) -> [Recording.Exchange] {
        var exchanges: [Recording.Exchange] = []
        while let line = lines.first { exchanges.append(try exchange(line.number)) }
        return exchanges
    }

    // MARK: Productions

    private mutating func exchange(_ start: Int) throws(RecordingError) -> Recording.Exchange {
        let line = try take("request")
        var words = Words(line)
        let began = try words.takeMoment(or: .zero)
        let (method, url) = try words.target()
        try words.end()
        var exchange = Recording.Exchange(method, url, headers: try fields(">"), began: began)
        if next == "body" { exchange.body = try requestBody() }
        if next == "answer" { exchange.answer = try answer(began) }
        guard let ending = try ending(exchange.answer?.pieces.last?.at ?? exchange.answer?.at ?? began) else {
            throw failure("not how the exchange of line \(start) ended")
        }
        exchange.ending = ending
        return exchange
    }

    private mutating func requestBody() throws(RecordingError) -> Recording.RequestBytes {
        try Words(take("body")).end()
        let bytes = try content()
        guard next == "cut" else { return Recording.RequestBytes(bytes) }
        var words = Words(try take("cut"))
        guard let count = words.take().flatMap({ Int64($0) }), count > bytes.count,
            let digest = words.take().flatMap({ UInt64($0, radix: 16) })
        else { throw words.failure("not a length and a digest") }
        try words.end()
        return Recording.RequestBytes(bytes, of: BodySum(count: count, digest: digest))
    }

    private mutating func answer(_ began: Duration) throws(RecordingError) -> Recording.Response {
        var words = Words(try take("answer"))
        var answer = Recording.Response(nil, at: try words.takeMoment(or: began))
        if let head = try words.head() { answer.http = head }
        try words.end()
        answer.http?.headers = try fields("<")
        if next == "url" { answer.url = try oneValue("a URL") { URL(string: $0) } }
        if next == "type" { answer.mediaType = try oneValue("a media type") { MediaType($0) } }
        if next == "length" {
            answer.expectedLength = try oneValue("a length") { Int64($0).flatMap { $0 < 0 ? nil : $0 } }
        }
        if next == "redirect" {
            var words = Words(try take("redirect"))
            let (method, url) = try words.target()
            try words.end()
            answer.redirect = Recording.Redirect(method: method, url: url)
        }
        if next == "token" { answer.refusedToken = try oneValue("a token's number") { UInt32($0).map(Int.init) } }
        while next == "piece" { answer.pieces.append(try piece(answer.pieces.last?.at ?? answer.at)) }
        if next == "cut" { answer.fullLength = try oneValue("a length") { Int64($0) } }
        answer.trailers = try fields("trailer")
        return answer
    }

    private mutating func piece(_ before: Duration) throws(RecordingError) -> Recording.Piece {
        var words = Words(try take("piece"))
        let moment = try words.takeMoment(or: before)
        try words.end()
        let bytes = try content()
        guard !bytes.isEmpty else { throw failure("no bytes of a piece") }
        return Recording.Piece(bytes, at: moment)
    }

    /// Reads an ending; `nil` if the next line is not one.
    private mutating func ending(_ before: Duration) throws(RecordingError) -> Recording.Ending? {
        switch next {
        case "end":
            var words = Words(try take("end"))
            let moment = try words.takeMoment(or: before)
            try words.end()
            return .complete(at: moment)
        case "open":
            try Words(take("open")).end()
            return .open
        case "failed":
            var words = Words(try take("failed"))
            let failure = try words.failed()
            let moment = try words.takeLeadingMoment(or: before)
            return .failed(try words.detailed(failure), at: moment)
        default: return nil
        }
    }

    private mutating func fields(_ mark: String) throws(RecordingError) -> Headers {
        var headers = Headers()
        while next == mark {
            let line = try take(mark)
            guard let colon = line.rest.firstIndex(of: UInt8(ascii: ":")),
                let name = EscapedText.bytes(line.rest[..<colon]),
                let value = EscapedText.bytes(line.rest[(colon + 1)...].drop { $0 == 0x20 })
            else { throw RecordingError(line: line.number, problem: "not a field") }
            name.withUnsafeBytes { name in value.withUnsafeBytes { headers.appendRaw(name: name, value: $0) } }
        }
        return headers
    }

    private mutating func content() throws(RecordingError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let line = lines.first, let mark = line.word.utf8.first, "|+=".utf8.contains(mark) {
            guard let more = EscapedText.content(mark: mark, line.rest) else { throw failure("damaged bytes") }
            bytes += more
            lines.removeFirst()
        }
        return bytes
    }

    private mutating func oneValue<R>(_ what: String, _ parse: (String) -> R?) throws(RecordingError) -> R {
        let line = lines.removeFirst()
        guard let value = parse(String(decoding: line.rest, as: UTF8.self)) else {
            throw RecordingError(line: line.number, problem: "not \(what)")
        }
        return value
    }

    // MARK: Lines

    private var next: String? { lines.first?.word }

    private mutating func take(_ word: String) throws(RecordingError) -> Line {
        guard next == word, let line = lines.popFirst() else { throw failure("not \"\(word)\"") }
        return line
    }

    /// Returns an error for the next line, or for the end of the file.
    private func failure(_ problem: String) -> RecordingError {
        guard let line = lines.first else {
            return RecordingError(line: last, problem: "the file ends here: \(problem)")
        }
        return RecordingError(line: line.number, problem: "\"\(line.word)\": \(problem)")
    }
}

extension RecordingReader.Line {
    /// Parses a line; `nil` for an empty line or a comment.
    fileprivate init?(number: Int, _ bytes: ArraySlice<UInt8>) {
        guard let first = bytes.first, first != UInt8(ascii: "#") else { return nil }
        self.number = number
        if "|+=<>".utf8.contains(first) {
            word = String(UnicodeScalar(first))
            let rest = bytes.dropFirst()
            self.rest = rest.first == 0x20 ? rest.dropFirst() : rest
        } else {
            word = String(decoding: bytes.prefix { $0 != 0x20 }, as: UTF8.self)
            rest = bytes.drop { $0 != 0x20 }.dropFirst()
        }
    }
}
