// The connect timeout: a limit on the attempt, and not on the load. It ends the attempt's waits with an error that a
// retry policy, another way through proxies, or the handler that asked can act upon.

import URLLoadingIO

/// What is left of the connect timeout for a connection that is made in several parts.
struct ConnectTime: Sendable {
    /// Nil without a limit, and inside another attempt, whose limit holds.
    fileprivate let attempt: TimedAttempt?

    init(_ handle: LoadHandle) {
        let isLimited = handle.connectLimit != .max && handle.attempt == nil
        attempt = isLimited ? TimedAttempt(handle, timeout: handle.connectLimit) : nil
    }
}

extension LoadHandle {
    /// Makes a connection, or a part of one, within what is left of the connect timeout.
    func connecting<Value>(
        _ time: ConnectTime? = nil, _ attempt: () async throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        guard let timed = (time ?? ConnectTime(self)).attempt else { return try await attempt() }
        do throws(LoadError) { return try await attempting(timed, attempt) } catch { throw error.after(connectLimit) }
    }
}

extension LoadError {
    /// Says how long a connect timeout was. The words that open a connection are part of connecting.
    fileprivate func after(_ limit: Int64) -> LoadError {
        guard reason == .connectTimeout else { return self }
        let isOpening = [.resolving, .connecting, .securing].contains(phase)
        let words = "no connection within \(Duration.nanoseconds(limit))"
        return LoadError(
            reason, phase: isOpening ? phase : .connecting, party: party, url: url,
            detail: detail.map { "\($0): \(words)" } ?? words, underlying: underlying, resumeToken: resumeToken)
    }
}
