// SPDX-License-Identifier: Apache-2.0

// In this folder: progress on a terminal

// The progress lines, one for each running load: not for short loads, and drawn at most ten times a second. A value;
// the time is an argument.

struct ProgressBoard: Sendable {
    /// Seconds before a load gets its line: a line that disappears at once only flickers.
    static let quiet = 0.5
    static let interval = 0.1

    private struct Row: Sendable {
        let id: Int
        let name: String
        var meter: ProgressMeter
    }
    private var rows: [Row] = []
    private var lastID = 0
    private var lastDrawn = -Double.infinity
    /// True if each line begins with the name of its load.
    private let areNamed: Bool

    init(areNamed: Bool) { self.areNamed = areNamed }

    /// Adds a load; returns its id.
    mutating func begin(_ name: String, now: Double) -> Int {
        lastID += 1
        rows.append(Row(id: lastID, name: name, meter: ProgressMeter(now: now)))
        return lastID
    }

    mutating func expect(_ length: Int64?, of id: Int) { change(id) { $0.meter.expect(length) } }

    mutating func begin(at offset: Int64, of length: Int64?, _ id: Int) {
        change(id) { $0.meter.begin(at: offset, of: length) }
    }

    mutating func end(_ id: Int) { rows.removeAll { $0.id == id } }

    /// Counts received bytes and returns the lines to draw, in the order in which the loads began; `nil` if nothing is
    /// drawn now.
    /// - Parameter size: the columns and rows of the terminal; called only before drawing. At most this many rows are
    ///   returned.
    mutating func add(
        _ count: Int, of id: Int, now: Double, size: () -> (width: Int, height: Int)
    ) -> [String]? {
        change(id) { $0.meter.add(count) }
        guard now - lastDrawn >= Self.interval, rows.contains(where: { now - $0.meter.start >= Self.quiet }) else {
            return nil
        }
        lastDrawn = now
        let (width, height) = size()
        var lines: [String] = []
        for index in rows.indices where now - rows[index].meter.start >= Self.quiet && lines.count < max(1, height) {
            let label = areNamed ? Self.label(rows[index].name, min(24, width / 4)) : ""
            lines.append(label + rows[index].meter.line(now: now).text(width: width - Self.columns(label)))
        }
        return lines
    }

    private mutating func change(_ id: Int, _ body: (inout Row) -> Void) {
        guard let index = rows.firstIndex(where: { $0.id == id }) else { return }
        body(&rows[index])
    }

    /// Shortens a name at its beginning, because the end tells more.
    private static func label(_ name: String, _ width: Int) -> String {
        guard width >= 4 else { return "" }
        var shown = name
        if columns(name) >= width {
            var rest = name[...]
            while columns(rest) > width - 2 { rest.removeFirst() }
            shown = "…" + rest
        }
        return shown + String(repeating: " ", count: max(1, width - columns(shown)))
    }

    /// The columns of a text, rounded up: a line that the terminal wraps could not be overwritten.
    static func columns(_ text: some StringProtocol) -> Int {
        text.unicodeScalars.reduce(0) { $0 + ($1.value < 0x1100 || $1 == "…" ? 1 : 2) }
    }
}
