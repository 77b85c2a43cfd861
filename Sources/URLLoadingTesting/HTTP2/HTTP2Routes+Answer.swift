// SPDX-License-Identifier: Apache-2.0

// Answers one request, in a task of its own.

import Synchronization
import URLLoadingIO
import URLLoadingWire

extension HTTP2Routes {
    func answer(_ number: Int) async {
        let slot = Poller.shared.borrowSlot()
        peer.token.attach(slot)
        let stream = state.withLock { state -> HTTP2RoutesState.Stream? in
            state.streams[number]?.slot = slot
            return state.streams[number]
        }
        if let stream {
            let request = request(of: stream)
            peer.server.change { $0.record.requests.append(request) }
            do throws(StreamEnded) {
                if stream.isTunnel, let server = webSocket(for: request) {
                    try await serve(server, request, number, slot)
                } else {
                    try await send(await answer(to: request, stream.route), to: request, number, slot)
                }
                peer.server.change { $0.record.counts.answered += 1 }
            } catch {}
        }
        close(number)
        peer.token.detach(slot)
        Poller.shared.returnSlot(slot)
    }

    private func request(of stream: HTTP2RoutesState.Stream) -> HTTPTestServer.RecordedRequest {
        let fields = stream.fields
        var headers = fields.headers
        // RFC 9113 §8.3.1
        if let authority = fields[":authority"], headers[.host] == nil { headers[.host] = authority }
        var request = HTTPTestServer.RecordedRequest(
            method: Method(fields[":method"] ?? ""), target: fields[":path"] ?? fields[":authority"] ?? "",
            version: .http2,
            headers: headers, connection: peer.connection, exchange: stream.exchange, tls: peer.tls)
        request.body = stream.body
        request.bodyCount = stream.bodyCount
        request.trailers = stream.trailers
        return request
    }

    private func answer(to request: HTTPTestServer.RecordedRequest, _ route: HTTPTestServer.Route) async
        -> HTTPTestServer.Response
    {
        do { return try await route.handler(request) } catch {
            return .status(.internalServerError, body: .bytes(Array("\(error)".utf8)))
        }
    }

    /// Ends a stream. A client that is still sending is asked to stop (RFC 9113 §8.1).
    private func close(_ number: Int) {
        let (wasOpen, isUnfinished) = state.withLock { state in
            let stream = state.streams.removeValue(forKey: number)
            peer.input.withLock { $0.forget(stream: number) }
            return (stream != nil, stream.map { !$0.hasEnded && !$0.isReset } ?? false)
        }
        if wasOpen { peer.server.change { $0.record.counts.openStreams -= 1 } }
        if isUnfinished { insert(HTTP2Frame.resetStream(number, .noError).bytes) }
    }

    // MARK: Sending

    private func send(
        _ answer: HTTPTestServer.Response, to request: HTTPTestServer.RecordedRequest, _ stream: Int, _ slot: PollSlot
    ) async throws(StreamEnded) {
        for interim in answer.interim {
            try section(stream, HTTP2Fields(interim.status, interim.headers))
            try await pause(interim.pause)
        }
        if let script = answer.script { return try await play(script) }
        var headers = answer.headers
        if let length = answer.body.length, headers[.contentLength] == nil, !answer.status.forbidsContent {
            headers[.contentLength] = "\(length)"
        }
        let hasBody = request.method != .head && !answer.status.forbidsContent && answer.body.hasContent
        try section(stream, HTTP2Fields(answer.status, headers), endStream: !hasBody)
        if hasBody { try await send(answer.body, stream, slot) }
    }

    private func send(_ body: HTTPTestServer.Response.Body, _ stream: Int, _ slot: PollSlot) async throws(StreamEnded) {
        switch body {
        case .none: break
        case .bytes(let bytes), .declared(_, let bytes): try await data(stream, slot, bytes, endStream: true)
        case .untilClose(let pieces): try await data(stream, slot, pieces, trailers: Headers())
        case .chunks(let pieces, let trailers): try await data(stream, slot, pieces, trailers: trailers)
        case .repeated(let byte, let count, _):
            let block = [UInt8](repeating: byte, count: Int(min(max(0, count), 64 * 1024)))
            var left = max(0, count)
            repeat {
                let size = Int(min(left, Int64(block.count)))
                left -= Int64(size)
                try await data(stream, slot, block.prefix(size), endStream: left == 0)
            } while left > 0
        }
    }

    private func data(
        _ stream: Int, _ slot: PollSlot, _ pieces: [HTTPTestServer.Response.Piece], trailers: Headers
    ) async throws(StreamEnded) {
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): try await data(stream, slot, bytes, endStream: false)
            case .pause(let duration): try await pause(duration)
            }
        }
        if trailers.isEmpty { return insert(HTTP2Frame.data(stream: stream, [], endStream: true).bytes) }
        try section(stream, HTTP2Fields(trailers), endStream: true)
    }

    func data(_ stream: Int, _ slot: PollSlot, _ bytes: some Collection<UInt8>, endStream: Bool)
        async throws(StreamEnded)
    {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let size = try await room(stream, slot, upTo: rest.count)
            let part = Array(rest.prefix(size))
            rest = rest.dropFirst(size)
            insert(HTTP2Frame.data(stream: stream, part, endStream: endStream && rest.isEmpty).bytes)
        }
        if bytes.isEmpty, endStream { insert(HTTP2Frame.data(stream: stream, [], endStream: true).bytes) }
    }

    /// Sends a field section in as many frames as the client's MAX_FRAME_SIZE requires.
    func section(_ stream: Int, _ fields: HTTP2Fields, endStream: Bool = false) throws(StreamEnded) {
        guard !isGone(stream) else { throw StreamEnded() }
        let block = fields.encoded()
        let limit = peer.input.withLock { $0.windows.maxFrameSize }
        let frames = HTTP2Frame.section(
            stream: stream, block, endStream: endStream, splitInto: max(1, (block.count + limit - 1) / limit))
        insert(frames.flatMap(\.bytes))
    }

    private func pause(_ duration: Duration) async throws(StreamEnded) {
        guard duration > .zero else { return }
        do throws(HTTP2Peer.Failure) { try await peer.pause(duration) } catch { throw StreamEnded() }
    }

    private func play(_ script: HTTPTestServer.Response.Script) async throws(StreamEnded) {
        for piece in script.pieces {
            switch piece {
            case .bytes(let bytes): insert(bytes)
            case .pause(let duration): try await pause(duration)
            }
        }
        switch script.ending {
        case .close: endAfterOutput(withReset: false)
        case .reset: endAfterOutput(withReset: true)
        case .stall, .next: break
        }
    }
}

extension HTTPTestServer.Response.Body {
    /// The value of content-length; `nil` for no such field.
    fileprivate var length: Int64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .declared(let length, _): length
        case .repeated(_, let count, false): max(0, count)
        case .chunks, .untilClose, .repeated: nil
        }
    }

    fileprivate var hasContent: Bool {
        switch self {
        case .none: false
        case .bytes(let bytes): !bytes.isEmpty
        default: true
        }
    }
}
