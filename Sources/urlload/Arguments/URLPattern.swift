// SPDX-License-Identifier: Apache-2.0

// Expands `[1-9]`, `[001-100:3]`, `[a-z]` and `{one,two}` in a URL to one URL for each value, as curl does. The values
// replace `#1`, `#2` … in the name of the output file.

struct URLPattern: Sendable {
    struct Match: Sendable, Hashable {
        var url: String
        /// The values of the patterns, in their order.
        var parts: [String]
    }

    struct Mistake: Error {
        let words: String
    }

    private enum Piece {
        case text(String)
        case choices([String])
    }

    /// The maximum number of URLs; a larger number is an error.
    static let most = 1_000_000

    /// Returns all expansions; the last pattern varies fastest.
    /// - Throws: a mistake whose words name the URL without its password.
    static func matches(_ text: String) throws(Mistake) -> [Match] {
        do throws(Mistake) { return try expanded(text) } catch {
            throw Mistake(words: "\(AddressText.inMessage(text))\(error.words)")
        }
    }

    private static func expanded(_ text: String) throws(Mistake) -> [Match] {
        var matches = [Match(url: "", parts: [])]
        for piece in try pieces(text) {
            switch piece {
            case .text(let text): for index in matches.indices { matches[index].url += text }
            case .choices(let choices):
                guard matches.count * choices.count <= most else {
                    throw Mistake(words: " stands for more than \(most) URLs")
                }
                matches = matches.flatMap { match in
                    choices.map { Match(url: match.url + $0, parts: match.parts + [$0]) }
                }
            }
        }
        return matches
    }

    /// Returns the name of a file with the values of a match in place of `#1`, `#2` ….
    static func name(_ template: String, _ parts: [String]) -> String {
        var name = ""
        var rest = template[...]
        while let character = rest.popFirst() {
            let digits = character == "#" ? rest.prefix { ("0"..."9").contains($0) } : ""
            guard let number = Int(digits), number > 0, number <= parts.count else {
                name.append(character)
                continue
            }
            name += parts[number - 1]
            rest = rest.dropFirst(digits.count)
        }
        return name
    }

    private static func pieces(_ text: String) throws(Mistake) -> [Piece] {
        var pieces: [Piece] = []
        var literal = ""
        var rest = text[...]
        while let character = rest.popFirst() {
            switch character {
            case "\\" where rest.first.map { "{}[]".contains($0) } ?? false: literal.append(rest.removeFirst())
            case "[" where !isAddress(rest), "{":
                pieces.append(.text(literal))
                literal = ""
                let inside = try inside(&rest, character == "[" ? "]" : "}")
                pieces.append(.choices(character == "[" ? try range(inside) : try set(inside)))
            case "]" where literal.contains("["): literal.append(character)
            case "}", "]":
                throw Mistake(words: ": a \(character) without an opening one; -g takes it as it is")
            default: literal.append(character)
            }
        }
        return pieces + [.text(literal)]
    }

    /// True for an IPv6 address such as `[::1]` or `[fe80::1%25eth0]`, which is not a range.
    private static func isAddress(_ rest: Substring) -> Bool {
        guard let end = rest.firstIndex(of: "]") else { return false }
        let address = rest[..<end].prefix { $0 != "%" }
        return address.contains("::")
            || address.count { $0 == ":" } == 7 && address.allSatisfy { $0.isHexDigit || $0 == ":" }
    }

    private static func inside(_ rest: inout Substring, _ end: Character) throws(Mistake) -> Substring {
        guard let close = rest.firstIndex(of: end) else {
            throw Mistake(words: ": a \(end) is missing; -g takes brackets and braces as they are")
        }
        defer { rest = rest[rest.index(after: close)...] }
        return rest[..<close]
    }

    private static func set(_ inside: Substring) throws(Mistake) -> [String] {
        guard !inside.isEmpty else { throw Mistake(words: ": there is nothing between { and }") }
        return inside.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private static func range(_ inside: Substring) throws(Mistake) -> [String] {
        let wrong = Mistake(words: ": what is between [ and ] is no range such as [1-9] or [a-z]; -g takes it as it is")
        let halves = inside.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let ends = halves[0].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2, let step = halves.count > 1 ? Int(halves[1]) : 1, step > 0 else { throw wrong }
        if let first = Int(ends[0]), let last = Int(ends[1]), first >= 0, first <= last {
            guard (last - first) / step < most else {
                throw Mistake(words: ": a range stands for more than \(most) URLs")
            }
            let width = ends[0].first == "0" ? ends[0].count : 0
            return stride(from: first, through: last, by: step).map { number in
                let digits = "\(number)"
                return String(repeating: "0", count: max(0, width - digits.count)) + digits
            }
        }
        guard ends[0].count == 1, ends[1].count == 1, let first = ends[0].first?.asciiValue,
            let last = ends[1].first?.asciiValue, first <= last, ends[0].first?.isLetter ?? false,
            ends[1].first?.isLetter ?? false
        else { throw wrong }
        return stride(from: Int(first), through: Int(last), by: step).compactMap {
            UnicodeScalar($0).map { String(Character($0)) }
        }
    }
}
