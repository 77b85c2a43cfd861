// The redirects, times and progress line of one running load.

import Synchronization
import URLLoading
import URLLoadingIO

final class Watch: Sendable {
    /// The watch of the load in the current task: an observer of the session receives the events of all loads.
    @TaskLocal static var current: Watch?

    private struct State: Sendable {
        var metrics: LoadMetrics?
        var redirects: [(status: Int, url: String)] = []
        /// The heads of the responses that redirected.
        var heads: [HTTPHead] = []
        var refused: String?
    }
    private let state = Lock(State())
    let progress: Screen.Progress

    init(_ progress: Screen.Progress) { self.progress = progress }

    var metrics: LoadMetrics? { state.withLock { $0.metrics } }
    var heads: [HTTPHead] { state.withLock { $0.heads } }
    /// The target of a redirect that was not followed.
    var refused: String? {
        get { state.withLock { $0.refused } }
        set { state.withLock { $0.refused = newValue } }
    }
    var redirects: [(status: Int, url: String)] { state.withLock { $0.redirects } }

    /// Passes the events of each load to its watch.
    struct Observer: LoadObserver {
        func observe(_ event: LoadEvent, of load: LoadIdentity) {
            guard case .metrics(let metrics) = event, let watch = Watch.current else { return }
            watch.state.withLock { $0.metrics = metrics }
        }
    }

    /// Shows the progress of a request's body, each time it is sent.
    struct Uploads: LoadObserver {
        func observe(_ event: LoadEvent, of load: LoadIdentity) {
            guard case .bodySent(let bytes) = event, let progress = Watch.current?.progress else { return }
            if bytes.total == bytes.count { progress.expect(bytes.expected) }
            progress.add(bytes.count)
        }
    }

    func note(_ redirect: Redirect) {
        let entry = (status: redirect.response.http?.status.code ?? 0, url: AddressText.shown(redirect.request.url))
        state.withLock { state in
            state.redirects.append(entry)
            if let head = redirect.response.http { state.heads.append(head) }
        }
    }
}

extension Report.Timings {
    /// The last occurrence of each stage, in seconds from the start of the load. An IP address has no
    /// lookup: `resolve` is then the start of the connection attempt.
    init(_ metrics: LoadMetrics) {
        typealias Transaction = LoadMetrics.Transaction
        func last(_ moment: (Transaction) -> LoadMetrics.Moment?) -> Double? {
            metrics.transactions.compactMap(moment).last.map { $0.offset / .seconds(1) }
        }
        resolve = last { $0.lookupEnd ?? $0.connectStart }
        connect = last { $0.secureStart ?? $0.connectEnd }
        tls = last(\.secureEnd)
        firstByte = last(\.responseStart)
        total = metrics.duration / .seconds(1)
        isReused = metrics.transactions.contains(where: \.isReusedConnection)
    }
}
