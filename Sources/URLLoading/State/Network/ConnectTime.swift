// SPDX-License-Identifier: Apache-2.0

// The connect timeout: it limits one connection attempt, not the load. Its error can lead to a retry, to another proxy
// chain, or to an alternative in a custom handler.

import URLLoadingIO

/// The remaining connect timeout of a connection that is made in several steps.
struct ConnectTime: Sendable {
    /// Nil without a limit, and inside another attempt, whose limit applies.
    fileprivate let attempt: TimedAttempt?

    init(_ handle: LoadHandle) {
        let isLimited = handle.connectLimit != .max && handle.attempt == nil
        attempt = isLimited ? TimedAttempt(handle, timeout: handle.connectLimit) : nil
    }
}

extension LoadHandle {
    /// Makes a connection, or a part of one, within the rest of the connect timeout.
    func connecting<Value>(
        _ time: ConnectTime? = nil, _ attempt: () async throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        guard let timed = (time ?? ConnectTime(self)).attempt else { return try await attempt() }
        do throws(LoadError) { return try await attempting(timed, attempt) } catch {
            // The system, or QUIC, may give up before.
            throw timed.isOver ? error.after(connectLimit) : error
        }
    }
}

extension LoadError {
    /// Adds the length of the connect timeout to the error. Messages that open a tunnel count as part of connecting.
    fileprivate func after(_ limit: Int64) -> LoadError {
        guard reason == .connectTimeout else { return self }
        let isOpening = [.resolving, .connecting, .securing].contains(phase)
        let words = "no connection within \(Duration.nanoseconds(limit))"
        return adding(words).with(phase: isOpening ? phase : .connecting)
    }
}
