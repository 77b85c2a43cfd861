// Whether a request is sent again at once after a failure that is nobody's. Pure. What a policy says of other
// failures is `BackoffPlan`'s.

import URLLoadingWire

struct RetryPlan {
    private let isReplayable: Bool
    private var attempts = 0
    private var refusals = 0
    private var wasMisdirected = false
    private static let mostRefusals = 3
    /// The next attempt must not use a connection that was idle.
    private(set) var wantsFresh = false
    /// The server does not know what `Expect` asks for.
    private(set) var dropsExpectation = false

    /// A challenge has been answered.
    var isChallenged = false

    private let isRepeated: Bool

    /// - Parameter isRepeated: it was sent before, for another reason.
    init(_ request: Request, isRepeated: Bool = false) {
        self.isRepeated = isRepeated
        // RFC 9110 §9.2.2: only what may arrive twice is sent twice without asking.
        isReplayable = request.method.isIdempotent
    }

    /// A kept connection that the peer closed in the same moment is nobody's fault: the request was
    /// not answered, and is sent once more on a new one (RFC 9112 §9.3.1).
    /// - Parameter isUnprocessed: the server says that it has not looked at the request: that may be sent again
    ///   whatever it asks for (RFC 9113 §8.7), but not for ever.
    mutating func retry(after error: LoadError, isStale: Bool, isUnprocessed: Bool = false) -> Bool {
        if isUnprocessed, refusals < Self.mostRefusals {
            refusals += 1
            return true
        }
        guard isStale, isReplayable, attempts == 0, error.isLostConnection else { return false }
        attempts += 1
        wantsFresh = true
        return true
    }

    /// RFC 9110 §15.5.18: the request again, without the expectation the server cannot meet.
    /// RFC 9110 §15.5.20: once more on another connection, if this one is shared.
    mutating func retry(after status: Status?, _ request: PreparedRequest, isShared: Bool = false) -> Bool {
        if status == .misdirectedRequest, isShared, !wasMisdirected {
            wasMisdirected = true
            return true
        }
        guard status == .expectationFailed, request.expectsContinue else { return false }
        dropsExpectation = true
        return true
    }

    /// Why a body is made again; `nil` for the first time.
    var cause: BodyProviderContext.Cause? {
        isChallenged
            ? .challenge
            : dropsExpectation
                ? .expectationFailed
                : wantsFresh || refusals > 0 || wasMisdirected ? .staleConnection : isRepeated ? .retry : nil
    }
}

extension LoadError {
    fileprivate var isLostConnection: Bool { reason == .connectionLost || reason == .truncated }
}
