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
                    let answered = HTTP2AnsweredStream(routes: self, number: number, slot: slot)
                    try await answered.send(await stream.route.answer(to: request), to: request)
                }
                peer.server.change { $0.record.counts.answered += 1 }
            } catch {}
        }
        close(number)
        peer.token.detach(slot)
        Poller.shared.returnSlot(slot)
    }

    private func request(of stream: HTTP2RoutesState.Stream) -> HTTPTestServer.RecordedRequest {
        var request = HTTPTestServer.RecordedRequest(
            stream.fields, .http2, connection: peer.connection, exchange: stream.exchange, tls: peer.tls)
        request.body = stream.body
        request.bodyCount = stream.bodyCount
        request.trailers = stream.trailers
        return request
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

    fileprivate func pause(_ duration: Duration) async throws(StreamEnded) {
        guard duration > .zero else { return }
        do throws(HTTP2Peer.Failure) { try await peer.pause(duration) } catch { throw StreamEnded() }
    }

    fileprivate func end(_ ending: HTTPTestServer.Response.Script.Ending) {
        switch ending {
        case .close: endAfterOutput(withReset: false)
        case .reset: endAfterOutput(withReset: true)
        case .stall, .next: break
        }
    }
}

/// One stream, for the task that answers on it.
private struct HTTP2AnsweredStream: AnsweredStream {
    let routes: HTTP2Routes
    let number: Int
    let slot: PollSlot

    func section(_ fields: HTTP2Fields, endStream: Bool) throws(StreamEnded) {
        try routes.section(number, fields, endStream: endStream)
    }
    func data(_ bytes: [UInt8], endStream: Bool) async throws(StreamEnded) {
        try await routes.data(number, slot, bytes, endStream: endStream)
    }
    func pause(_ duration: Duration) async throws(StreamEnded) { try await routes.pause(duration) }
    func insert(_ bytes: [UInt8]) { routes.insert(bytes) }
    func end(_ ending: HTTPTestServer.Response.Script.Ending) { routes.end(ending) }
}
