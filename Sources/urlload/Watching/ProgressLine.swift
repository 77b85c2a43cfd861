// SPDX-License-Identifier: Apache-2.0

// The text of a progress line.

struct ProgressLine {
    var bytes: Int64
    var total: Int64?
    /// In seconds.
    var elapsed: Double
    /// The recent rate, in bytes per second.
    var rate: Double

    /// Returns at most `width` columns: ` 42% [=====>      ]  420.0 MiB of 1.0 GiB  98.1 MiB/s  0:06 left`.
    func text(width: Int) -> String {
        var numbers = Self.size(bytes)
        if let total { numbers += " of " + Self.size(total) }
        if rate >= 1 { numbers += "  " + Self.size(Int64(rate)) + "/s" }
        guard let total, total > 0 else {
            return String((numbers + "  " + Self.time(elapsed)).prefix(width))
        }
        if let left = secondsLeft(total) { numbers += "  " + Self.time(left) + " left" }
        let share = min(1, Double(bytes) / Double(total))
        let percent = Self.padded("\(Int(share * 100))%", 4)
        let room = width - percent.count - numbers.count - 5
        guard room >= 8 else { return String("\(percent)  \(numbers)".prefix(width)) }
        return "\(percent) [\(Self.bar(share, min(room, 40)))]  \(numbers)"
    }

    private func secondsLeft(_ total: Int64) -> Double? {
        guard rate >= 1, bytes < total else { return nil }
        return Double(total - bytes) / rate
    }

    private static func bar(_ share: Double, _ width: Int) -> String {
        let full = Int(share * Double(width))
        guard full < width else { return String(repeating: "=", count: width) }
        return String(repeating: "=", count: full) + ">" + String(repeating: " ", count: width - full - 1)
    }

    /// Formats bytes as `999 B`, `1.0 KiB` or `12.3 GiB`.
    static func size(_ bytes: Int64) -> String {
        var value = Double(bytes)
        for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
            if value < 1024 || unit == "TiB" {
                guard unit != "B" else { return "\(bytes) B" }
                let tenths = Int64((value * 10).rounded())
                return "\(tenths / 10).\(tenths % 10) \(unit)"
            }
            value /= 1024
        }
        return "\(bytes) B"
    }

    /// Formats seconds as `0:06`, `12:34` or `1:02:03`.
    static func time(_ seconds: Double) -> String {
        let whole = Int64(min(max(0, seconds), 1e9).rounded(.up))
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        let tail = String((100 + whole % 60)).dropFirst()
        guard hours > 0 else { return "\(minutes):\(tail)" }
        return "\(hours):\(String(100 + minutes).dropFirst()):\(tail)"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
