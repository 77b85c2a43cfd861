// SPDX-License-Identifier: Apache-2.0

// The state shared by a server's connections and its test: a value under a lock.

struct HTTP2ServerState: RecordingState {
    var record: ServerRecord<HTTP2ServerConnection>
    var webSockets: [String: WebSocketTestServer] = [:]
    var scripts: [(connection: Int?, script: HTTP2TestServer.Script)] = []
    var complaints: [String] = []
    private(set) var frames: MostRecent<HTTP2TestServer.RecordedFrame>

    init(recordedRequests: Int) {
        record = ServerRecord(recordedRequests: recordedRequests)
        frames = MostRecent(recordedRequests)
    }

    var shown: String {
        let complained = complaints.isEmpty ? "" : "; complaints: \(complaints.shown())"
        return "\(record.counts); frames: \(frames.all.shown())\(complained)"
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
        record.counts.requests += 1
        record.counts.openStreams += 1
        record.counts.mostOpenStreams = max(record.counts.mostOpenStreams, record.counts.openStreams)
    }
}
