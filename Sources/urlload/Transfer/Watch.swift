// SPDX-License-Identifier: Apache-2.0

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
        /// The heads of all responses, interim ones (1xx) and redirects included.
        var heads: [HTTPHead] = []
        var refused: String?
        /// The cache's decision about each request, by the number of redirects before it.
        var cacheDecisions: [Int: String] = [:]
    }
    private let state = Lock(State())
    let progress: Screen.Progress

    /// The file of `-D`.
    private let headFile: HeadFile?

    /// Writes requests and responses as httpie does; `nil` in other grammars.
    let exchange: ExchangeOutput?

    init(_ progress: Screen.Progress, _ headFile: HeadFile? = nil, _ exchange: ExchangeOutput? = nil) {
        (self.progress, self.headFile, self.exchange) = (progress, headFile, exchange)
    }

    var metrics: LoadMetrics? { state.withLock { $0.metrics } }
    var heads: [HTTPHead] { state.withLock { $0.heads } }
    /// The target of a redirect that was not followed.
    var refused: String? {
        get { state.withLock { $0.refused } }
        set { state.withLock { $0.refused = newValue } }
    }
    var redirects: [(status: Int, url: String)] { state.withLock { $0.redirects } }

    var cacheDecisions: [Int: String] { state.withLock { $0.cacheDecisions } }

    func note(head: HTTPHead) {
        state.withLock { $0.heads.append(head) }
        headFile?.write(head)
        exchange?.received(head)
    }

    /// Notes what the cache decided about the request that is made next.
    func note(cache decision: String) {
        state.withLock { state in
            let before = state.cacheDecisions[state.redirects.count].map { $0 + "; " } ?? ""
            state.cacheDecisions[state.redirects.count] = before + decision
        }
    }

    /// Passes the heads of each load to its watch.
    struct Heads: HeadObserver {
        func observe(_ event: LoadEvent, of load: LoadIdentity) {}
        func received(_ head: HTTPHead) { Watch.current?.note(head: head) }
        func sends(_ request: Request, _ fields: Headers) { Watch.current?.exchange?.sends(request, fields) }
    }

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
        state.withLock { $0.redirects.append(entry) }
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
