// SPDX-License-Identifier: Apache-2.0

// Stored responses as lines of text.

import URLLoading

enum CacheLines {
    /// Numbers to the right, URLs to the left, those in the middle shortened to a width; on a terminal a bar shows how
    /// long each is still fresh.
    /// - Parameter columns: the width of the terminal; `nil` for none.
    static func make(_ entries: [ResponseCache.Entry], now: Double, columns: Int?, showsSecrets: Bool) -> [String] {
        let rows = entries.map { entry in
            [
                "\(entry.status.code)", size(entry.length) + (entry.isWhole ? "" : "…"), age(now - entry.received),
                entry.file == nil ? "none" : entry.isInPack ? "pack" : "file",
            ] + (columns == nil ? [] : [freshness(entry.freshness(now))])
        }
        let widths = (0..<(columns == nil ? 4 : 5)).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return zip(rows, entries).map { row, entry in
            let start =
                zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 }.joined(separator: "  ")
                + "  "
            return start
                + shortened(showsSecrets ? entry.url : entry.shownURL, columns.map { max(16, $0 - start.count) })
        }
    }

    /// `██████░░░░  2h left`, `░░░░░░░░░░    stale`: the part of the lifetime that is left, and how long that is.
    static func freshness(_ freshness: (age: Double, lifetime: Double)) -> String {
        let left = freshness.lifetime - freshness.age
        let cells = left > 0 ? max(1, Int((left / freshness.lifetime * 10).rounded())) : 0
        let words = left > 0 ? "\(age(left)) left" : "stale"
        return String(repeating: "\u{2588}", count: cells) + String(repeating: "\u{2591}", count: 10 - cells)
            + String(repeating: " ", count: max(1, 10 - words.count)) + words
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
            ("age", .seconds(max(0, now - received))), ("lifetime", .seconds(freshness(now).lifetime)),
            ("fresh", .bool(freshness(now).age < freshness(now).lifetime)), ("file", .optional(file)),
        ])
    }
}
