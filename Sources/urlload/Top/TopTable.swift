// SPDX-License-Identifier: Apache-2.0

// The screen of `urlload top`: totals, then a line for each host. Pure but for the snapshot before.

import URLLoading

struct TopTable {
    private var last: SessionSnapshot?

    /// Returns the lines of a snapshot, with the rates since the one before.
    mutating func lines(_ now: SessionSnapshot, columns: Int) -> [String] {
        let before = last
        last = now
        let seconds = before.map { max(0.001, (Double(now.moment) - Double($0.moment)) / 1e9) }
        var lines = [Self.title(now, Self.rate(now.total, before?.total, seconds)), ""]
        let old = Dictionary(
            (before?.hosts ?? []).map { ($0.name, $0.traffic) }, uniquingKeysWith: { first, _ in first })
        let rows = now.hosts.map { host in
            // A host that was not there had moved nothing.
            Self.row(host, Self.rate(host.traffic, before == nil ? nil : old[host.name] ?? .init(), seconds))
        }
        lines += Self.aligned([Self.heads] + rows, columns)
        lines += now.hosts.compactMap { Self.violations(of: $0.name, $0.traffic) }
        lines += now.hosts.compactMap(Self.pacing)
        if now.hosts.isEmpty { lines += [Self.violations(of: "in all", now.total)].compactMap(\.self) }
        lines += [now.external.map(Self.external)].compactMap(\.self)
        if now.hiddenHosts > 0 { lines.append("and \(now.hiddenHosts) more") }
        return lines.map { Self.shown($0, columns) }
    }

    /// Bytes a second, sent and received; `nil` for the first snapshot.
    private typealias Rate = (sent: Int64, received: Int64)?

    private static func rate(
        _ now: SessionSnapshot.Traffic, _ before: SessionSnapshot.Traffic?, _ seconds: Double?
    ) -> Rate {
        guard let before, let seconds else { return nil }
        return (
            perSecond(now.bytesSent, before.bytesSent, seconds),
            perSecond(now.bytesReceived, before.bytesReceived, seconds)
        )
    }

    /// The numbers come from another program, which may send any.
    private static func perSecond(_ now: Int64, _ before: Int64, _ seconds: Double) -> Int64 {
        Int64(min(9e18, max(0, Double(now) - Double(before)) / seconds))
    }

    private static func title(_ now: SessionSnapshot, _ rate: Rate) -> String {
        let speeds = rate.map { ", in \(speed($0.received)), out \(speed($0.sent))" } ?? ""
        return
            "process \(now.process): \(now.loads) running, \(now.total.finished) finished, \(now.total.failed) failed"
            + "\(speeds), \(ProgressLine.size(now.total.bytesReceived)) received in all"
    }

    /// The rules that a host's responses broke, and how often: `http://a.test broke rules: bareLineFeed 3`.
    private static func violations(of name: String, _ traffic: SessionSnapshot.Traffic) -> String? {
        guard !traffic.tolerated.isEmpty else { return nil }
        let kinds = traffic.tolerated.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return "\(name) broke rules: " + kinds.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }

    /// What handlers of the program do with the requests to a host: `http://a.test: 3 requests held back by a rate`.
    private static func pacing(_ host: SessionSnapshot.Host) -> String? {
        var words: [String] = []
        if let held = host.held { words.append("\(held) request\(held == 1 ? "" : "s") held back by a rate") }
        if host.isRefused == true { words.append("a circuit breaker makes no requests") }
        return words.isEmpty ? nil : "\(host.name): " + words.joined(separator: ", ")
    }

    /// What the external cache has done: `external cache: 5 found, 2 missing, 3 stored, 1 late`.
    private static func external(_ counts: StoreCounts) -> String {
        let words = [
            ("found", counts.found), ("missing", counts.missing), ("stored", counts.stored),
            ("removed", counts.removed), ("too large", counts.left), ("damaged", counts.damaged),
            ("late", counts.late), ("failed", counts.failed), ("skipped", counts.skipped),
        ]
        return "external cache: "
            + words.enumerated().filter { $0.offset < 2 || $0.element.1 > 0 }
            .map { "\($0.element.1) \($0.element.0)" }.joined(separator: ", ")
    }

    private static func speed(_ bytes: Int64) -> String { "\(ProgressLine.size(bytes))/s" }

    private static let heads = [
        "HOST", "WAITING", "CONNECTING", "ACTIVE", "IDLE", "STREAMS", "IN", "OUT", "DONE", "FAILED",
    ]

    private static func row(_ host: SessionSnapshot.Host, _ rate: Rate) -> [String] {
        func count(_ number: Int) -> String { number == 0 ? "-" : "\(number)" }
        let streams = host.streams.isEmpty ? "-" : host.streams.map(String.init).joined(separator: "+")
        return [
            host.name, count(host.waiting), count(host.connecting), count(host.active &+ host.resting),
            count(host.idle), streams, rate.map { $0.received == 0 ? "-" : speed($0.received) } ?? "?",
            rate.map { $0.sent == 0 ? "-" : speed($0.sent) } ?? "?", count(host.traffic.finished),
            count(host.traffic.failed),
        ]
    }

    /// Numbers to the right, under their heads; the host gets the room that is left.
    private static func aligned(_ rows: [[String]], _ columns: Int) -> [String] {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let numbers = widths.dropFirst().reduce(0) { $0 + $1 + 2 }
        let host = max(8, min(widths[0], columns - numbers))
        return rows.map { row in
            CacheLines.shortened(row[0], host).padding(to: host)
                + zip(row, widths).dropFirst().map { text, width in
                    String(repeating: " ", count: 2 + width - text.count) + text
                }.joined()
        }
    }

    /// Cuts a line to one row.
    private static func shown(_ line: String, _ columns: Int) -> String {
        String(line.withoutControls.prefix(max(20, columns)))
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
