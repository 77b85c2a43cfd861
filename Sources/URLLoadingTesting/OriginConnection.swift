// SPDX-License-Identifier: Apache-2.0

// One connection of the origin: accepted, secured, then exchange after exchange. It belongs to the task that serves it;
// other tasks only end it or release a stall.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class OriginConnection: ServedConnection, @unchecked Sendable {
    // Unchecked: everything except `token`, `socket` and `isReleased` is accessed only by the serving task.
    let number: Int
    let origin: HTTPTestServer
    let socket: SocketTransport
    let token = StopToken()
    private let isReleased = Atomic<Bool>(false)

    var transport: any Transport
    private(set) var tls: HTTPTestServer.TLSInfo?
    var codec = HTTP1Codec(role: .server)
    var exchange = 0
    var input = OriginInput()
    var output: [UInt8] = []
    /// Faults that have not been applied yet.
    var faults: [HTTPTestServer.Fault] = []
    /// The number of bytes sent of the current section of the response.
    var sent: Int64 = 0
    var section = Section.none

    enum Section { case none, head, body }

    /// The reason why serving ends.
    enum Ending: Error {
        case close
        /// The socket is already closed, and TLS must not use it again.
        case gone
    }

    init(_ socket: SocketTransport, number: Int, _ origin: HTTPTestServer) {
        self.socket = socket
        self.number = number
        self.origin = origin
        transport = socket
    }

    /// Ends the connection from outside.
    func end() { token.stop(.cancelled) }

    func release() {
        isReleased.store(true, ordering: .releasing)
        socket.slot.wake()
    }

    var mayLeaveStall: Bool { isReleased.load(ordering: .acquiring) }

    func serve() async {
        token.attach(socket.slot)
        do throws(Ending) {
            try await begin()
            while true { try await serveExchange() }
        } catch {
            token.detach(socket.slot)
            if error == .close { transport.close() }
        }
        origin.closed(self)
    }

    private func begin() async throws(Ending) {
        faults = origin.state.withLock { $0.faults(connection: number, exchange: 0) }
        try await applyFaults(.accept)
        if let context = origin.tls {
            try await applyFaults(.handshake)
            try await secure(context)
        }
        if let greeting = origin.configuration.greeting {
            try await play(greeting)
            throw .close
        }
    }

    private func secure(_ context: TLSServerContext) async throws(Ending) {
        do throws(IOFailure) {
            let secured = try TLSTransport(server: context, over: socket)
            transport = secured
            try await secured.handshake(token)
            tls = secured.negotiated.map { HTTPTestServer.TLSInfo($0) }
        } catch { throw .close }
    }

    // MARK: An exchange

    private func serveExchange() async throws(Ending) {
        guard let head = try await requestHead() else { throw .close }
        exchange += 1
        var request = HTTPTestServer.RecordedRequest(
            method: head.method, target: head.target, version: head.version, headers: head.headers,
            connection: number, exchange: exchange, tls: tls)
        let route = origin.change { state in
            state.record.counts.requests += 1
            faults = state.faults(connection: number, exchange: exchange)
            return state.record.route(for: request.path)
        }
        faults += route.faults
        try await applyFaults(.requestHead)
        if let takeover = route.takeover {
            origin.change { $0.record.requests.append(request) }
            try await takeover(request, self)
            throw .close
        }
        var answer: HTTPTestServer.Response?
        var leavesBody = !route.readsBody
        if let receiver = route.receiver?(request, self) {
            (answer, leavesBody) = try await receive(&request, receiver)
        } else if route.readsBody {
            try await expectation(request)
            try await readBody(&request)
        }
        origin.change { $0.record.requests.append(request) }
        // A request that was sent before the previous response.
        let isPipelined = !input.isEmpty
        if answer == nil { answer = await self.answer(to: request, route) }
        try await send(answer ?? .status(.internalServerError), to: request)
        origin.change { $0.record.counts.answered += 1 }
        try await applyFaults(.end)
        if leavesBody { try await linger() }
        guard codec.reuse == .yes, !isPipelined else { throw .close }
        codec = HTTP1Codec(role: .server)
        input.releaseBuffer()
        try await applyFaults(.idle)
    }

    private func answer(to request: HTTPTestServer.RecordedRequest, _ route: HTTPTestServer.Route) async
        -> HTTPTestServer.Response
    {
        do { return try await route.handler(request) } catch {
            return .status(.internalServerError, body: .bytes(Array("\(error)".utf8)))
        }
    }

    /// Sends 100 Continue if the request expects it (RFC 9110 §10.1.1).
    func expectation(_ request: HTTPTestServer.RecordedRequest) async throws(Ending) {
        guard request.headers[.expect]?.lowercased() == "100-continue", request.version >= .http11,
            !codec.isReceiveComplete
        else { return }
        try await sendInterim(.init(.continue))
    }

    private func readBody(_ request: inout HTTPTestServer.RecordedRequest) async throws(Ending) {
        let limit = origin.configuration.recordedBodySize
        try await applyFaults(.requestBody(after: 0)) { $0.isRequestBody(upTo: 0) }
        while true {
            switch try await nextEvent() {
            case .data(let range):
                request.bodyCount += Int64(range.count)
                let kept = input.bytes(range).prefix(max(0, limit - request.body.count))
                request.body.append(contentsOf: kept)
                let read = request.bodyCount
                try await applyFaults(.requestBody(after: read)) { $0.isRequestBody(upTo: read) }
            case .end(let trailers):
                request.trailers = trailers
                return
            default: throw .close
            }
        }
    }
}

extension HTTPTestServer.Fault.Point {
    func isRequestBody(upTo count: Int64) -> Bool {
        if case .requestBody(let after) = self { after <= count } else { false }
    }
}
