// One request and its answer on one leased connection. It is the lease: whatever happens, `release`
// gives the connection back or closes it, at the latest when the exchange is dropped. One task at a
// time uses it.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class HTTPExchange: @unchecked Sendable {
    let load: Load
    private let connection: HTTP1Connection
    private let url: URL
    /// The answer's head, once `start` has returned.
    private(set) var head: HTTPHead?
    private var expectedLength: Int64?
    private var decoding: BodyDecoding?
    private var hasEnded = false
    private var isReleased = false

    init(_ connection: HTTP1Connection, _ load: Load, _ url: URL) {
        self.connection = connection
        self.load = load
        self.url = url
        load.attach(connection.transport.slot)
        if connection.exchanges > 0 { load.timeline?.markReused() }
    }

    deinit { release() }

    /// A failure that only says that the peer had closed an idle connection before we used it.
    var failedStale: Bool { connection.exchanges > 1 && !connection.hasReceived && load.stopReason == nil }

    /// Sends the request and waits for the head of the answer.
    func start(_ request: PreparedRequest) async throws(LoadError) {
        if try !connection.begin(request) { try await connection.finishSending(request, load) }
        load.timeline?.mark(.requestSent)
        while true {
            if let head = try connection.bufferedResponse() { return try receive(head, request) }
            try await connection.fill(load)
        }
    }

    private func receive(_ head: HTTP1ResponseHead, _ request: PreparedRequest) throws(LoadError) {
        load.timeline?.mark(.responseReceived)
        if request.decodesContent { decoding = try BodyDecoding(head.headers, load.core.configuration.limits) }
        if decoding == nil { expectedLength = connection.expectedLength }
        self.head = HTTPHead(status: head.status, version: head.version, headers: head.headers)
    }

    /// What the caller sees of it.
    var response: Response { Response(url: url, expectedLength: expectedLength, http: head) }

    // MARK: The body

    /// The next piece of the body, decoded; `nil` at its end, when the connection is given back.
    func next() async throws(LoadError) -> Chunk? {
        guard !hasEnded else { return nil }
        do throws(LoadError) {
            while true {
                switch try buffered() {
                case .chunk(let chunk)?: return chunk
                case .end?: return endOfBody()
                case nil: try await fillHearingCancellation()
                }
            }
        } catch {
            throw failed(error)
        }
    }

    /// Whoever iterates a body may be another task than the one whose cancellation the load hears of.
    private func fillHearingCancellation() async throws(LoadError) {
        let filled: Result<Void, LoadError> = await withTaskCancellationHandler {
            do throws(LoadError) { return .success(try await connection.fill(load)) } catch { return .failure(error) }
        } onCancel: {
            load.stop(.cancelled)
        }
        try filled.get()
    }

    /// Collects the body for the load's own task: what is here already costs no wait.
    func collect(upTo limit: Int) async throws(LoadError) -> Data {
        var data = Data()
        do throws(LoadError) {
            while !hasEnded {
                switch try buffered() {
                case .chunk(let chunk)?:
                    guard chunk.count <= limit - data.count else { throw Self.tooLarge(limit) }
                    if data.isEmpty { data = begin(with: chunk, limit) } else { data.append(chunk) }
                case .end?: _ = endOfBody()
                case nil: try await connection.fill(load)
                }
            }
        } catch {
            throw failed(error)
        }
        return data
    }

    /// Room for what the peer announces, which is believed only so far.
    private func begin(with chunk: Chunk, _ limit: Int) -> Data {
        let expected = Int(min(expectedLength ?? 0, Int64(limit), 4 << 20))
        guard expected > chunk.count else { return Data(chunk) }
        var data = Data(capacity: expected)
        data.append(chunk)
        return data
    }

    static func tooLarge(_ limit: Int) -> LoadError {
        LoadError(.bodyTooLarge, phase: .receiving, party: .local, detail: "more than \(limit) bytes")
    }

    private func buffered() throws(LoadError) -> HTTP1Connection.Piece? {
        guard let decoding else { return try connection.bufferedData() }
        while true {
            if let chunk = try decoding.next() { return .chunk(chunk) }
            switch try connection.bufferedData() {
            case .chunk(let input)?: decoding.feed(input)
            case .end?:
                try decoding.finish()
                return .end
            case nil: return nil
            }
        }
    }

    private func endOfBody() -> Chunk? {
        hasEnded = true
        // Once given back, the connection is somebody else's.
        trailers = connection.trailers
        release()
        return nil
    }

    private func failed(_ error: LoadError) -> LoadError {
        hasEnded = true
        release()
        return error.at(url)
    }

    /// The fields after a chunked body; empty before its end.
    private(set) var trailers = Headers()

    // MARK: The lease

    /// Ends the exchange. A body that was not read to its end costs the connection, unless the rest
    /// is already here.
    func release() {
        guard !isReleased else { return }
        isReleased = true
        load.detach(connection.transport.slot)
        if !hasEnded { discardBuffered() }
        load.core.pool.giveBack(connection, reusable: connection.isReusable)
    }

    private func discardBuffered() {
        guard load.stopReason == nil else { return }
        while case .chunk? = try? connection.bufferedData() {}
    }
}
