// SPDX-License-Identifier: Apache-2.0

// Retries by policy, and the wait for connectivity: apart from `HTTPHandler`, so that loads without them do not pay for
// them.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension HTTPHandler {
    /// Attempts the request as often as the retry policy allows.
    @inline(never)
    static func runAttempts(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any NetworkExchange {
        let policy = hop.request.retryPolicy ?? load.core.configuration.retries.policy ?? .never
        var plan = BackoffPlan(hop.request, policy, now: load.clock.now())
        load.core.retries?.began(now: load.clock.now())
        while true {
            let retry: Retry
            var entry: RetryLedger.Entry?
            let endsOnPathChange: Bool
            do throws(LoadError) {
                let exchange = try await exchange(hop, for: load, attempt: plan.attempts)
                guard let head = exchange.head, let next = plan.retry(after: head, load),
                    load.affords(next, &entry)
                else { return exchange }
                hop.calls?.repeats(after: head)
                exchange.release()
                (retry, endsOnPathChange) = (next, false)
            } catch {
                guard let next = plan.retry(after: error, now: load.clock.now(), roll: .random(in: 0..<1)),
                    load.mayRetry(), load.affords(next, &entry)
                else { throw error }
                (retry, endsOnPathChange) = (next, policy.retriesOnNetworkChange)
            }
            do throws(LoadError) { try await load.backoff(retry, endsOnPathChange: endsOnPathChange) } catch {
                if let entry { load.core.retries?.giveBack(entry, now: load.clock.now()) }
                throw error.at(hop.request.url)
            }
        }
    }

    /// Leases a connection, after a wait for a network if there is none.
    @inline(never)
    static func leaseWaiting(
        _ route: Route, _ wanted: ConnectionRequest, for load: LoadContext, inHTTP1: Bool
    ) async throws(LoadError) -> LeasedConnection {
        while true {
            do throws(LoadError) {
                return try await load.core.pool.lease(route, for: wanted, inHTTP1: inHTTP1)
            } catch {
                guard try await load.waitForConnectivity(after: error, wanted.access) else { throw error }
            }
        }
    }
}

extension LoadContext {
    /// Whether the session's budget allows a retry, which it then counts.
    func affords(_ retry: Retry, _ entry: inout RetryLedger.Entry?) -> Bool {
        guard let account = core.retries else { return true }
        entry = account.plan(now: clock.now())
        if entry == nil { events?.refused(retry) }
        return entry != nil
    }
}

extension BackoffPlan {
    mutating func retry(after head: HTTPHead, _ load: LoadContext) -> Retry? {
        let date = HTTPDate(secondsSince1970: Int64(Date.now.timeIntervalSince1970))
        return retry(after: head, now: load.clock.now(), date: date, roll: .random(in: 0..<1))
    }
}
