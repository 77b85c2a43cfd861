import Synchronization
import URLLoadingIO

/// Counts the loads of a session, for whoever exports metrics.
///
/// ```swift
/// let statistics = LoadStatistics()
/// configuration.observers = [statistics]
/// …
/// let now = statistics.snapshot
/// gauge("loads_failed", now.failed.values.reduce(0, +))
/// ```
public final class LoadStatistics: LoadObserver {
    /// Counts since the observer was made.
    public struct Snapshot: Sendable, CustomStringConvertible {
        /// Loads that completed, whatever the status.
        public internal(set) var finished = 0
        /// Loads that failed, by the name of the ``LoadError/Reason``.
        public internal(set) var failed: [String: Int] = [:]
        /// Responses by class of status: 2 for 2xx.
        public internal(set) var responses: [Int: Int] = [:]
        /// Redirects followed.
        public internal(set) var redirects = 0
        /// Tries beyond the first: see ``RetryPolicy``.
        public internal(set) var retries = 0
        /// Bytes of bodies.
        public internal(set) var bytesSent: Int64 = 0
        public internal(set) var bytesReceived: Int64 = 0
        /// How long completed and failed loads took: for each bound the number of loads that took no
        /// longer, and were not counted under a smaller one; `nil` for the rest.
        public internal(set) var durations: [Duration?: Int] = [:]

        /// `3 finished, 1 failed, 0 redirects, 0 bytes sent, 5120 received`
        public var description: String {
            "\(finished) finished, \(failed.values.reduce(0, +)) failed, \(redirects) redirects, \(bytesSent) bytes sent, \(bytesReceived) received"
        }
    }
    private let state = Lock(Snapshot())
    private let bounds: [Duration]

    /// - Parameter bounds: of the histogram of durations, ascending.
    public init(
        bounds: [Duration] = [.milliseconds(10), .milliseconds(100), .seconds(1), .seconds(10), .seconds(60)]
    ) {
        self.bounds = bounds
    }

    /// The counts of this moment.
    public var snapshot: Snapshot { state.withLock { $0 } }

    public func observe(_ event: LoadEvent, of load: LoadIdentity) {
        state.withLock { state in
            switch event {
            case .canonicalized, .informational, .challenged, .waitingForConnectivity, .stored, .notStored,
                .becameDownload, .becameStream, .resumed, .metrics:
                break
            case .retrying: state.retries += 1
            case .bodySent(let bytes): state.bytesSent += Int64(bytes.count)
            case .received(let bytes): state.bytesReceived += Int64(bytes.count)
            case .redirected: state.redirects += 1
            case .responded(let response):
                if let code = response.http?.status.code { state.responses[code / 100, default: 0] += 1 }
            case .completed(let error):
                if let error { state.failed[error.reason.name, default: 0] += 1 } else { state.finished += 1 }
                let duration = ContinuousClock.now - load.created
                state.durations[bounds.first { duration <= $0 }, default: 0] += 1
            }
        }
    }
}
