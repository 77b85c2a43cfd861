// SPDX-License-Identifier: Apache-2.0

// Formats XML with line breaks, and XML and HTML with colours. Text between tags is never changed: an element with text
// and child elements stays on one line.

enum MarkupPrinter {
    private enum Piece: Equatable {
        case open(Substring)
        case close(Substring)
        /// `<a/>`, `<!-- -->`, `<?xml ?>`, `<!DOCTYPE>`.
        case single(Substring)
        case text(Substring)

        var written: Substring {
            switch self {
            case .open(let text), .close(let text), .single(let text), .text(let text): text
            }
        }
        var isBlank: Bool {
            if case .text(let text) = self { text.allSatisfy(\.isWhitespace) } else { false }
        }
        var isText: Bool { if case .text = self { true } else { false } }
    }

    /// - Returns: `nil` if the bytes are not UTF-8, or not well-formed enough to be indented, or nested too deeply.
    static func make(_ bytes: [UInt8], _ pretty: Pretty, indents: Bool) -> String? {
        guard let text = String(validating: bytes, as: UTF8.self), let pieces = pieces(text) else { return nil }
        let shown: (Piece) -> String = { pretty.hasColors ? painted($0) : String($0.written) }
        guard indents else { return pieces.map(shown).joined() }
        return indented(pieces, shown)
    }

    private static func pieces(_ text: String) -> [Piece]? {
        var pieces: [Piece] = []
        var rest = text[...]
        while !rest.isEmpty {
            guard rest.first == "<" else {
                let run = rest.prefix { $0 != "<" }
                pieces.append(.text(run))
                rest = rest[run.endIndex...]
                continue
            }
            let end = ["<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"].first { rest.hasPrefix($0.key) }?.value ?? ">"
            guard let range = rest.firstRange(of: end) else { return nil }
            let tag = rest[..<range.upperBound]
            if tag.hasPrefix("<![CDATA[") {
                pieces.append(.text(tag))
            } else if tag.hasPrefix("</") {
                pieces.append(.close(tag))
            } else if tag.hasSuffix("/>") || tag.hasPrefix("<!") || tag.hasPrefix("<?") {
                pieces.append(.single(tag))
            } else {
                pieces.append(.open(tag))
            }
            rest = rest[range.upperBound...]
        }
        return pieces
    }

    /// A server chooses how deep its elements are: each level indents all lines within.
    private static let mostLevels = 512

    private static func indented(_ pieces: [Piece], _ shown: (Piece) -> String) -> String? {
        let pieces = pieces.filter { !$0.isBlank }
        guard let ends = ends(pieces) else { return nil }
        var text = ""
        var depth = 0
        var index = 0
        while index < pieces.count {
            guard depth < mostLevels, text.utf8.count < Pretty.mostBytes else { return nil }
            let margin = String(repeating: "  ", count: max(0, depth))
            switch pieces[index] {
            case .open:
                let end = ends[index]
                if end > index {
                    text += margin + pieces[index...end].map(shown).joined() + "\n"
                    index = end
                } else {
                    text += margin + shown(pieces[index]) + "\n"
                    depth += 1
                }
            case .close:
                depth -= 1
                text += String(repeating: "  ", count: max(0, depth)) + shown(pieces[index]) + "\n"
            case .single, .text: text += margin + shown(pieces[index]) + "\n"
            }
            index += 1
        }
        return depth == 0 ? text : nil
    }

    /// Returns for each element that contains text or nothing the index of its end, and otherwise its own index.
    /// - Returns: `nil` if an element has no end.
    private static func ends(_ pieces: [Piece]) -> [Int]? {
        var ends = Array(pieces.indices)
        var open: [(start: Int, hasText: Bool)] = []
        for index in pieces.indices {
            switch pieces[index] {
            case .open: open.append((index, false))
            case .close:
                guard let element = open.popLast() else { continue }
                if element.hasText || index == element.start + 1 { ends[element.start] = index }
            case .text: if !open.isEmpty { open[open.count - 1].hasText = true }
            case .single: break
            }
        }
        return open.isEmpty ? ends : nil
    }

    private static func painted(_ piece: Piece) -> String {
        switch piece {
        case .text(let text): String(text)
        case .single(let tag) where tag.hasPrefix("<!") || tag.hasPrefix("<?"): Paint.mark.on(String(tag))
        case .open(let tag), .close(let tag), .single(let tag): Paint.tag.on(String(tag))
        }
    }
}
