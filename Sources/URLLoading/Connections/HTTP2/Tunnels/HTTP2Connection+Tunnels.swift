// SPDX-License-Identifier: Apache-2.0

// Streams that carry another protocol (RFC 8441). A task that uses a tunnel waits on the stream's slot only and does
// not read the socket. While there are tunnels, the connection therefore has a task of its own that may read.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Reads a connection on behalf of its tunnels. Its stream does not exist on the wire.
final class HTTP2TunnelReader: Sendable {
    let stream: HTTP2Stream
    let control: LoadHandle

    init(_ connection: HTTP2Connection) {
        stream = HTTP2Stream(
            slot: Poller.shared.borrowSlot(), urgency: 3, window: connection.newWindow, hasBody: false)
        control = LoadHandle(idle: nil, resource: nil, clock: connection.clock)
    }

    func run(_ connection: HTTP2Connection) async {
        control.attach(stream.slot)
        while control.stopReason == nil, !connection.hasFailed {
            await connection.wait(for: stream, control, countsIdle: false)
        }
        connection.end(stream)
        control.detach(stream.slot)
        Poller.shared.returnSlot(stream.slot)
    }
}

extension HTTP2Connection {
    /// Whether the peer's SETTINGS have arrived. If not, their arrival will be an event of the stream.
    func knowsSettings(_ stream: HTTP2Stream) -> Bool { state.withLock { $0.knowsPeerSettings(stream) } }

    /// Turns the stream into a tunnel: from now on a reader and a writer wait until it has data, or room in its window.
    func beginTunnel(_ stream: HTTP2Stream) {
        var started: HTTP2TunnelReader?
        state.withLock { state in
            state.beginTunnel(stream) {
                let reader = HTTP2TunnelReader(self)
                started = reader
                return (reader.control, reader.stream.slot)
            }
        }
        guard let reader = started else { return }
        Task.detached(executorPreference: LoopPreference.current) { await reader.run(self) }
    }

    func endTunnel(_ stream: HTTP2Stream) {
        if state.withLock({ $0.finishTunnel(stream) }) { flush() }
        end(stream)
        state.withLock { $0.leaveTunnel() }?.stop(.cancelled)
    }

    /// The state of a tunnel at one time.
    struct TunnelView: Sendable {
        /// The bytes that wait for the peer.
        var queued: Int
        var failure: HTTP2Failure?
        var hasUnseenEvents: Bool
    }

    func view(_ stream: HTTP2Stream) -> TunnelView {
        state.withLock { state in
            TunnelView(
                queued: state.codec.queued(on: stream.number),
                failure: stream.inbox.failure ?? (stream.isOver ? .closed : state.failure),
                hasUnseenEvents: state.hasUnseenEvents(stream))
        }
    }
}

extension ConnectionPool {
    /// Returns a slot on an open connection whose server supports tunnels.
    func leaseForTunnel(_ route: Route) -> LeasedConnection? {
        guard mayShare(route) else { return nil }
        let found = withSharing { sharing in
            sharing.connections(to: route).first { $0.places.takesTunnels && $0.places.take() }
        }
        guard let found else { return nil }
        found.readIfIdle()
        guard !found.isRetired else {
            leave(found)
            return nil
        }
        found.probeIfIdleLong()
        return .shared(found, isNew: false)
    }
}
