// Draws a waterfall on a terminal: a line for each request, grouped by connection.

struct WaterfallLines {
    let waterfall: Waterfall
    let width: Int
    let hasColors: Bool

    /// Returns the lines, none wider than `width`.
    static func make(_ waterfall: Waterfall, width: Int, hasColors: Bool) -> [String] {
        Self(waterfall: waterfall, width: max(40, width), hasColors: hasColors).lines
    }

    /// The letters that stand for stages without colours.
    private static let letters: [Waterfall.Stage: Character] = [
        .queued: ".", .name: "n", .connect: "c", .tls: "t", .sending: "s", .waiting: "-", .receiving: "=",
    ]
    private static let colors: [Waterfall.Stage: String] = [
        .queued: "100", .name: "46", .connect: "43", .tls: "45", .sending: "44", .waiting: "42", .receiving: "104",
    ]

    private var labelWidth: Int { min(44, width / 3) }
    private var barWidth: Int { width - labelWidth - 12 }

    private var lines: [String] {
        guard !waterfall.rows.isEmpty else { return ["no request was made"] }
        var lines = [legend]
        for (connection, rows) in waterfall.groups {
            let name = rows.first?.protocolName.map { " \($0)" } ?? ""
            lines.append(connection.map { "connection \($0)\(name)" } ?? "no connection")
            lines += laned(rows).map { line($0, lane: $1) }
        }
        if let slowest = waterfall.slowest, waterfall.rows.count > 1 {
            lines.append(clipped("slowest: \(Self.time(slowest.seconds))  \(slowest.method) \(slowest.url)", width))
        }
        return lines
    }

    private var legend: String {
        let stages = Waterfall.Stage.allCases.filter { stage in
            waterfall.rows.contains { $0.spans.contains { $0.stage == stage } }
        }
        return stages.map { stage in
            (hasColors ? "\u{1B}[\(Self.colors[stage] ?? "0")m  \u{1B}[0m" : "\(Self.letters[stage] ?? " ")")
                + " \(stage.rawValue)"
        }.joined(separator: "  ")
    }

    /// Assigns lanes, from 0, to the streams that share a connection at one time.
    private func laned(_ rows: [Waterfall.Row]) -> [(Waterfall.Row, lane: Int)] {
        var ends: [Double] = []
        return rows.map { row in
            let lane = ends.firstIndex { $0 <= row.start } ?? ends.count
            if lane == ends.count { ends.append(row.end) } else { ends[lane] = row.end }
            return (row, lane)
        }
    }

    private func line(_ row: Waterfall.Row, lane: Int) -> String {
        let marks = row.marks.map { mark in
            switch mark {
            case .redirect: "\u{2192}"
            case .challenge: "?"
            case .retry: "\u{21BB}"
            case .cache: "="
            case .failed: "!"
            }
        }.joined()
        let status = row.status.map { "\($0)" } ?? row.error ?? "-"
        let lead = String(repeating: " ", count: min(4, lane) + 1) + (marks.isEmpty ? "" : marks + " ")
        let label = clipped(lead + "\(status) \(Self.path(row.url))", labelWidth)
        let padding = String(repeating: " ", count: max(0, labelWidth - label.count))
        let time = Self.time(row.seconds)
        return label + padding + " " + bar(row) + String(repeating: " ", count: max(1, 10 - time.count)) + time
    }

    private func bar(_ row: Waterfall.Row) -> String {
        let scale = Double(barWidth) / max(waterfall.seconds, 0.000_001)
        var cells = [Waterfall.Stage?](repeating: nil, count: barWidth)
        for span in row.spans {
            let first = min(barWidth - 1, Int(span.start * scale))
            let last = max(first, min(barWidth, Int((span.end * scale).rounded())) - 1)
            for index in first...last { cells[index] = span.stage }
        }
        var text = ""
        var index = 0
        while index < cells.count {
            let run = cells[index...].prefix { $0 == cells[index] }.count
            if let stage = cells[index] {
                text +=
                    hasColors
                    ? "\u{1B}[\(Self.colors[stage] ?? "0")m" + String(repeating: " ", count: run) + "\u{1B}[0m"
                    : String(repeating: Self.letters[stage] ?? "#", count: run)
            } else {
                text += String(repeating: " ", count: run)
            }
            index += run
        }
        return text
    }

    /// Returns host and path, without the scheme.
    private static func path(_ url: String) -> String {
        guard let mark = url.firstRange(of: "://") else { return url }
        let rest = url[mark.upperBound...]
        let path = rest.drop { $0 != "/" }
        return path.count > 1 ? String(path) : String(rest)
    }

    static func time(_ seconds: Double) -> String {
        if seconds < 1 { return "\((Int64(seconds * 1000)).description) ms" }
        let tenths = Int64((seconds * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }

    /// Shortens a text in its middle, and removes control characters.
    private func clipped(_ text: String, _ width: Int) -> String {
        let safe = String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "\u{FFFD}" : $0 }))
        return safe.count <= width ? safe : safe.prefix(width / 2) + "\u{2026}" + safe.suffix(width - width / 2 - 1)
    }
}
