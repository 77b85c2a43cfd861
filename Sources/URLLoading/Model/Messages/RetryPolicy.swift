// SPDX-License-Identifier: Apache-2.0

public import URLLoadingWire

/// The rules for retries of failed requests: which failures are retried, how often, and after which delay. A value, for
/// a session (``Configuration/Retries/policy``) or a request (``Request/retryPolicy``).
///
/// ```swift
/// var policy = RetryPolicy()
/// policy.statuses = RetryPolicy.transientStatuses
/// policy.maximumAttempts = 5
/// configuration.retries.policy = policy
/// ```
/// The policy covers failures before the response: once its head is delivered, later failures are not retried, except
/// for the parts of a download (``DownloadOptions/parallelRanges``). Each request of a chain of redirects has its own
/// count. ``LoadEvent/retrying(_:)`` announces each retry. After the last
/// attempt the load ends with that attempt's response or error.
///
/// The resource timeout spans all attempts and the delays between them; the idle timeout runs within each attempt. A
/// suspended load makes no attempt. The body of a request is opened anew for each attempt, as for a redirect; if that
/// fails, the load ends with that error. Responses of a ``ProtocolHandler`` are not retried, but its own network
/// requests are; there, an idle timeout is final.
public struct RetryPolicy: Sendable, Hashable {
    /// The delay before a retry. All durations are at least zero.
    public enum Backoff: Sendable, Hashable {
        /// A random delay between zero and a bound: `base` before the second attempt, doubled for each that follows, at
        /// most `cap`. The randomness spreads the retries of clients that failed together.
        case exponential(base: Duration, cap: Duration)
        /// The same delay before each retry.
        case constant(Duration)
    }

    /// The failures that may be temporary: ``LoadError/Reason/connectionLost``, ``LoadError/Reason/truncated``,
    /// ``LoadError/Reason/streamReset`` (with which an HTTP/2 proxy reports that it has lost the connection to the
    /// server), ``LoadError/Reason/connectionRefused``, ``LoadError/Reason/unreachable``,
    /// ``LoadError/Reason/lookupFailed``, ``LoadError/Reason/idleTimeout``, ``LoadError/Reason/connectTimeout`` and,
    /// for FTP, ``LoadError/Reason/ftpServiceUnavailable``.
    public static let transientReasons: Set<LoadError.Reason> = [
        .connectionLost, .truncated, .streamReset, .connectionRefused, .unreachable, .lookupFailed, .idleTimeout,
        .connectTimeout, .ftpServiceUnavailable,
    ]
    /// The statuses that may be temporary: 408, 429, 500, 502, 503 and 504.
    public static let transientStatuses: Set<Status> = [
        .requestTimeout, .tooManyRequests, .internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]
    /// No retries: for a request of a session with another policy.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// The failures to retry; ``transientReasons`` by default. A load that was cancelled, or has exceeded its resource
    /// timeout, is never retried.
    public var reasons = transientReasons
    /// True to retry every failure that this program has not caused itself, whatever ``reasons`` are:
    /// `urlload --retry-all-errors`.
    package var retriesEveryFailure = false
    /// The statuses to retry; none by default. Such a response is discarded with its body; the last one is delivered.
    public var statuses: Set<Status> = []
    /// The maximum number of attempts, the first included; at least 1.
    public var maximumAttempts: Int
    /// The time after the first attempt within which retries may begin; `nil` for no limit.
    public var maximumDuration: Duration?
    /// The delay before a retry.
    public var backoff = Backoff.exponential(base: .seconds(1), cap: .seconds(60))
    /// The longest delay accepted from a server's Retry-After (RFC 9110 §10.2.3). The server's delay is added to
    /// ``backoff``. A response that asks for a longer delay is delivered, because an earlier retry would disregard the
    /// server's request.
    public var maximumRetryAfter: Duration = .seconds(60)
    /// Whether a new or changed network ends the delay after an error; true by default.
    public var retriesOnNetworkChange = true
    /// Whether methods other than GET, HEAD, QUERY, OPTIONS, TRACE, PUT and DELETE are retried; false by default. The
    /// server may have processed a failed request, and then processes it twice (RFC 9110 §9.2.2): only for servers that
    /// detect duplicates.
    public var retriesNonIdempotent = false

    /// Creates a policy with default settings.
    /// - Parameter maximumAttempts: the number of attempts including the first, at least 1.
    public init(maximumAttempts: Int = 3) { self.maximumAttempts = maximumAttempts }
}

/// A retry of a request, as reported by ``LoadEvent/retrying(_:)``.
public struct Retry: Sendable, CustomStringConvertible {
    /// The outcome of the previous attempt.
    public enum Cause: Sendable {
        /// The attempt failed before it had a response.
        case failed(LoadError)
        /// The server responded with a status of ``RetryPolicy/statuses``.
        case status(Status)
    }
    /// The outcome of the previous attempt.
    public let cause: Cause
    /// The number of the next attempt, from 2.
    public let attempt: Int
    /// The maximum delay before the next attempt.
    public let delay: Duration

    /// The retry on one line: `attempt 2 in 0.7 s after 503 Service Unavailable`.
    public var description: String {
        let why =
            switch cause {
            case .failed(let error): "\(error)"
            case .status(let status): "\(status)"
            }
        let tenths = delay.components.seconds * 10 + delay.components.attoseconds / 100_000_000_000_000_000
        return "attempt \(attempt) in \(tenths / 10).\(tenths % 10) s after \(why)"
    }
}
