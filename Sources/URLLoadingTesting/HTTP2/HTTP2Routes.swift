// SPDX-License-Identifier: Apache-2.0

// A well-behaved connection: one task reads, one writes, and one answers each request. `HTTP2RoutesState` interprets
// frames; `HTTP2Routes+Answer` sends responses.

import Synchronization
import URLLoadingIO

final class HTTP2Routes: Sendable {
    let peer: HTTP2Peer
    let state: Lock<HTTP2RoutesState>
    private let writer = Poller.shared.borrowSlot()

    init(_ peer: HTTP2Peer) {
        self.peer = peer
        let configuration = peer.server.configuration
        state = Lock(HTTP2RoutesState(configuration))
        peer.readsWhileSending = false
        var first = HTTP2Frame.settings(configuration.settings).bytes
        let more = configuration.connectionWindow - 65_535
        if more > 0 { first += HTTP2Frame.windowUpdate(more).bytes }
        insert(first)
    }

    deinit { Poller.shared.returnSlot(writer) }

    func run() async {
        peer.token.attach(writer)
        await withDiscardingTaskGroup { group in
            group.addTask { await self.write() }
            do throws(HTTP2Peer.Failure) {
                while true {
                    let arrival = try await peer.arrival()
                    if let stream = react(to: arrival) { group.addTask { await self.answer(stream) } }
                }
            } catch { peer.token.stop(.cancelled) }
            group.cancelAll()
        }
        peer.token.detach(writer)
        if state.withLock({ $0.endsWithReset }) { peer.abort() }
    }

    /// Processes a frame. Returns a stream whose request is now to be answered.
    private func react(to arrival: HTTP2Arrival) -> Int? {
        let (reaction, slots) = state.withLock { state -> (HTTP2RoutesState.Reaction, [PollSlot]) in
            let reaction = state.receive(arrival, peer.server)
            return (reaction, state.takeWoken())
        }
        for slot in slots { slot.wake() }
        if let complaint = reaction.complaint { _ = peer.complain(complaint) }
        if reaction.opened { peer.server.change { $0.openStream() } }
        if reaction.closed { peer.server.change { $0.record.counts.openStreams -= 1 } }
        if !reaction.output.isEmpty { insert(reaction.output, endsConnection: reaction.endsConnection) }
        return reaction.due
    }

    // MARK: Writing

    /// Queues bytes for sending; they must be complete frames.
    /// - Parameter endsConnection: whether they are the GOAWAY for an error, after which the writer ends.
    func insert(_ bytes: [UInt8], endsConnection: Bool = false) {
        state.withLock { state in
            state.output += bytes
            if endsConnection { state.hasGoAway = true }
        }
        writer.wake()
    }

    /// Ends the connection once all output is written.
    func endAfterOutput(withReset: Bool) {
        state.withLock {
            $0.isEnding = true
            $0.endsWithReset = withReset
        }
        writer.wake()
    }

    private func write() async {
        while peer.token.stopReason == nil {
            let (bytes, isEnding, hasGoAway) = state.withLock { ($0.takeOutput(), $0.isEnding, $0.hasGoAway) }
            guard bytes.isEmpty else {
                do throws(HTTP2Peer.Failure) { try await peer.sendRaw(bytes) } catch { break }
                for slot in state.withLock({ $0.wake { $0 == .output } }) { slot.wake() }
                continue
            }
            if isEnding { break }
            if hasGoAway {
                // Keep reading until the client leaves: closing with unread input would destroy the GOAWAY.
                peer.finish()
                return
            }
            await Poller.shared.park(writer, until: peer.token)
        }
        peer.token.stop(.cancelled)
    }

    // MARK: Flow control

    /// Waits until data may be sent on a stream; uses and returns up to `count` bytes of the windows.
    func room(_ stream: Int, _ slot: PollSlot, upTo count: Int) async throws(StreamEnded) -> Int {
        while true {
            guard peer.token.stopReason == nil else { throw StreamEnded() }
            let size = try state.withLock { (state) throws(StreamEnded) -> Int in
                guard state.streams[stream]?.isReset == false else { throw StreamEnded() }
                guard state.output.count < HTTP2RoutesState.outputLimit else {
                    state.streams[stream]?.awaited = .output
                    return 0
                }
                let size = peer.input.withLock { $0.takeWindow(stream: stream, upTo: count) }
                state.streams[stream]?.awaited = size > 0 ? nil : .window
                return size
            }
            if size > 0 { return size }
            await Poller.shared.park(slot, until: peer.token)
        }
    }

    func isGone(_ stream: Int) -> Bool {
        peer.token.stopReason != nil || state.withLock { $0.streams[stream]?.isReset != false }
    }
}
