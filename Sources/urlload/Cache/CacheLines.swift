// Stored responses as lines of text.

import URLLoading

enum CacheLines {
    /// Columns: numbers right-aligned, the rest left-aligned; URLs shortened in the middle to the width.
    static func make(_ entries: [ResponseCache.Entry], now: Double, columns: Int?, showsSecrets: Bool) -> [String] {
        let rows = entries.map { entry in
            [
                "\(entry.status.code)", size(entry.length) + (entry.isWhole ? "" : "…"), age(now - entry.received),
                entry.file == nil ? "row" : "file",
            ]
        }
        let widths = (0..<4).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return zip(rows, entries).map { row, entry in
            let start =
                zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 }.joined(separator: "  ")
                + "  "
            return start
                + shortened(showsSecrets ? entry.url : entry.shownURL, columns.map { max(16, $0 - start.count) })
        }
    }

    /// Shortens a URL in the middle, its least telling part.
    static func shortened(_ url: String, _ width: Int?) -> String {
        guard let width, url.count > width else { return url }
        let tail = (width - 1) / 3
        return url.prefix(width - 1 - tail) + "…" + url.suffix(tail)
    }

    static func size(_ bytes: Int64) -> String {
        var number = Double(bytes)
        var units = ["B", "K", "M", "G", "T"][...]
        while number >= 1_000, units.count > 1 {
            number /= 1_024
            units.removeFirst()
        }
        let unit = units.first ?? ""
        guard unit != "B", number < 9.95 else { return "\(Int(number.rounded()))\(unit)" }
        let tenths = Int((number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)\(unit)"
    }

    static func age(_ seconds: Double) -> String {
        let seconds = max(0, seconds)
        for (name, length) in [("d", 86_400.0), ("h", 3_600), ("m", 60)] where seconds >= 2 * length {
            return "\(Int(seconds / length))\(name)"
        }
        return "\(Int(seconds))s"
    }

    static func head(_ entry: ResponseCache.Entry) -> String {
        var text = "\(entry.version) \(entry.status)\r\n"
        for field in entry.headers { text += "\(field.name): \(field.value)\r\n" }
        return text + "\r\n"
    }
}

extension ResponseCache.Entry {
    func json(_ now: Double, showsSecrets: Bool) -> JSONText {
        .object([
            ("url", .text(showsSecrets ? url : shownURL)), ("status", .integer(Int64(status.code))),
            ("bytes", .integer(length)), ("whole", .bool(isWhole)),
            ("age", .seconds(max(0, now - received))), ("file", .optional(file)),
        ])
    }
}
