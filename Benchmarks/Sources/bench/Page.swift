// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The text output: a header of facts without a date, and a table for each scenario.
struct Page {
    var command: String
    var load: String
    var contenders: [Contender]
    var rounds: Int

    func header() -> String {
        var lines = [
            "Linux \(says("uname -r | cut -d- -f1")) \(says("uname -m")), \(says("nproc")) cores,"
                + " \(says("sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1")), load at the start \(load)",
            "\(says("nginx -v 2>&1 | cut -d' ' -f3")) on loopback, Swift \(swiftVersion), \(rounds) interleaved rounds",
        ]
        var seen: Set<String> = []
        for contender in contenders where seen.insert(contender.executable).inserted {
            let version = try? run([contender.path, "version"], environment: contender.environment).output
            lines.append("  \(contender.name): \((version ?? "?").trimmingCharacters(in: .whitespacesAndNewlines))")
        }
        lines.append("$ \(command)")
        return lines.joined(separator: "\n")
    }

    private var swiftVersion: String {
        says("swift --version").split(separator: " ").first { $0.first?.isNumber == true }.map(String.init) ?? ""
    }

    func table(_ scenario: Scenario, _ results: [Result]) -> String {
        if scenario.distance != nil { return farTable(scenario, results) }
        let unit = scenario.unit
        let isMemory = scenario.kind == .inflight
        let hasLatencies = scenario.hasLatencies
        let pool = results.first { $0.contender.name == "tasks" && !$0.unsupported }
        let heads =
            [
                unit == .request ? "CPU us" : "CPU ms", "best", "x raw", "best",
                unit == .request ? "req/s" : unit == .gibibyte ? "GiB/s" : "wall ms",
                "alloc", "syscall", "switch", "RSS MB",
            ] + (isMemory ? ["KB each"] : []) + (hasLatencies ? ["p50 us", "p99 us"] : [])
            + (pool == nil ? [] : ["x tasks"])
        var lines = [
            "\(scenario.name): \(scenario.title)",
            row("", heads),
        ]
        let floor = results.first { ["rawc", "h2load", "curl-h3"].contains($0.contender.name) }
        for result in results {
            if result.unsupported { continue }
            let remark = result.remark.map { "  ! \($0)" } ?? ""
            lines.append(row(result.contender.name, cells(scenario, result, floor, pool)) + remark)
        }
        return lines.joined(separator: "\n")
    }

    private func cells(_ scenario: Scenario, _ result: Result, _ floor: Result?, _ pool: Result?) -> [String] {
        let cpu = result.cpu.compactMap { $0 }
        let factor = scenario.unit == .request ? 1e6 : 1e3
        let best = (cpu.min(), floor?.cpu.compactMap { $0 }.min())
        let wall = median(result.wall)
        let cells = [
            number(median(cpu).map { $0 * factor }),
            number(best.0.map { $0 * factor }),
            ratio(result, floor),
            ratio(best.0.flatMap { mine in best.1.map { mine / $0 } }),
            scenario.unit == .process ? number(wall.map { $0 * 1e3 }) : number(wall.map { 1 / $0 }),
            number(result.allocations),
            number(result.syscalls),
            number(median(result.switches)),
            number(median(result.maxRSS).map { $0 / 1024 }),
        ]
        return cells + (scenario.kind == .inflight ? [number(median(result.rssEach))] : [])
            + (scenario.hasLatencies ? [number(median(result.p50)), number(median(result.p99))] : [])
            + (pool == nil ? [] : [ratio(result, pool)])
    }

    /// Returns the median of the ratios within each round, in which both programs ran under the same conditions.
    private func ratio(_ result: Result, _ other: Result?) -> String {
        let ratios = zip(result.cpu, other?.cpu ?? []).compactMap { mine, its in
            mine.flatMap { mine in its.map { mine / $0 } }
        }
        return ratio(median(ratios))
    }

    func row(_ name: String, _ cells: [String]) -> String {
        "  " + name.padding(toLength: max(13, name.count), withPad: " ", startingAt: 0)
            + cells.map { String(repeating: " ", count: max(1, 9 - $0.count)) + $0 }.joined()
    }

    private func ratio(_ value: Double?) -> String { value.map { String(format: "%.2f", $0) } ?? "-" }

    func number(_ value: Double?) -> String {
        guard let value else { return "-" }
        return String(format: abs(value) >= 100 ? "%.0f" : abs(value) >= 10 ? "%.1f" : "%.2f", value)
    }
}

func median(_ values: [Double]) -> Double? {
    guard !values.isEmpty else { return nil }
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
