// SPDX-License-Identifier: Apache-2.0

// `--pretty`: indents and colours heads, JSON, XML and HTML.

import Glibc

struct Pretty: Sendable, Hashable {
    var hasColors: Bool
    var isFormatted: Bool
    /// The maximum size of an indented text, in bytes. The blanks before many short lines deep in a small text would
    /// take all memory.
    static let mostBytes = 64 << 20

    init(hasColors: Bool, isFormatted: Bool) {
        self.hasColors = hasColors
        self.isFormatted = isFormatted
    }

    /// Parses `all`, `colors`, `format` or `none`; `nil` for another word.
    init?(_ text: String) {
        switch text {
        case "all": self.init(hasColors: true, isFormatted: true)
        case "colors", "colours": self.init(hasColors: true, isFormatted: false)
        case "format": self.init(hasColors: false, isFormatted: true)
        case "none": self.init(hasColors: false, isFormatted: false)
        default: return nil
        }
    }

    /// The default of `urlload http`: formatted on a terminal, coloured unless NO_COLOR is set; unchanged elsewhere.
    static func usual(isTerminal: Bool) -> Pretty {
        Pretty(hasColors: isTerminal && !forbidsColors, isFormatted: isTerminal)
    }

    /// True if NO_COLOR is set and not empty (no-color.org).
    static var forbidsColors: Bool { getenv("NO_COLOR").map { $0.pointee != 0 } ?? false }
}

/// The colours, as SGR parameters.
enum Paint: String, Sendable {
    case name = "34", string = "32", number = "36", word = "35", mark = "2", title = "1", tag = "94", attribute = "33"

    func on(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}
