// SPDX-License-Identifier: Apache-2.0

// Writes a recording as text. Keep it consistent with `RecordingReader` and docs/guides/testing.md; a change that an
// older reader cannot read requires a new version.

import FoundationEssentials
import URLLoading
import URLLoadingWire

extension Recording: CustomStringConvertible {
    static let firstLine = "urlloading recording 1"
    /// The first line of a recording with refused tokens, which a reader of version 1 would not understand.
    static let firstLineWithTokens = "urlloading recording 2"

    /// The text of the recording's file.
    public var description: String {
        let hasTokens = exchanges.contains { $0.answer?.refusedToken != nil }
        return ([hasTokens ? Self.firstLineWithTokens : Self.firstLine] + exchanges.flatMap { ["", $0.description] })
            .joined(separator: "\n") + "\n"
    }
}

extension Recording.Exchange: CustomStringConvertible {
    /// The exchange's part of the file.
    public var description: String {
        var lines = ["request \(method.word) \(url.absoluteString) at \(began.milliseconds)"]
        lines += headers.lines("> ")
        if let body {
            lines.append("body")
            lines += EscapedText.content(body.bytes)
            if let whole = body.whole { lines.append("cut \(whole.count) \(String(whole.digest, radix: 16))") }
        }
        lines += answer?.lines ?? []
        lines.append(ending.line)
        return lines.joined(separator: "\n")
    }
}

extension Recording.Response {
    fileprivate var lines: [String] {
        let words = http.map { "answer \($0.status.code) \($0.version)" } ?? "answer"
        var lines = ["\(words) at \(at.milliseconds)"]
        lines += http?.headers.lines("< ") ?? []
        if let url { lines.append("url \(url.absoluteString)") }
        if let mediaType { lines.append("type \(mediaType)") }
        if let expectedLength { lines.append("length \(expectedLength)") }
        if let redirect { lines.append("redirect \(redirect.method.word) \(redirect.url.absoluteString)") }
        if let refusedToken { lines.append("token \(refusedToken)") }
        for piece in pieces { lines += ["piece at \(piece.at.milliseconds)"] + EscapedText.content(piece.bytes) }
        if let fullLength { lines.append("cut \(fullLength)") }
        lines += trailers.lines("trailer ")
        return lines
    }
}

extension Recording.Ending {
    fileprivate var line: String {
        switch self {
        case .complete(let moment): return "end at \(moment.milliseconds)"
        case .open: return "open"
        case .failed(let failure, let moment):
            let words =
                "failed \(failure.reason.name) \(failure.reason.code) \(failure.phase) \(failure.party) "
                + "at \(moment.milliseconds)"
            guard let detail = failure.detail else { return words }
            return "\(words) \(EscapedText.line(detail.utf8).text)"
        }
    }
}

extension Headers {
    fileprivate func lines(_ mark: String) -> [String] {
        indices.map { index in
            withField(at: index) { name, value in
                let name = EscapedText.line(name, alsoEscaping: [0x20, UInt8(ascii: ":")]).text
                return value.isEmpty ? "\(mark)\(name):" : "\(mark)\(name): \(EscapedText.line(value).text)"
            }
        }
    }
}

extension Method {
    /// The method as a single word, with blanks escaped.
    fileprivate var word: String { EscapedText.line(rawValue.utf8, alsoEscaping: [0x20]).text }
}

extension Duration {
    /// The duration in milliseconds with at most three decimals: `12`, `0.25`.
    var milliseconds: String {
        let microseconds = inNanoseconds / 1_000
        let fraction = microseconds % 1_000
        guard fraction > 0 else { return "\(microseconds / 1_000)" }
        let digits = String(String(1_000 + fraction).dropFirst())
        let kept = digits.reversed().drop { $0 == "0" }.reversed()
        return "\(microseconds / 1_000).\(String(kept))"
    }
}
