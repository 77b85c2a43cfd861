// SPDX-License-Identifier: Apache-2.0

// Many loads of which some fail: the memory after each twentieth of them, and the errors by reason.

import BenchMeasure
import FoundationEssentials
import Glibc
import URLLoading

extension Ours {
    /// Prints a line for each part: loads so far, how many of them failed, and the memory of the process in KB.
    func soak(_ url: String, _ requests: Int) async {
        let parts = 20
        var reasons: [String: Int] = [:]
        for part in 1...parts {
            for reason in await failures(of: requests / parts, Request(url: URL(string: url)!)) {
                reasons[reason, default: 0] += 1
            }
            print(requests / parts * part, reasons.values.reduce(0, +), bench_rss())
            fflush(nil)
        }
        for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) { print("#", reason, count) }
    }

    private func failures(of requests: Int, _ request: Request) async -> [String] {
        let countdown = Countdown(requests)
        return await withTaskGroup(of: [String].self) { group in
            for _ in 0..<connections {
                group.addTask {
                    var failures: [String] = []
                    while countdown.next() != nil {
                        do { _ = try await get(request) } catch {
                            failures.append((error as? LoadError).map { "\($0.reason)" } ?? "\(error)")
                        }
                    }
                    return failures
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
    }
}
