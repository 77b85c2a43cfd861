// SPDX-License-Identifier: Apache-2.0

// Draws a waterfall on a terminal: a line for each request, grouped by connection.

import URLLoading

struct WaterfallLines {
    private let waterfall: Waterfall
    private let width: Int
    private let hasColors: Bool

    /// Returns the lines, none wider than `width`, which is at least 40.
    static func make(_ waterfall: Waterfall, width: Int, hasColors: Bool) -> [String] {
        Self(waterfall: waterfall, width: max(40, width), hasColors: hasColors).lines
    }

    /// The letters that stand for stages without colours.
    private static let letters: [Waterfall.Stage: Character] = [
        .queued: ".", .lookup: "n", .connect: "c", .tls: "t", .sending: "s", .waiting: "-", .receiving: "=",
    ]
    private static let colors: [Waterfall.Stage: String] = [
        .queued: "100", .lookup: "46", .connect: "43", .tls: "45", .sending: "44", .waiting: "42", .receiving: "104",
    ]
    private static let signs: [Waterfall.Mark: String] = [
        .redirect: "\u{2192}", .challenge: "?", .retry: "\u{21BB}", .cache: "\u{2261}", .failure: "!",
    ]

    private var labelWidth: Int { min(44, width / 3) }
    private var barWidth: Int { width - labelWidth - 12 }

    private var lines: [String] {
        guard !waterfall.rows.isEmpty else { return ["no request was made"] }
        var lines = legend
        for connection in waterfall.connections {
            lines.append(clipped(ConnectionText.title(connection), width))
            lines += connection.rows.map { line($0, of: connection.laneCount) }
        }
        if let slowest = waterfall.slowest, waterfall.rows.count > 1 {
            lines.append(
                clipped("slowest: \(TimeText.make(slowest.duration))  \(slowest.method) \(slowest.url)", width))
        }
        return lines
    }

    // MARK: The legend

    /// The stages and marks there are, in as many lines as the width asks for.
    private var legend: [String] {
        let stages = Set(waterfall.rows.flatMap { $0.spans.map(\.stage) })
        let marks = Set(waterfall.rows.flatMap(\.marks))
        var entries: [(text: String, width: Int)] = []
        for stage in Waterfall.Stage.allCases where stages.contains(stage) {
            entries.append((piece(stage, hasColors ? 2 : 1) + " \(stage.word)", stage.word.count + (hasColors ? 3 : 2)))
        }
        for mark in Waterfall.Mark.allCases where marks.contains(mark) {
            entries.append(("\(Self.signs[mark] ?? "") \(mark.rawValue)", mark.rawValue.count + 2))
        }
        var lines: [(text: String, width: Int)] = []
        for entry in entries {
            if let last = lines.last, last.width + 2 + entry.width <= width {
                lines[lines.count - 1] = (last.text + "  " + entry.text, last.width + 2 + entry.width)
            } else {
                lines.append(entry)
            }
        }
        return lines.map(\.text)
    }

    // MARK: A row

    /// Rows of a connection that several requests share at a time begin with the number of their lane.
    private func line(_ row: Waterfall.Row, of lanes: Int) -> String {
        let digits = "\(lanes)".count
        let lane = "\(row.lane + 1)"
        var lead = lanes > 1 ? String(repeating: " ", count: digits - lane.count) + lane + " " : " "
        lead += row.marks.compactMap { Self.signs[$0] }.joined() + (row.marks.isEmpty ? "" : " ")
        let status = row.status.map { "\($0.code)" } ?? row.error ?? "-"
        let label = clipped(lead + "\(status) \(Self.path(row.url))", labelWidth)
        let padding = String(repeating: " ", count: max(0, labelWidth - label.count))
        let time = TimeText.make(row.duration)
        return label + padding + " " + bar(row) + String(repeating: " ", count: max(1, 10 - time.count)) + time
    }

    private func bar(_ row: Waterfall.Row) -> String {
        let scale = Double(barWidth) / max(waterfall.duration / .seconds(1), 0.000_001)
        var cells = [Waterfall.Stage?](repeating: nil, count: barWidth)
        for span in row.spans {
            let first = min(barWidth - 1, max(0, Int(span.start / .seconds(1) * scale)))
            let last = max(first, min(barWidth, Int((span.end / .seconds(1) * scale).rounded())) - 1)
            for index in first...last { cells[index] = span.stage }
        }
        var text = ""
        var rest = cells[...]
        while let stage = rest.first {
            let run = rest.prefix { $0 == stage }
            rest = rest.dropFirst(run.count)
            text += stage.map { piece($0, run.count) } ?? String(repeating: " ", count: run.count)
        }
        return text
    }

    private func piece(_ stage: Waterfall.Stage, _ count: Int) -> String {
        guard hasColors else { return String(repeating: Self.letters[stage] ?? "#", count: count) }
        return "\u{1B}[\(Self.colors[stage] ?? "0")m" + String(repeating: " ", count: count) + "\u{1B}[0m"
    }

    /// The path of a URL, which tells rows apart better than its scheme and host; the host if there is no path.
    private static func path(_ url: String) -> String {
        guard let mark = url.firstRange(of: "://") else { return url }
        let rest = url[mark.upperBound...]
        let path = rest.drop { $0 != "/" }
        return path.count > 1 ? String(path) : String(rest)
    }

    /// A text of at most `width` characters, without its middle if it is longer. Control characters, which could
    /// command a terminal, are replaced.
    private func clipped(_ text: String, _ width: Int) -> String {
        let safe = String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "\u{FFFD}" : $0 }))
        return safe.count <= width ? safe : safe.prefix(width / 2) + "\u{2026}" + safe.suffix(width - width / 2 - 1)
    }
}

extension Waterfall.Stage {
    /// The stage in one word, as legends name it.
    var word: String {
        switch self {
        case .lookup: "name"
        case .tls: "TLS"
        default: rawValue
        }
    }
}

enum ConnectionText {
    /// `connection 3 h2, 12 requests, up to 4 at a time`.
    static func title(_ connection: Waterfall.Connection) -> String {
        let number = connection.id.map { "connection \($0)" } ?? "no connection"
        let name = connection.protocolName.map { " \($0)" } ?? ""
        guard connection.laneCount > 1 else { return number + name }
        return "\(number)\(name), \(connection.rows.count) requests, up to \(connection.laneCount) at a time"
    }
}

enum TimeText {
    /// `0.4 ms`, `12 ms`, `1.3 s`.
    static func make(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        if seconds < 0.00995 { return tenths(seconds * 1000) + " ms" }
        if seconds < 0.9995 { return "\(Int64((seconds * 1000).rounded())) ms" }
        return tenths(seconds) + " s"
    }

    private static func tenths(_ number: Double) -> String {
        let tenths = Int64((max(0, number) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
