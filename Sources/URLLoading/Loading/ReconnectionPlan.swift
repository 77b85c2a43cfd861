// Whether and when a stream of events connects again: pure, with chance and time passed in.

enum ReconnectionPlan: Sendable {
    /// Nanoseconds, at least 0.
    case connect(after: Int64)
    case end
    case fail(LoadError)

    /// What is known of the connections so far.
    struct History: Sendable {
        /// One of them brought a stream.
        var wasConnected = false
        /// Attempts in a row that brought nothing.
        var failures = 0
        /// What the server said about the wait.
        var retry: Duration?
        /// Nanoseconds since the stream was lost.
        var lostFor: Int64 = 0
    }

    /// - Parameters:
    ///   - error: why the last connection ended; `nil` if it ended well.
    ///   - chance: 0..<1.
    static func make(
        after error: LoadError?, _ history: History, _ reconnection: ServerSentEvents.Reconnection, chance: Double
    ) -> ReconnectionPlan {
        let giveUp = error.map { ReconnectionPlan.fail($0) } ?? .end
        if let error, !error.maySucceedLater { return giveUp }
        guard history.wasConnected || reconnection.retriesFirstConnection else { return giveUp }
        if let attempts = reconnection.maximumAttempts, history.failures >= max(0, attempts) { return giveUp }
        let wait = delay(history, reconnection, chance: chance)
        if let time = reconnection.maximumDuration, history.lostFor &+ wait > LoadHandle.nanoseconds(time) {
            return giveUp
        }
        return .connect(after: wait)
    }

    /// At most about 146 years.
    private static func delay(
        _ history: History, _ reconnection: ServerSentEvents.Reconnection, chance: Double
    ) -> Int64 {
        let least = nanoseconds(reconnection.delayBounds.lowerBound)
        let most = nanoseconds(reconnection.delayBounds.upperBound)
        var delay = min(max(nanoseconds(history.retry ?? reconnection.delay), least), most)
        for _ in 0..<history.failures where delay > 0 && delay < most { delay = delay > most / 2 ? most : delay * 2 }
        let jitter = Double(delay) * max(0, reconnection.jitter.isFinite ? reconnection.jitter : 0) * chance
        return jitter < Double(Int64.max / 2 - delay) ? delay + Int64(jitter) : .max / 2
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        duration <= .zero ? 0 : LoadHandle.nanoseconds(duration)
    }
}

extension LoadError {
    /// Networks and servers come back; what this side forbids, or a certificate, does not change by itself.
    fileprivate var maySucceedLater: Bool { Self.passing.contains(reason) }

    private static let passing: Set<Reason> = [
        .idleTimeout, .connectTimeout, .hostNotFound, .lookupFailed, .connectionRefused, .unreachable, .cannotConnect,
        .connectionLost, .truncated, .secureConnectionFailed,
    ]
}
