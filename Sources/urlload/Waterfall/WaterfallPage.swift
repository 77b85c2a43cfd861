// Writes a waterfall as one HTML file: an inline SVG and a table of heads, without scripts or external resources.

enum WaterfallPage {
    private static let colors: [Waterfall.Stage: String] = [
        .queued: "#b8bcc4", .name: "#2aa1b3", .connect: "#d9892b", .tls: "#a347ba", .sending: "#3465a4",
        .waiting: "#4c9a2a", .receiving: "#3584e4",
    ]
    private static let rowHeight = 22
    private static let labelWidth = 380
    private static let barWidth = 760

    static func make(_ waterfall: Waterfall) -> String {
        let slowest = waterfall.slowest.map {
            "slowest: \(escaped($0.method)) \(escaped($0.url)), \(WaterfallLines.time($0.seconds))"
        }
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <title>urlload: \(waterfall.rows.count) requests</title>
            <style>
            body { font: 14px/1.4 system-ui, sans-serif; margin: 1rem; color: #1d1d20; background: #fff; }
            .picture { overflow-x: auto; } svg { min-width: 700px; max-width: 1200px; width: 100%; height: auto; }
            text { font: 12px system-ui, sans-serif; } .group { font-weight: 600; }
            details { margin: .25rem 0; overflow-wrap: anywhere; } \
            table { border-collapse: collapse; margin: .5rem 0 1rem; }
            th, td { text-align: left; vertical-align: top; padding: .1rem .6rem .1rem 0; font-weight: 400; }
            th { color: #5a5a66; white-space: nowrap; }
            @media (prefers-color-scheme: dark) { body { color: #eee; background: #1e1e22; } text { fill: #eee; } }
            </style>
            </head>
            <body>
            <h1>\(waterfall.rows.count) requests in \(WaterfallLines.time(waterfall.seconds))</h1>
            <p>\(legend)</p>
            <p>\(slowest ?? "")</p>
            <div class="picture">
            \(picture(waterfall))
            </div>
            <h2>Requests</h2>
            \(waterfall.rows.map(details).joined())</body>
            </html>

            """
    }

    private static var legend: String {
        Waterfall.Stage.allCases.map { stage in
            "<span style=\"border-left: 1em solid \(colors[stage] ?? "")\">&nbsp;\(stage.rawValue)</span> "
        }.joined()
    }

    private static func picture(_ waterfall: Waterfall) -> String {
        var body = ""
        var y = 0
        for (connection, rows) in waterfall.groups {
            let name = rows.first?.protocolName.map { " \($0)" } ?? ""
            let title = connection.map { "connection \($0)\(name)" } ?? "no connection"
            body += "<text class=\"group\" x=\"0\" y=\"\(y + 16)\">\(escaped(title))</text>\n"
            y += rowHeight
            for row in rows {
                body += line(row, y, waterfall.seconds)
                y += rowHeight
            }
        }
        let width = labelWidth + barWidth + 70
        return """
            <svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="what each request waited for" \
            viewBox="0 0 \(width) \(max(y, 1))">
            \(body)</svg>
            """
    }

    private static func line(_ row: Waterfall.Row, _ y: Int, _ seconds: Double) -> String {
        let scale = Double(barWidth) / max(seconds, 0.000_001)
        let marks = row.marks.map(\.rawValue).joined(separator: ", ")
        let status = row.status.map { "\($0)" } ?? row.error ?? "-"
        let shown = row.url.count > 46 ? row.url.prefix(20) + "\u{2026}" + row.url.suffix(25) : row.url[...]
        let label = "\(status) \(marks.isEmpty ? "" : "(\(marks)) ")\(shown)"
        var text = "<g><title>\(escaped("\(row.method) \(row.url)"))</title>"
        text += "<text x=\"8\" y=\"\(y + 15)\">\(escaped(label))</text>"
        for span in row.spans {
            let x = Double(labelWidth) + span.start * scale
            let width = max(1, (span.end - span.start) * scale)
            text +=
                "<rect x=\"\(rounded(x))\" y=\"\(y + 4)\" width=\"\(rounded(width))\" height=\"14\" "
                + "fill=\"\(colors[span.stage] ?? "")\">"
                + "<title>\(span.stage.rawValue): \(WaterfallLines.time(span.end - span.start))</title></rect>"
        }
        let end = Double(labelWidth) + row.end * scale + 4
        return text + "<text x=\"\(rounded(end))\" y=\"\(y + 15)\">\(WaterfallLines.time(row.seconds))</text></g>\n"
    }

    private static func details(_ row: Waterfall.Row) -> String {
        let status = row.status.map { "\($0)" } ?? row.error ?? "-"
        var text =
            "<details><summary>\(escaped("\(status) \(row.method) \(row.url)")), "
            + "\(row.bytes) bytes, \(WaterfallLines.time(row.seconds))</summary>\n"
        for (title, fields) in [("Request", row.requestFields), ("Response", row.responseFields)] where !fields.isEmpty
        {
            text += "<h3>\(title)</h3>\n<table>\n"
            text += fields.map { "<tr><th>\(escaped($0.0))</th><td>\(escaped($0.1))</td></tr>\n" }.joined()
            text += "</table>\n"
        }
        return text + "</details>\n"
    }

    /// Formats a number with one decimal.
    private static func rounded(_ number: Double) -> String {
        let tenths = Int64((number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// Escapes text for elements and attributes; characters that HTML does not allow are replaced.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case _ where scalar.value < 0x20 && scalar != "\t" || (0x7F...0x9F).contains(scalar.value):
                escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
