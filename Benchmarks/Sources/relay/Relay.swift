// SPDX-License-Identifier: Apache-2.0

// The distance of the far scenarios: a process that relays to a port of 127.0.0.1 with a delay in each direction.
// Prints its port. A process of its own, so that its CPU time does not count as the client's.

import BenchMeasure
import Glibc
import URLLoadingTesting

@main
struct Relay {
    static func main() async throws {
        let words = CommandLine.arguments.dropFirst().map { Int($0) }
        guard words.count == 4, let port = words[0].flatMap(UInt16.init(exactly:)), let delay = words[1],
            let rate = words[2], let queue = words[3], delay >= 0, rate >= 0, queue > 0
        else { bench_fail("usage: relay <port> <milliseconds one way> <bytes per second, or 0> <bytes of a queue>") }
        let conditions = NetworkConditions(
            delay: .milliseconds(delay), rate: rate == 0 ? nil : rate, queueLimit: queue)
        let relay = try NetworkRelay(toPort: port, conditions)
        print(relay.port)
        fflush(nil)  // flushes, because output into a pipe is buffered
        await relay.run()
    }
}
