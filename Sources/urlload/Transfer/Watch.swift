// What is remembered about one load while it goes on: its redirects and its times.

import Synchronization
import URLLoading
import URLLoadingIO

final class Watch: Sendable {
    /// The load that the current task performs: the library's timeline names none.
    @TaskLocal static var current: Watch?

    private struct State: Sendable {
        var timings = Report.Timings()
        var redirects: [(status: Int, url: String)] = []
    }
    private let state = Lock(State())

    var timings: Report.Timings { state.withLock { $0.timings } }
    var redirects: [(status: Int, url: String)] { state.withLock { $0.redirects } }

    func note(_ timeline: Timeline) {
        let timings = Report.Timings(
            resolve: timeline.seconds(.resolved), connect: timeline.seconds(.connected), tls: timeline.seconds(.secured),
            firstByte: timeline.seconds(.responseReceived), total: timeline.seconds(.finished),
            isReused: timeline.isReusedConnection)
        state.withLock { $0.timings = timings }
    }

    func note(_ redirect: Redirect) {
        let entry = (status: redirect.response.http?.status.code ?? 0, url: AddressText.shown(redirect.request.url))
        state.withLock { $0.redirects.append(entry) }
    }
}
