// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

// Whether requests to one server are made, after how it has answered before. Pure: the time is a parameter.
//
//     closed ──failures──▶ open ──time──▶ probing ──success──▶ closed
//                           ▲                │
//                           └────failure─────┘

struct Circuit: Sendable, Equatable {
    enum State: Sendable, Equatable {
        /// Requests are made.
        /// - failures: the number of failures since the last success.
        case closed(failures: Int)
        /// No request is made until that moment.
        case open(until: Int64)
        /// One request is under way, and decides.
        case probing
    }
    private(set) var state = State.closed(failures: 0)

    /// Whether a request may be made now; it is then to be concluded.
    /// - Parameter now: nanoseconds of the session's clock, here as in every method.
    mutating func admits(now: Int64) -> Bool {
        switch state {
        case .closed: return true
        case .open(let until) where until > now: return false
        case .open:
            state = .probing
            return true
        case .probing: return false
        }
    }

    /// Whether no request may be made now.
    func forbids(now: Int64) -> Bool {
        switch state {
        case .closed: false
        case .open(let until): until > now
        case .probing: true
        }
    }

    enum Outcome: Sendable { case success, failure, none }

    /// Notes how a request ended.
    /// - Parameters:
    ///   - limit: the number of failures after which requests stop.
    ///   - pause: nanoseconds for which they stop.
    mutating func conclude(_ outcome: Outcome, limit: Int, pause: Int64, now: Int64) {
        switch (state, outcome) {
        case (.closed, .success), (.probing, .success): state = .closed(failures: 0)
        case (.closed(let failures), .failure):
            state = failures + 1 < limit ? .closed(failures: failures + 1) : .open(until: now.saturatingAdd(pause))
        case (.probing, .failure): state = .open(until: now.saturatingAdd(pause))
        // The request proved nothing: the next one may.
        case (.probing, .none): state = .open(until: now)
        // Requests that were made before.
        case (.closed, .none), (.open, _): break
        }
    }
}
