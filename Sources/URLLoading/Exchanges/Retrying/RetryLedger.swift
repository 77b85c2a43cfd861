// SPDX-License-Identifier: Apache-2.0

// Counts the requests and the retries of a session, and decides whether a retry is within the budget. Pure: the time is
// a parameter.

import Synchronization
import URLLoadingIO

struct RetryLedger: Sendable {
    /// The number of seconds to which the budget applies.
    static let window: Int64 = 10

    private struct Second: Sendable {
        var requests = 0
        var retries = 0
    }
    private let budget: RetryBudget
    /// The last seconds, each at its number modulo the window.
    private var seconds = [Second](repeating: Second(), count: Int(Self.window))
    /// The sum of all seconds.
    private var sum = Second()
    private var latest = Int64.min

    init(_ budget: RetryBudget) { self.budget = budget }

    /// A retry that was planned, for `giveBack`.
    struct Entry: Sendable { fileprivate let second: Int64 }

    /// Counts a request.
    /// - Parameter now: the time of the session's clock in nanoseconds, here as in every method.
    mutating func began(now: Int64) {
        let index = turn(to: now)
        seconds[index].requests += 1
        sum.requests += 1
    }

    /// Counts a retry. Returns `nil`, and counts nothing, if it is beyond the budget.
    mutating func plan(now: Int64) -> Entry? {
        let index = turn(to: now)
        let minimum = Self.valid(budget.minimumPerSecond) * Double(Self.window)
        guard Double(sum.retries + 1) <= Self.valid(budget.share) * Double(sum.requests) + minimum else { return nil }
        seconds[index].retries += 1
        sum.retries += 1
        return Entry(second: latest)
    }

    /// Removes a retry that was not made.
    mutating func giveBack(_ entry: Entry, now: Int64) {
        turn(to: now)
        guard entry.second > latest - Self.window else { return }
        seconds[Self.index(entry.second)].retries -= 1
        sum.retries -= 1
    }

    /// Forgets the seconds that have left the window. Returns the index of the current one.
    @discardableResult
    private mutating func turn(to now: Int64) -> Int {
        let second = max(latest, now / 1_000_000_000)
        for forgotten in max(latest, second - Self.window)..<second {
            let index = Self.index(forgotten + 1)
            sum.requests -= seconds[index].requests
            sum.retries -= seconds[index].retries
            seconds[index] = Second()
        }
        latest = second
        return Self.index(second)
    }

    private static func index(_ second: Int64) -> Int { Int((second % window + window) % window) }
    private static func valid(_ number: Double) -> Double { number >= 0 ? min(number, .greatestFiniteMagnitude) : 0 }
}

/// The ledger of a session.
final class RetryAccount: Sendable {
    private let ledger: Lock<RetryLedger>

    init(_ budget: RetryBudget) { ledger = Lock(RetryLedger(budget)) }

    func began(now: Int64) { ledger.withLock { $0.began(now: now) } }
    func plan(now: Int64) -> RetryLedger.Entry? { ledger.withLock { $0.plan(now: now) } }
    func giveBack(_ entry: RetryLedger.Entry, now: Int64) { ledger.withLock { $0.giveBack(entry, now: now) } }
}
