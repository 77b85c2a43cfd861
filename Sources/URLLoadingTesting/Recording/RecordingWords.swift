// SPDX-License-Identifier: Apache-2.0

// The words of one line of a recording.

import FoundationEssentials
import URLLoading
import URLLoadingWire

struct Words {
    private let number: Int
    private var words: ArraySlice<Substring>

    init(_ line: RecordingReader.Line) {
        number = line.number
        words = String(decoding: line.rest, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)[...]
    }

    func failure(_ problem: String) -> RecordingError { RecordingError(line: number, problem: problem) }

    mutating func take() -> String? { words.popFirst().map { String($0) } }

    func end() throws(RecordingError) {
        guard words.allSatisfy(\.isEmpty) else { throw failure("\"\(words.joined(separator: " "))\" is too much") }
    }

    /// Reads `at 12.5` at the end of the line, which a manually written line may omit.
    mutating func takeMoment(or other: Duration) throws(RecordingError) -> Duration {
        guard words.count >= 2, words[words.endIndex - 2] == "at" else { return other }
        let moment = try Self.moment(words.removeLast(), number)
        words.removeLast()
        return moment
    }

    /// Reads `at 12.5` where more words may follow.
    mutating func takeLeadingMoment(or other: Duration) throws(RecordingError) -> Duration {
        guard words.first == "at", words.count >= 2 else { return other }
        words.removeFirst()
        return try Self.moment(words.removeFirst(), number)
    }

    private static func moment(_ text: Substring, _ line: Int) throws(RecordingError) -> Duration {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2,
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.count <= 15 && $0.utf8.allSatisfy { (48...57).contains($0) } }),
            let whole = Int64(parts[0]), let fraction = Int64((parts.dropFirst().first ?? "0").prefix(3))
        else { throw RecordingError(line: line, problem: "not a number of milliseconds: \(text)") }
        let digits = parts.dropFirst().first.map { min($0.utf8.count, 3) } ?? 1
        return .milliseconds(whole) + .microseconds(fraction * [1_000, 100, 10, 1][digits])
    }

    mutating func target() throws(RecordingError) -> (Method, URL) {
        guard let method = take().flatMap({ EscapedText.bytes($0.utf8) }), let text = take() else {
            throw failure("not a method and a URL")
        }
        guard let url = URL(string: text) else { throw failure("not a URL: \(text)") }
        return (Method(String(decoding: method, as: UTF8.self)), url)
    }

    /// Reads status and version; `nil` if both are absent.
    mutating func head() throws(RecordingError) -> Recording.Head? {
        guard words.contains(where: { !$0.isEmpty }) else { return nil }
        guard let status = take().flatMap({ Int($0) }).flatMap({ Status($0) }) else { throw failure("not a status") }
        guard let version = take().flatMap({ HTTPVersion(written: $0) }) else { throw failure("not a version of HTTP") }
        return Recording.Head(status, version: version)
    }

    mutating func failed() throws(RecordingError) -> Recording.Failure {
        guard let reason = take(), let code = take().flatMap({ Int($0) }),
            let phase = take().flatMap({ LoadError.Phase(rawValue: $0) }),
            let party = take().flatMap({ LoadError.Party(rawValue: $0) })
        else { throw failure("not the reason of a failure, its code, phase and party") }
        return Recording.Failure(reason: LoadError.Reason(reason, code), phase: phase, party: party, detail: nil)
    }

    /// Adds the rest of the line as detail.
    mutating func detailed(_ failed: Recording.Failure) throws(RecordingError) -> Recording.Failure {
        guard !words.isEmpty else { return failed }
        guard let detail = EscapedText.bytes(words.joined(separator: " ").utf8) else { throw failure("damaged text") }
        return Recording.Failure(
            reason: failed.reason, phase: failed.phase, party: failed.party,
            detail: String(decoding: detail, as: UTF8.self))
    }
}

extension HTTPVersion {
    /// Parses the version as its description writes it.
    fileprivate init?(written text: String) {
        let numbers = text.dropFirst(5).split(separator: ".", omittingEmptySubsequences: false)
        guard text.hasPrefix("HTTP/"), (1...2).contains(numbers.count), let major = UInt8(numbers[0]),
            let minor = UInt8(numbers.count == 2 ? numbers[1] : "0")
        else { return nil }
        self.init(major: major, minor: minor)
    }
}
