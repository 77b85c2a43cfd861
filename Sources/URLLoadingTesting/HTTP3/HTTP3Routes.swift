// SPDX-License-Identifier: Apache-2.0

// A well-behaved connection: one task takes what arrives, and one answers each request.

#if HTTP3

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class HTTP3Routes: Sendable {
    let peer: HTTP3Peer
    private let state: Lock<HTTP3RoutesState>

    init(_ peer: HTTP3Peer) {
        self.peer = peer
        state = Lock(HTTP3RoutesState(bodyLimit: peer.server.configuration.recordedBodySize))
    }

    func run() async {
        await withDiscardingTaskGroup { group in
            do throws(HTTP3Peer.Failure) {
                try await peer.start(peer.server.configuration.settings)
                while true {
                    let arrival = try await peer.receive()
                    if let stream = react(to: arrival) { group.addTask { await self.answer(stream) } }
                }
            } catch { peer.close() }
            group.cancelAll()
        }
    }

    /// Sends GOAWAY.
    func goAway() {
        let first = state.withLock { $0.goAway() }
        let frame = HTTP3Frame.goAway(from: UInt64(first))
        peer.change { state in
            if case .open(let control, _, _) = state.phase { state.send(frame.bytes, endStream: false, on: control) }
        }
    }

    /// Processes an arrival. Returns a stream whose request is now to be answered.
    private func react(to arrival: HTTP3Peer.Arrival) -> Int? {
        let server = peer.server
        let reaction = state.withLock { state in
            state.receive(arrival) { path in server.state.withLock { $0.record.route(for: path) } }
        }
        if let (code, why) = reaction.failure {
            _ = peer.complain("\(code): \(why)")
            peer.close(code)
        }
        if let (code, why) = reaction.refusal {
            if let why { _ = peer.complain("\(code) on stream \(arrival.stream): \(why)") }
            peer.reset(arrival.stream, code)
            peer.stopReceiving(arrival.stream, code)
        }
        if reaction.opened { server.change { $0.openStream() } }
        if reaction.closed { server.change { $0.record.counts.openStreams -= 1 } }
        if let interim = reaction.interim {
            peer.change { $0.send(interim.bytes, endStream: false, on: Int64(arrival.stream)) }
        }
        return reaction.due
    }

    private func answer(_ number: Int) async {
        if let stream = state.withLock({ $0.streams[number] }) {
            let request = request(of: stream)
            peer.server.change { $0.record.requests.append(request) }
            do throws(StreamEnded) {
                let answered = HTTP3AnsweredStream(peer: peer, number: number)
                try await answered.send(await stream.route.answer(to: request), to: request)
                peer.server.change { $0.record.counts.answered += 1 }
            } catch {}
        }
        peer.server.change { $0.record.counts.openStreams -= 1 }
        // RFC 9114 §4.1
        if state.withLock({ $0.answered(number) }) { peer.stopReceiving(number, .noError) }
    }

    private func request(of stream: HTTP3RoutesState.Stream) -> HTTPTestServer.RecordedRequest {
        var request = HTTPTestServer.RecordedRequest(
            stream.fields, .http3, connection: peer.connection, exchange: stream.exchange, tls: peer.tls)
        request.body = stream.body
        request.bodyCount = stream.bodyCount
        request.trailers = stream.trailers
        return request
    }
}

/// One stream, for the task that answers on it.
private struct HTTP3AnsweredStream: AnsweredStream {
    let peer: HTTP3Peer
    let number: Int

    func section(_ fields: HTTP2Fields, endStream: Bool) async throws(StreamEnded) {
        guard peer.state.withLock({ $0.takes(number) }) else { throw StreamEnded() }
        do throws(HTTP3Peer.Failure) {
            try await peer.send(.headers(fields), on: number, endStream: endStream)
        } catch { throw StreamEnded() }
    }
    func data(_ bytes: [UInt8], endStream: Bool) async throws(StreamEnded) {
        do throws(HTTP3Peer.Failure) { try await peer.data(number, bytes, endStream: endStream) } catch {
            throw StreamEnded()
        }
    }
    func pause(_ duration: Duration) async throws(StreamEnded) {
        guard duration > .zero else { return }
        do throws(HTTP3Peer.Failure) { try await peer.pause(duration) } catch { throw StreamEnded() }
    }
    func insert(_ bytes: [UInt8]) { peer.change { $0.send(bytes, endStream: false, on: Int64(number)) } }
    func end(_ ending: HTTPTestServer.Response.Script.Ending) async {
        switch ending {
        case .close:
            await peer.drain()
            peer.close()
        case .reset: peer.fallSilent()
        case .stall, .next: break
        }
    }
}

#endif
