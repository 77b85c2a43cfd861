// SPDX-License-Identifier: Apache-2.0

// The surroundings of a step: a server, a session whose bytes are recorded, and the printed results.

import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingTesting

final class TourStage: Sendable {
    private struct State: Sendable {
        var transcript = Transcript(showsBodies: true, showsSecrets: false)
        var wire: [String] = []
        var said: [String] = []
    }
    private let state = Lock(State())
    let origin: HTTPTestServer
    private let began = ContinuousClock.now

    private init(_ origin: HTTPTestServer) { self.origin = origin }

    /// Adds a line to the results of the step.
    func say(_ text: String) { state.withLock { $0.said.append(text) } }

    var wire: [String] { state.withLock { $0.wire } }
    var said: [String] { state.withLock { $0.said } }

    /// Milliseconds since the beginning of the step.
    var elapsed: Int {
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        return Int(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
    }

    /// A configuration whose bytes on the wire are recorded.
    var configuration: Configuration {
        var configuration = Configuration.ephemeral
        configuration.userAgent = "urlload"
        configuration.wireTap = { [self] event in
            state.withLock { $0.wire += $0.transcript.lines(event) }
        }
        return configuration
    }

    static func run(_ step: TourStep) async throws -> TourStage {
        try await withHTTPTestServer { origin in
            addRoutes(origin)
            let stage = TourStage(origin)
            try await step.run(stage)
            return stage
        }
    }

    private static func addRoutes(_ origin: HTTPTestServer) {
        origin.route("/lines") { _ in
            .ok(.chunks(["one\ntwo\n", .pause(.milliseconds(60)), "three\nfo", .pause(.milliseconds(60)), "ur\n"]))
        }
        origin.route("/moved") { _ in .redirect("/here") }
        origin.route("/here") { _ in .ok("It is here now.\n") }
        origin.route("/large") { _ in .ok(.repeated(count: 50_000_000), headers: [.contentType: "video/mp4"]) }
        origin.route("/silent", faults: [HTTPTestServer.Fault(.requestHead, .stall)]) { _ in .ok("") }
        origin.route("/upload") { request in .ok("\(request.bodyCount) bytes arrived\n") }
    }
}
