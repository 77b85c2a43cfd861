// SPDX-License-Identifier: Apache-2.0

enum EditDistance {
    /// Returns how many letters must be added, removed or changed to make `b` of `a` (Levenshtein).
    static func between(_ a: String, _ b: String) -> Int {
        let b = Array(b)
        var row = Array(0...b.count)
        for (i, letter) in a.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for j in b.indices {
                let above = row[j + 1]
                row[j + 1] = min(above + 1, row[j] + 1, diagonal + (letter == b[j] ? 0 : 1))
                diagonal = above
            }
        }
        return row[b.count]
    }

    /// Returns the candidate that differs least from a word: in at most two letters, or in a third of a long word.
    static func nearest(to word: String, among candidates: [String]) -> String? {
        let near = candidates.map { ($0, between($0, word)) }.min { $0.1 < $1.1 }
        guard let near, near.1 <= max(2, word.count / 3) else { return nil }
        return near.0
    }
}
