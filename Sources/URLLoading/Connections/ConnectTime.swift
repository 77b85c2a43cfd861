// The connect timeout: a limit on the attempt, and not on the load. What ends is the attempt's wait, with an error
// that a retry policy, another way through proxies, or the handler that asked can act upon.

import URLLoadingIO

/// What is left of the connect timeout for a connection that is made in several parts.
struct ConnectTime: Sendable {
    /// In nanoseconds; `.max` without a limit.
    fileprivate var left: Int64

    init(_ control: LoadControl) { left = control.connectLimit }
}

extension LoadControl {
    /// Makes a connection within the connect timeout. Inside another attempt, the limit is that one's.
    final func connecting<Value>(_ attempt: () async throws(LoadError) -> Value) async throws(LoadError) -> Value {
        guard connectLimit != .max else { return try await attempt() }
        var time = ConnectTime(self)
        return try await connecting(&time, attempt)
    }

    /// Makes a part of a connection within what the parts before it have left of the connect timeout.
    final func connecting<Value>(
        _ time: inout ConnectTime, _ attempt: () async throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        guard time.left != .max, !isInAttempt else { return try await attempt() }
        beginAttempt(within: time.left)
        defer { time.left = endAttempt() }
        do throws(LoadError) { return try await attempt() } catch { throw error.after(connectLimit) }
    }
}

extension LoadError {
    /// Says how long a connect timeout was. What was being said to open the connection is part of connecting.
    fileprivate func after(_ limit: Int64) -> LoadError {
        guard reason == .connectTimeout else { return self }
        let isOpening = [.resolving, .connecting, .securing].contains(phase)
        let words = "no connection within \(Duration.nanoseconds(limit))"
        return LoadError(
            reason, phase: isOpening ? phase : .connecting, party: party, url: url,
            detail: detail.map { "\($0): \(words)" } ?? words, underlying: underlying, resumeToken: resumeToken)
    }
}
