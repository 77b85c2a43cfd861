// All that a server shares between its connections and its test: a value under a lock.

import URLLoadingIO

struct HTTP2ServerState: Sendable {
    var routes: [String: TestOrigin.Route] = [:]
    var webSockets: [String: WebSocketTestServer] = [:]
    var scripts: [(connection: Int?, script: HTTP2TestServer.Script)] = []
    var counts = HTTP2TestServer.Counts()
    var complaints: [String] = []
    private(set) var requests: ArraySlice<TestOrigin.RecordedRequest> = []
    private(set) var frames: ArraySlice<HTTP2TestServer.RecordedFrame> = []
    private(set) var connections: [Int: HTTP2ServerConnection] = [:]
    /// Woken by every change.
    var watchers: [PollSlot] = []
    private let limit: Int
    private var isStopped = false

    init(_ configuration: HTTP2TestServer.Configuration) { limit = max(0, configuration.recordedRequests) }

    /// `nil` once the server has stopped.
    mutating func open(_ socket: SocketTransport, _ server: HTTP2TestServer) -> HTTP2ServerConnection? {
        guard !isStopped else { return nil }
        counts.accepted += 1
        let connection = HTTP2ServerConnection(socket, number: counts.accepted, server)
        connections[connection.number] = connection
        counts.open += 1
        counts.mostOpen = max(counts.mostOpen, counts.open)
        return connection
    }

    mutating func close(_ connection: HTTP2ServerConnection) {
        connections[connection.number] = nil
        counts.open -= 1
    }

    /// Returns the connections to be ended.
    mutating func stop() -> [HTTP2ServerConnection] {
        isStopped = true
        return Array(connections.values)
    }

    func script(for connection: Int) -> HTTP2TestServer.Script? {
        scripts.last { $0.connection ?? connection == connection }?.script
    }

    mutating func record(_ request: TestOrigin.RecordedRequest) {
        requests.append(request)
        if requests.count > limit { requests.removeFirst() }
    }

    mutating func record(_ arrival: HTTP2Arrival, on connection: Int) {
        var frame = arrival.frame
        if frame.kind == .data, frame.payload.count > 64 {
            frame.declaredLength = frame.payload.count
            frame.payload = Array(frame.payload.prefix(64))
        }
        frames.append(.init(connection: connection, frame: frame, fields: arrival.fields))
        if frames.count > limit { frames.removeFirst() }
    }

    mutating func openStream() {
        counts.requests += 1
        counts.openStreams += 1
        counts.mostOpenStreams = max(counts.mostOpenStreams, counts.openStreams)
    }

    func route(for path: String) -> TestOrigin.Route {
        if let exact = routes[path] { return exact }
        let fitting = routes.keys.filter { $0.hasSuffix("*") && path.hasPrefix($0.dropLast()) }
        return fitting.max { $0.utf8.count < $1.utf8.count }.flatMap { routes[$0] } ?? .missing
    }
}
