// SPDX-License-Identifier: Apache-2.0

// Decides whether and when a stream of events reconnects. Pure: the time and the random number are parameters.

enum ReconnectionPlan: Sendable {
    /// Reconnect after this many nanoseconds, at least 0.
    case connect(after: Int64)
    case end
    case fail(LoadError)

    /// The history of the stream's connections.
    struct History: Sendable {
        /// True if a connection has delivered a stream.
        var wasConnected = false
        /// The number of consecutive failed attempts.
        var failures = 0
        /// The reconnection time that the server has sent.
        var retry: Duration?
        /// Nanoseconds since the stream was lost.
        var lostFor: Int64 = 0
    }

    /// - Parameters:
    ///   - error: the error that ended the last connection; `nil` if it ended regularly.
    ///   - chance: a random number, 0..<1, for the jitter.
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

    /// Returns the delay in nanoseconds, at most about 146 years.
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
    /// True for failures of networks and servers, which may be temporary. Certificates and local refusals are
    /// permanent.
    fileprivate var maySucceedLater: Bool { Self.temporary.contains(reason) }

    /// `streamReset` is how an HTTP/2 proxy reports that it has lost the server. A compressed stream that ends where
    /// its coding does not is damaged: `contentDecodingFailed`.
    private static let temporary = RetryPolicy.transientReasons.union([
        .hostNotFound, .cannotConnect, .secureConnectionFailed, .contentDecodingFailed,
    ])
}
