// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The text before the tables of a page that has far scenarios only.
let farIntroduction = """
    # Benchmarks at a distance

    Clients behind a relay that delays every byte by 25 or 75 ms in each direction (a round trip of 50 or 150 ms).
    Client, relay and server run on one machine. Measured inside the client's process: wall time of a request with the
    CPU time of the client beside it. The rounds of all clients are interleaved.

    | contender | |
    |---|---|
    | `ours`, `ours-loop` | URLLoading on the default pool, and on the event loop's executor |
    | `ws-echo`, `ws-echo-loop` | a WebSocket of URLLoading, on both |
    | `curlmulti`, `go` | libcurl's multi interface, Go's net/http |

    - `wall ms`: from the start of a request to the last byte of its response, the mean of a round: median, best and
      worst round. With 64 at once, from the start of the first to the end of the last. `CPU ms` is the client's user
      and system time in the same span, `RSS MB` the peak of its memory.
    - The title has the least time that the protocol allows: the connect, TLS 1.3 and the request take a round trip
      each. Time that the server or its first window add is the same for all clients.
    - A body has a connection of its own, so windows begin at their first size. A warm-up without the distance precedes
      it, so that no first use of code is measured.
    - Paths without a rate are limited only by the relay and the two cores that all three processes share: `far-0` shows
      what the relay passes without a delay. With 125 MB/s the relay holds what is on its way and a queue of one round
      trip, as a router would.
    - There is no packet loss and no slow start of TCP: what shows is what clients add to the distance.
    """

extension Page {
    /// The table of a scenario with a distance: wall time first. With several requests at a time, all figures are those
    /// of so many requests together.
    func farTable(_ scenario: Scenario, _ results: [Result]) -> String {
        let isBody = scenario.bytesEach >= 1_000_000
        let heads = ["wall ms", "best", "worst", "CPU ms"] + (isBody ? ["MB/s"] : []) + ["switch", "RSS MB"]
        let together = Double(scenario.connections)
        let lines = results.filter { !$0.unsupported }.map { result in
            let wall = result.wall.map { $0 * together }
            let cells = [
                number(median(wall).map { $0 * 1e3 }),
                number(wall.min().map { $0 * 1e3 }),
                number(wall.max().map { $0 * 1e3 }),
                number(median(result.cpu.compactMap { $0 }).map { $0 * together * 1e3 }),
            ]
            let rate = median(wall).map { Double(scenario.bytesEach) * together / $0 / 1e6 }
            let rest = [
                number(median(result.switches).map { $0 * together }), number(median(result.maxRSS).map { $0 / 1024 }),
            ]
            let remark = result.remark.map { "  ! \($0)" } ?? ""
            return row(result.contender.name, cells + (isBody ? [number(rate)] : []) + rest) + remark
        }
        return (["\(scenario.name): \(scenario.title)", row("", heads)] + lines).joined(separator: "\n")
    }
}
