// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading
@testable import urlload

struct TopTableTests {
    private func snapshot(_ seconds: Int64, received: Int64) -> SessionSnapshot {
        var snapshot = SessionSnapshot(process: 7, moment: seconds * 1_000_000_000, loads: 3)
        var host = SessionSnapshot.Host(name: "https://a.test")
        (host.waiting, host.connecting, host.active, host.idle, host.streams) = (4, 1, 2, 3, [5, 6])
        host.traffic.bytesReceived = received
        (host.traffic.finished, host.traffic.failed) = (8, 9)
        snapshot.hosts = [host]
        snapshot.total = host.traffic
        return snapshot
    }

    @Test("totals, then a line for each host, with the rates since the snapshot before")
    func lines() {
        var table = TopTable()
        let first = table.lines(snapshot(10, received: 1 << 20), columns: 120)
        #expect(first[0] == "process 7: 3 running, 8 finished, 9 failed, 1.0 MiB received in all")
        #expect(
            first[2].split(separator: " ") == [
                "HOST", "WAITING", "CONNECTING", "ACTIVE", "IDLE", "STREAMS", "IN", "OUT", "DONE", "FAILED",
            ])
        #expect(first[3].split(separator: " ") == ["https://a.test", "4", "1", "2", "3", "5+6", "?", "?", "8", "9"])
        let second = table.lines(snapshot(12, received: 5 << 20), columns: 120)
        #expect(second[0].contains(", in 2.0 MiB/s, out 0 B/s, 5.0 MiB received"))
        #expect(second[3].contains("2.0 MiB/s") && second[3].contains(" - "))
        // The counters of a program that was started again begin at 0.
        #expect(table.lines(snapshot(13, received: 0), columns: 120)[0].contains("in 0 B/s"))
    }

    @Test("the rules that a host's responses broke have a line, most frequent first")
    func violations() {
        var table = TopTable()
        var now = snapshot(1, received: 0)
        now.hosts[0].traffic.tolerated = ["bareLineFeed": 3, "malformedFieldName": 5]
        let lines = table.lines(now, columns: 120)
        #expect(lines.last == "https://a.test broke rules: malformedFieldName 5, bareLineFeed 3")
        #expect(!table.lines(snapshot(2, received: 0), columns: 120).contains { $0.contains("broke") })
    }

    @Test("lines fit the terminal, and a name that another program sent does not command it")
    func safe() {
        var table = TopTable()
        var hostile = snapshot(1, received: 0)
        hostile.hosts[0].name = "\u{1B}[2J" + String(repeating: "x", count: 300)
        hostile.hiddenHosts = 12
        for columns in [20, 80, 200] {
            let lines = table.lines(hostile, columns: columns)
            #expect(lines.allSatisfy { $0.count <= columns } && lines.last == "and 12 more")
            #expect(!lines.joined().unicodeScalars.contains { $0.value < 0x20 })
        }
    }

    @Test("no number that another program sends ends this one")
    func anyNumbers() {
        func snapshot(_ moment: Int64, _ bytes: Int64) -> SessionSnapshot {
            var snapshot = SessionSnapshot(process: 7, moment: moment, loads: 3)
            var host = SessionSnapshot.Host(name: "https://a.test")
            (host.active, host.resting, host.streams) = (.max, 1, [.max, 1])
            host.traffic.bytesReceived = bytes
            snapshot.hosts = [host, host]
            snapshot.total.bytesReceived = .min
            return snapshot
        }
        var table = TopTable()
        let numbers: [(Int64, Int64)] = [(.min, .min), (.max, .max), (.max, .min), (.max, .max), (0, 0)]
        for (moment, bytes) in numbers {
            let now = snapshot(moment, bytes)
            #expect(!table.lines(now, columns: 120).isEmpty)
            #expect(OpenMetricsText(now).text.hasSuffix("# EOF\n"))
        }
    }

    @Test("the command line")
    func arguments() throws {
        #expect(try TopCommand.parse(["--once", "s"]) == .init(path: "s", endsSoon: true))
        #expect(try TopCommand.parse(["s", "--json"]) == .init(path: "s", printsJSON: true))
        #expect(try TopCommand.parse(["-h"]) == nil)
        for wrong in [[], ["a", "b"], ["--frequently", "s"]] {
            #expect(throws: UsageError.self) { try TopCommand.parse(wrong) }
        }
    }

    @Test(
        "a bar shows how much of its lifetime a stored response has left",
        arguments: [
            (0.0, 7200.0, "██████████   2h left"), (3600, 7200, "█████░░░░░  60m left"),
            (7190, 7200, "█░░░░░░░░░  10s left"),
            (7200, 7200, "░░░░░░░░░░     stale"), (.infinity, 7200, "░░░░░░░░░░     stale"),
            (0, 0, "░░░░░░░░░░     stale"),
        ])
    func freshness(_ age: Double, _ lifetime: Double, _ bar: String) {
        #expect(CacheLines.freshness((age, lifetime)) == bar)
    }
}
