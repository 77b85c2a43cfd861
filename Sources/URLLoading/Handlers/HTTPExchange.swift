// One request and its answer on one leased connection. It is the lease: whatever happens, `release`
// gives the connection back or closes it, at the latest when the exchange is dropped.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class HTTPExchange: @unchecked Sendable {
    private let connection: HTTP1Connection
    private let pool: ConnectionPool
    private let control: LoadControl
    private let limits: Configuration.Limits
    private let url: URL
    private var decoding: BodyDecoding?
    private var hasEnded = false
    private var isReleased = false

    init(_ connection: HTTP1Connection, _ pool: ConnectionPool, _ control: LoadControl, _ limits: Configuration.Limits, _ url: URL) {
        self.connection = connection
        self.pool = pool
        self.control = control
        self.limits = limits
        self.url = url
        control.attach(connection.transport.slot)
        if connection.exchanges > 0 { control.timeline?.markReused() }
    }

    deinit { release() }

    /// A failure that only says that the peer had closed an idle connection before we used it.
    var failedStale: Bool { connection.exchanges > 1 && !connection.hasReceived && control.stopReason == nil }

    func start(_ request: PreparedRequest) async throws(LoadError) -> Response {
        try await connection.send(request, control)
        let received = try await connection.response(control)
        control.timeline?.mark(.responseReceived)
        let head = HTTPHead(status: received.status, version: received.version, headers: received.headers)
        if request.decodesContent { decoding = try BodyDecoding(head, limits) }
        return Response(
            url: url, expectedLength: decoding == nil ? connection.remainingLength : nil, http: head)
    }

    /// The next piece of the body, decoded; `nil` at its end, when the connection is given back.
    func next() async throws(LoadError) -> Chunk? {
        guard !hasEnded else { return nil }
        do throws(LoadError) {
            if let chunk = try await decoded() { return chunk }
            hasEnded = true
            release()
            return nil
        } catch {
            hasEnded = true
            release()
            throw error.at(url)
        }
    }

    private func decoded() async throws(LoadError) -> Chunk? {
        guard decoding != nil else { return try await connection.data(control) }
        while true {
            if let chunk = try decoding?.next() { return chunk }
            guard let input = try await connection.data(control) else {
                try decoding?.finish()
                return nil
            }
            decoding?.feed(input)
        }
    }

    var trailers: Headers { connection.trailers }

    /// Ends the exchange. A body that was not read to its end costs the connection, unless the rest
    /// is already here.
    func release() {
        guard !isReleased else { return }
        isReleased = true
        control.detach(connection.transport.slot)
        if !hasEnded { discardBuffered() }
        pool.giveBack(connection, reusable: connection.isReusable)
    }

    private func discardBuffered() {
        guard control.stopReason == nil else { return }
        while case .chunk? = try? connection.bufferedData() {}
    }
}
