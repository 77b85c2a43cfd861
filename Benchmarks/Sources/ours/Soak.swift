// SPDX-License-Identifier: Apache-2.0

// Many loads of which some fail: the memory after each twentieth of them, and the errors by reason.

import BenchMeasure
import FoundationEssentials
import Glibc
import Synchronization
import URLLoading

extension Ours {
    /// Prints a line for each part: loads so far, how many of them failed, and the memory of the process in KB.
    func soak(_ url: String, _ requests: Int) async {
        let parts = 20
        let reasons = Mutex<[String: Int]>([:])
        for part in 1...parts {
            await soakPart(Request(url: URL(string: url)!), requests / parts, reasons)
            let failed = reasons.withLock { $0.values.reduce(0, +) }
            print(requests / parts * part, failed, bench_rss())
            fflush(nil)
        }
        for (reason, count) in reasons.withLock({ $0 }).sorted(by: { $0.key < $1.key }) { print("#", reason, count) }
    }

    private func soakPart(_ request: Request, _ requests: Int, _ reasons: borrowing Mutex<[String: Int]>) async {
        let countdown = Countdown(requests)
        let failures = await withTaskGroup(of: [String].self) { group in
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
        reasons.withLock { reasons in
            for failure in failures { reasons[failure, default: 0] += 1 }
        }
    }
}
