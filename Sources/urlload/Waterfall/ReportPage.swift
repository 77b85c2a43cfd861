// SPDX-License-Identifier: Apache-2.0

// A waterfall as one HTML file: a row for each request, which opens to its heads, the beginning of its body and the
// cache's decision. No script, and nothing that is loaded from elsewhere: the page itself forbids both.

import URLLoading

struct ReportPage {
    private let waterfall: Waterfall
    private let details: (Waterfall.Row) -> RequestDetails
    /// Nanoseconds from the left edge of a bar to its right edge.
    private let width: Double

    /// Returns the page.
    /// - Parameter details: what is known of a request besides its row.
    static func make(
        _ waterfall: Waterfall, details: @escaping (Waterfall.Row) -> RequestDetails = { _ in RequestDetails() }
    ) -> String {
        Self(waterfall, details).text
    }

    private init(_ waterfall: Waterfall, _ details: @escaping (Waterfall.Row) -> RequestDetails) {
        self.waterfall = waterfall
        self.details = details
        width = max(waterfall.duration / .nanoseconds(1), 1)
    }

    private static let colors: [Waterfall.Stage: String] = [
        .queued: "#b8bcc4", .lookup: "#2aa1b3", .connect: "#d9892b", .tls: "#a347ba", .sending: "#3465a4",
        .waiting: "#4c9a2a", .receiving: "#3584e4",
    ]

    private static let style = #"""
        :root { color-scheme: light dark; --line: #d5d5dc; --soft: #5a5a66; --bar: #f0f0f4; }
        @media (prefers-color-scheme: dark) { :root { --line: #44444c; --soft: #a5a5b0; --bar: #2a2a30; } }
        body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 80rem; }
        h1 { font-size: 1.4rem; margin: 0 0 .25rem; } h2 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
        h3 { font-size: .9rem; margin: .75rem 0 .25rem; } p { margin: .25rem 0; overflow-wrap: anywhere; }
        .legend span { display: inline-block; margin-right: 1em; border-left: 1em solid; padding-left: .35em; }
        .row { border-top: 1px solid var(--line); }
        summary { display: grid; grid-template-columns: minmax(0, 22rem) minmax(0, 1fr) 4.5rem; gap: .75rem;
        align-items: center; padding: .15rem 0; cursor: pointer; list-style-position: outside; }
        .label { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; } .time { text-align: right; }
        .label::before { content: "\25B8"; display: inline-block; width: 1em; color: var(--soft); }
        [open] > summary .label::before { content: "\25BE"; }
        .mark { border: 1px solid var(--line); border-radius: .5em; padding: 0 .4em; font-size: .8em; }
        .failure { color: #c01c28; border-color: currentColor; } svg { display: block; width: 100%; }
        .bar { height: 14px; background: var(--bar); } .lanes { background: var(--bar); margin: .25rem 0 .5rem; }
        .facts { padding: 0 0 .75rem 1rem; } table { border-collapse: collapse; } pre { white-space: pre-wrap; }
        th, td { text-align: left; vertical-align: top; padding: .1rem .75rem .1rem 0; font-weight: 400; }
        th { color: var(--soft); } td, pre { overflow-wrap: anywhere; }
        pre { background: var(--bar); padding: .5rem; margin: .25rem 0; max-height: 24rem; overflow-y: auto; }
        @media (max-width: 45rem) { summary { grid-template-columns: minmax(0, 1fr) 4.5rem; gap: .1rem .5rem; }
        .bar { grid-column: 1 / 3; grid-row: 2; } .facts { padding-left: 0; } }
        """#

    private var text: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <title>\(title)</title>
        <style>
        \(Self.style)
        </style>
        </head>
        <body>
        <h1>\(title)</h1>
        \(slowest)<p class="legend">\(legend)</p>
        \(waterfall.connections.map(section).joined())</body>
        </html>

        """
    }

    private var title: String {
        let count = waterfall.rows.count
        return "\(count) request\(count == 1 ? "" : "s") in \(TimeText.make(waterfall.duration))"
    }

    private var slowest: String {
        guard let row = waterfall.slowest, waterfall.rows.count > 1 else { return "" }
        return "<p>Slowest: <a href=\"#\(Self.id(row))\">\(HTML.escaped("\(row.method) \(row.url)"))</a>, "
            + "\(TimeText.make(row.duration))</p>\n"
    }

    private var legend: String {
        Waterfall.Stage.allCases.map {
            "<span style=\"border-color: \(Self.colors[$0] ?? "")\">\($0.word)</span>"
        }.joined(separator: " ")
    }

    private static func id(_ row: Waterfall.Row) -> String { "r\(row.load)-\(row.transaction)" }

    // MARK: A connection

    private func section(_ connection: Waterfall.Connection) -> String {
        "<section>\n<h2>\(HTML.escaped(ConnectionText.title(connection)))</h2>\n"
            + (connection.laneCount > 1 ? lanes(connection) : "") + connection.rows.map(row).joined() + "</section>\n"
    }

    /// A swim lane for each request that is under way at a time: the use of the connection at a glance.
    private func lanes(_ connection: Waterfall.Connection) -> String {
        let height = 8
        let blocks = connection.rows.map { row in
            let spans = row.spans.filter { $0.stage != .queued }
            return spans.map { rectangle($0, y: row.lane * height + 1, height: height - 2) }.joined()
        }
        return """
            <svg class="lanes" role="img" aria-label="\(connection.laneCount) requests at a time" height="\
            \(connection.laneCount * height)" viewBox="0 0 1000 \(connection.laneCount * height)" \
            preserveAspectRatio="none">\(blocks.joined())</svg>

            """
    }

    // MARK: A request

    private func row(_ row: Waterfall.Row) -> String {
        let status = row.status.map { "\($0.code)" } ?? row.error ?? "-"
        let marks = row.marks.map { "<span class=\"mark \($0.rawValue)\">\($0.rawValue)</span> " }.joined()
        let name = HTML.escaped("\(status) \(row.method) \(row.url)")
        return """
            <details class="row" id="\(Self.id(row))"><summary>\
            <span class="label" title="\(name)">\(marks)\(name)</span>\
            <svg class="bar" role="img" aria-label="\(Self.times(row))" viewBox="0 0 1000 14" \
            preserveAspectRatio="none">\
            \(row.spans.map { rectangle($0, y: 0, height: 14) }.joined())</svg>\
            <span class="time">\(TimeText.make(row.duration))</span></summary>
            <div class="facts">
            \(RequestFacts.html(row, details(row)))</div>
            </details>

            """
    }

    private static func times(_ row: Waterfall.Row) -> String {
        row.spans.map { "\($0.stage.word) \(TimeText.make($0.duration))" }.joined(separator: ", ")
    }

    private func rectangle(_ span: Waterfall.Span, y: Int, height: Int) -> String {
        let x = span.start / .nanoseconds(1) / width * 1000
        let length = max(1, span.duration / .nanoseconds(1) / width * 1000)
        return
            "<rect x=\"\(HTML.number(min(x, 999)))\" y=\"\(y)\" width=\"\(HTML.number(length))\" height=\"\(height)\" "
            + "fill=\"\(Self.colors[span.stage] ?? "")\">"
            + "<title>\(span.stage.word) \(TimeText.make(span.duration))</title></rect>"
    }
}
