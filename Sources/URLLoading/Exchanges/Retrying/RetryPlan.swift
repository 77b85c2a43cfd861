// SPDX-License-Identifier: Apache-2.0

// In this folder: whether a request is sent again: at once, or after a delay

// Decides whether a request is repeated at once after a failure for which neither side is responsible. Pure. Retries
// under a policy are decided by `BackoffPlan`.

import URLLoadingWire

struct RetryPlan {
    private let isReplayable: Bool
    private var attempts = 0
    private var refusals = 0
    private var wasMisdirected = false
    private var wasTooEarly = false
    private static let maximumRefusals = 3
    private var streamRefusals = 0
    private static let maximumStreamRefusals = 6
    /// The nanoseconds to wait before the next attempt, at least 0, from which a random part is taken.
    private(set) var pause: Int64 = 0

    /// The server states that it has not processed the request (RFC 9113 §8.7).
    enum Refusal {
        /// The connection has ended, and none of its requests was answered.
        case alone
        /// The connection has ended, and others of its requests were answered, so there are no more such connections
        /// than answers: a later attempt will be among those.
        case amongResponses
        /// The connection goes on. Nothing says that a later attempt will be answered.
        case ofStream
    }
    /// True if the next attempt must not use an idle connection.
    private(set) var wantsFresh = false
    /// True if the server does not support the request's `Expect` field.
    private(set) var dropsExpectation = false

    /// True once a challenge has been answered.
    var isChallenged = false

    private let isRepeated: Bool

    /// - Parameter isRepeated: true if the request was sent before, for another reason.
    init(_ request: Request, isRepeated: Bool = false) {
        self.isRepeated = isRepeated
        // RFC 9110 §9.2.2: by default, only idempotent requests are sent twice.
        isReplayable = request.method.isIdempotent
    }

    /// Returns whether to repeat the request. If a peer closes an idle connection while a request is sent on it, the
    /// request was not answered, and is repeated once on a new connection (RFC 9112 §9.3.1).
    /// - Parameter refusal: the request may be repeated whatever its method: as long as the server ends its connections
    ///   after answers, and otherwise a limited number of times.
    mutating func retry(after error: LoadError, isStale: Bool, refusal: Refusal? = nil) -> Bool {
        pause = 0
        if refusal == .ofStream {
            streamRefusals += 1
            guard streamRefusals <= Self.maximumStreamRefusals else { return false }
            // The first time at once, because the limit of streams may have been exceeded before it was known; then
            // after 50, 100, 200, 400 and 800 ms.
            pause = streamRefusals > 1 ? 50_000_000 << (streamRefusals - 2) : 0
            return true
        }
        if let refusal, refusal == .amongResponses || refusals < Self.maximumRefusals {
            // The count begins anew with each sign of progress.
            refusals = refusal == .amongResponses ? 1 : refusals + 1
            return true
        }
        guard isStale, isReplayable, attempts == 0, error.isLostConnection else { return false }
        attempts += 1
        wantsFresh = true
        return true
    }

    /// Returns whether to repeat the request because of its status: without the expectation that the server cannot meet
    /// (RFC 9110 §15.5.18), once on another connection if this one is shared (RFC 9110 §15.5.20), or once after the
    /// handshake if it was sent as early data (RFC 8470 §5.2).
    mutating func retry(
        after status: Status?, _ request: PreparedRequest, isShared: Bool = false, wasEarly: Bool = false
    ) -> Bool {
        if status == .tooEarly, wasEarly, !wasTooEarly {
            wasTooEarly = true
            return true
        }
        if status == .misdirectedRequest, isShared, !wasMisdirected {
            wasMisdirected = true
            return true
        }
        guard status == .expectationFailed, request.expectsContinue else { return false }
        dropsExpectation = true
        return true
    }

    /// Whether this is the first sending of the request within an attempt of the retry policy.
    var isFirst: Bool { cause == nil || cause == .retry }

    /// The reason for which the body is required again; `nil` for the first time.
    var cause: BodyProviderContext.Cause? {
        if isChallenged { return .challenge }
        if dropsExpectation { return .expectationFailed }
        if wantsFresh || refusals + streamRefusals > 0 || wasMisdirected || wasTooEarly { return .staleConnection }
        return isRepeated ? .retry : nil
    }
}

extension LoadError {
    fileprivate var isLostConnection: Bool { reason == .connectionLost || reason == .truncated }
}
