// SPDX-License-Identifier: Apache-2.0

/// The parts of requests and responses that are written (`--print`).
struct PrintedParts: Sendable, Hashable {
    enum Part: Character, Sendable, CaseIterable {
        case requestHead = "H"
        case requestBody = "B"
        case head = "h"
        case body = "b"
        case meta = "m"
    }
    var parts: Set<Part>
    /// True if the responses before the last one are written too: redirects, refusals (`--all`).
    var includesAll = false

    init(_ parts: Set<Part>) { self.parts = parts }

    /// Parses letters such as `HBhb`; `nil` for others.
    init?(_ letters: String) {
        parts = []
        for letter in letters {
            guard let part = Part(rawValue: letter) else { return nil }
            parts.insert(part)
        }
    }

    func contains(_ part: Part) -> Bool { parts.contains(part) }
    var hasRequest: Bool { contains(.requestHead) || contains(.requestBody) }
}
