// SPDX-License-Identifier: Apache-2.0

// Divides the time of a transaction into phases whose sum is the whole. Pure.

/// The phases in milliseconds; -1 for phases that do not apply. `ssl` is part of `connect`.
struct HARTimings: Encodable, Sendable {
    let blocked: Double
    let dns: Double
    let connect: Double
    let ssl: Double
    let send: Double
    let wait: Double
    let receive: Double
    /// The whole time in milliseconds.
    let time: Double

    private enum CodingKeys: CodingKey { case blocked, dns, connect, ssl, send, wait, receive }

    /// Ends each phase where the next one begins, so that time in between counts for the earlier.
    init(_ transaction: LoadMetrics.Transaction) {
        let start = transaction.fetchStart
        let end = transaction.end
        // In whole microseconds from the start, so that differences add up.
        func place(_ moment: LoadMetrics.Moment?) -> Int64? { moment.map { ($0 - start).microseconds } }
        let whole = (end - start).microseconds
        let (lookup, dial, request) = (
            place(transaction.lookupStart), place(transaction.connectStart), place(transaction.requestStart)
        )
        let answer = place(transaction.responseStart)
        let isSent = transaction.fetchType == .network
        let sending = request ?? (isSent ? whole : 0)
        let waiting = max(sending, isSent ? min(place(transaction.requestEnd) ?? whole, answer ?? whole) : 0)
        let receiving = max(waiting, answer ?? whole)

        blocked = isSent ? (lookup ?? dial ?? sending).milliseconds : -1
        dns = lookup.map { ((dial ?? sending) - $0).milliseconds } ?? -1
        connect = dial.map { (sending - $0).milliseconds } ?? -1
        ssl = place(transaction.secureStart).map { ((place(transaction.secureEnd) ?? sending) - $0).milliseconds } ?? -1
        send = (waiting - sending).milliseconds
        wait = (receiving - waiting).milliseconds
        receive = (whole - receiving).milliseconds
        time = whole.milliseconds
    }
}

extension Duration {
    fileprivate var microseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}

extension Int64 {
    /// The milliseconds of a number of microseconds.
    fileprivate var milliseconds: Double { Double(self) / 1000 }
}
