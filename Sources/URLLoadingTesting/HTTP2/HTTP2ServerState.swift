// SPDX-License-Identifier: Apache-2.0

// The state shared by a server's connections and its test: a value under a lock.

import URLLoadingIO

struct HTTP2ServerState: ServerState {
    var routes: [String: HTTPTestServer.Route] = [:]
    var webSockets: [String: WebSocketTestServer] = [:]
    var scripts: [(connection: Int?, script: HTTP2TestServer.Script)] = []
    var counts = HTTP2TestServer.Counts()
    var complaints: [String] = []
    var requests: MostRecent<HTTPTestServer.RecordedRequest>
    private(set) var frames: MostRecent<HTTP2TestServer.RecordedFrame>
    var connections: [Int: HTTP2ServerConnection] = [:]
    var isStopped = false
    var watchers: [PollSlot] = []

    init(_ configuration: HTTP2TestServer.Configuration) {
        (requests, frames) = (MostRecent(configuration.recordedRequests), MostRecent(configuration.recordedRequests))
    }

    func script(for connection: Int) -> HTTP2TestServer.Script? {
        scripts.last { $0.connection ?? connection == connection }?.script
    }

    mutating func record(_ arrival: HTTP2Arrival, on connection: Int) {
        var frame = arrival.frame
        if frame.kind == .data, frame.payload.count > 64 {
            frame.declaredLength = frame.payload.count
            frame.payload = Array(frame.payload.prefix(64))
        }
        frames.append(.init(connection: connection, frame: frame, fields: arrival.fields))
    }

    mutating func openStream() {
        counts.requests += 1
        counts.openStreams += 1
        counts.mostOpenStreams = max(counts.mostOpenStreams, counts.openStreams)
    }
}
