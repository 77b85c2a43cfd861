// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// An observer that counts the loads of a session, for the export of metrics.
///
/// ```swift
/// let statistics = LoadStatistics()
/// configuration.observers = [statistics]
/// …
/// let now = statistics.snapshot
/// gauge("loads_failed", now.failed.values.reduce(0, +))
/// ```
public final class LoadStatistics: LoadObserver {
    /// The counts since the observer was created.
    public struct Snapshot: Sendable, CustomStringConvertible {
        /// The number of loads that completed, whatever their status.
        public internal(set) var finished = 0
        /// The number of loads that the program gave up, also by leaving a loop over a body or events.
        public internal(set) var cancelled = 0
        /// The number of failed loads, by the name of the ``LoadError/Reason``.
        public internal(set) var failed: [String: Int] = [:]
        /// The number of responses by class of status: 2 for 2xx.
        public internal(set) var responses: [Int: Int] = [:]
        /// The number of redirects followed.
        public internal(set) var redirects = 0
        /// The number of retries: see ``RetryPolicy``.
        public internal(set) var retries = 0
        /// The number of retries that were beyond the budget: see ``RetryBudget``.
        public internal(set) var refusedRetries = 0
        /// The number of body bytes sent, and received.
        public internal(set) var bytesSent: Int64 = 0
        /// The bytes of response bodies that were received.
        public internal(set) var bytesReceived: Int64 = 0
        /// A histogram of the durations of completed, failed and cancelled loads: for each upper bound the number of
        /// loads within it and above the previous one; `nil` for those above all bounds.
        public internal(set) var durations: [Duration?: Int] = [:]

        /// The counts on one line: `3 finished, 1 failed, 0 cancelled, 0 redirects, 0 bytes sent, 5120 received`.
        public var description: String {
            "\(finished) finished, \(failed.values.reduce(0, +)) failed, \(cancelled) cancelled, "
                + "\(redirects) redirects, \(bytesSent) bytes sent, \(bytesReceived) received"
        }
    }
    private let state = Lock(Snapshot())
    private let bounds: [Duration]

    /// Creates statistics without loads.
    /// - Parameter bounds: the upper bounds of the histogram of durations, ascending.
    public init(
        bounds: [Duration] = [.milliseconds(10), .milliseconds(100), .seconds(1), .seconds(10), .seconds(60)]
    ) {
        self.bounds = bounds
    }

    /// The counts at this moment.
    public var snapshot: Snapshot { state.withLock { $0 } }

    public func observe(_ event: LoadEvent, of load: LoadIdentity) {
        state.withLock { state in
            switch event {
            case .canonicalized, .informational, .challenged, .waitingForConnectivity, .stored, .notStored,
                .becameDownload, .becameStream, .resumed, .metrics:
                break
            case .retrying: state.retries += 1
            case .retryRefused: state.refusedRetries += 1
            case .bodySent(let bytes): state.bytesSent += Int64(bytes.count)
            case .received(let bytes): state.bytesReceived += Int64(bytes.count)
            case .redirected: state.redirects += 1
            case .responded(let response):
                if let code = response.http?.status.code { state.responses[code / 100, default: 0] += 1 }
            case .completed(let error):
                switch error?.reason {
                case nil: state.finished += 1
                case .cancelled?: state.cancelled += 1
                case let reason?: state.failed[reason.name, default: 0] += 1
                }
                let duration = ContinuousClock.now - load.created
                state.durations[bounds.first { duration <= $0 }, default: 0] += 1
            }
        }
    }
}
