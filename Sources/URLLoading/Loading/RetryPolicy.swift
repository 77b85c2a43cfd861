public import URLLoadingWire

/// Which failures of a request are worth another try, how often, and after how long: a value, for a session
/// (``Configuration/retryPolicy``) or a request (``Request/retryPolicy``).
///
/// ```swift
/// var policy = RetryPolicy()
/// policy.statuses = RetryPolicy.transientStatuses
/// policy.maximumAttempts = 5
/// configuration.retryPolicy = policy
/// ```
/// It is about failures before the response: once its head is delivered, what fails then is the caller's. Each
/// request of a chain of redirects has its own count. ``LoadEvent/retrying(_:)`` tells of each try but the
/// first. After the last one the load ends as that did: with its response, or its error.
///
/// The resource timeout spans all tries and the waits between them; the idle timeout runs within each, not between.
/// A suspended load makes no try. The body of a request is made anew each time, as for a redirect; if that fails, the
/// load ends with the error of that. Answers of a ``ProtocolHandler`` are not tried again, but what it asks the
/// network for is; there, a load that was stopped by its idle timeout stays stopped.
public struct RetryPolicy: Sendable, Hashable {
    /// How long to wait before a try. All times are at least zero.
    public enum Backoff: Sendable, Hashable {
        /// A random time between zero and a bound: `base` before the second try, doubled for each that
        /// follows, at most `cap`. What was refused together does not come back together.
        case exponential(base: Duration, cap: Duration)
        /// Always so long.
        case constant(Duration)
    }

    /// Failures that may pass: ``LoadError/Reason/connectionLost``, ``LoadError/Reason/truncated``,
    /// ``LoadError/Reason/streamReset`` (by which a proxy that speaks HTTP/2 says that it has lost the connection behind it),
    /// ``LoadError/Reason/connectionRefused``, ``LoadError/Reason/unreachable``,
    /// ``LoadError/Reason/lookupFailed``, ``LoadError/Reason/idleTimeout``, ``LoadError/Reason/connectTimeout`` and, of
    /// ftp, ``LoadError/Reason/ftpServiceUnavailable``.
    public static let transientReasons: Set<LoadError.Reason> = [
        .connectionLost, .truncated, .streamReset, .connectionRefused, .unreachable, .lookupFailed, .idleTimeout,
        .connectTimeout, .ftpServiceUnavailable,
    ]
    /// Statuses that may pass: 408, 429, 500, 502, 503 and 504.
    public static let transientStatuses: Set<Status> = [
        .requestTimeout, .tooManyRequests, .internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]
    /// One try, whatever comes of it: for a request of a session whose policy says otherwise.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// The failures to try again after; ``transientReasons`` by default. A load that was cancelled, or has used up its
    /// resource timeout, is over in any case.
    public var reasons = transientReasons
    /// The statuses to try again after; none by default. Such a response is dropped, with its body; the last one is
    /// delivered.
    public var statuses: Set<Status> = []
    /// How many times a request is sent at most, the first included; at least 1.
    public var maximumAttempts: Int
    /// No further try begins later than so long after the first; `nil` for no limit.
    public var maximumDuration: Duration?
    /// How long to wait before a try.
    public var backoff = Backoff.exponential(base: .seconds(1), cap: .seconds(60))
    /// The longest wait a server may ask for with Retry-After (RFC 9110 §10.2.3). What it asks for is
    /// waited in addition to ``backoff``; a response that asks for more is delivered, since coming back
    /// earlier is what it asked not to be done.
    public var maximumRetryAfter: Duration = .seconds(60)
    /// After an error, a network that comes, or is exchanged for another, ends the wait.
    public var retriesOnNetworkChange = true
    /// Methods other than GET, HEAD, OPTIONS, TRACE, PUT and DELETE too. A request that failed may have been
    /// carried out all the same, and is then carried out twice (RFC 9110 §9.2.2): for servers that can tell.
    public var retriesNonIdempotent = false

    public init(maximumAttempts: Int = 3) { self.maximumAttempts = maximumAttempts }
}

/// Another try of a request, as ``LoadEvent/retrying(_:)`` tells it.
public struct Retry: Sendable, CustomStringConvertible {
    /// Why the one before was not enough.
    public enum Cause: Sendable {
        case failed(LoadError)
        case status(Status)
    }
    /// Why the one before was not enough.
    public let cause: Cause
    /// The number of the try that follows, from 2.
    public let attempt: Int
    /// How long the load waits before it, at most.
    public let delay: Duration

    /// One line: `try 2 in 0.7 s after 503 Service Unavailable`.
    public var description: String {
        let why =
            switch cause {
            case .failed(let error): "\(error)"
            case .status(let status): "\(status)"
            }
        let tenths = delay.components.seconds * 10 + delay.components.attoseconds / 100_000_000_000_000_000
        return "try \(attempt) in \(tenths / 10).\(tenths % 10) s after \(why)"
    }
}
