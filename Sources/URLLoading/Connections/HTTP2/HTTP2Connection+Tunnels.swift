// Streams that carry another protocol (RFC 8441). Whoever waits for one waits on its slot alone, to read or to write,
// and reads no socket; so while there are any, a task of the connection's own waits in the line of those who may.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Reads a connection for its tunnels. Its stream is none on the wire.
final class HTTP2TunnelReader: Sendable {
    let stream = HTTP2Stream(slot: Poller.shared.borrowSlot(), urgency: 3, window: 0, hasBody: false)
    let control: LoadControl

    init(_ clock: LoopClock) { control = LoadControl(idle: nil, resource: nil, clock: clock) }

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
    var hasFailed: Bool { lock.withLock { _ in failure != nil } }

    // MARK: What the peer can do

    /// Its SETTINGS are here, and say that it opens tunnels.
    var opensTunnels: Bool { takesTunnels.load(ordering: .acquiring) }

    /// Whether the peer's SETTINGS are here. If not, they are news for the stream when they come.
    func knowsSettings(_ stream: HTTP2Stream) -> Bool {
        lock.withLock { _ in
            if !hasPeerSettings, !awaitingSettings.contains(where: { $0 === stream }) { awaitingSettings.append(stream) }
            return hasPeerSettings
        }
    }

    /// Under the lock.
    func heardSettings(_ slots: inout [PollSlot]) {
        hasPeerSettings = true
        takesTunnels.store(codec.takesTunnels, ordering: .releasing)
        for stream in awaitingSettings { note(stream, &slots) }
        awaitingSettings = []
    }

    // MARK: Its life

    /// From now on a stream is read and written by whoever waits on its slot.
    func beginTunnel(_ stream: HTTP2Stream) {
        let reader = lock.withLock { _ -> HTTP2TunnelReader? in
            stream.isTunnel = true
            tunnels += 1
            guard tunnelReader == nil else { return nil }
            let new = HTTP2TunnelReader(clock)
            tunnelReader = new
            return new
        }
        guard let reader else { return }
        Task.detached { await reader.run(self) }
    }

    /// Nobody has the tunnel any more. One that the peer has ended is ended in good order (RFC 8441 5).
    func endTunnel(_ stream: HTTP2Stream) {
        let endsInOrder = lock.withLock { _ in
            guard failure == nil, stream.isComplete, !stream.isOver, codec.queued(on: stream.number) == 0 else { return false }
            hasUnwritten = true
            return (try? codec.endSending(on: stream.number, trailers: Headers())) != nil
        }
        if endsInOrder { flush() }
        end(stream)
        let reader = lock.withLock { _ -> HTTP2TunnelReader? in
            tunnels -= 1
            guard tunnels == 0 else { return nil }
            defer { tunnelReader = nil }
            return tunnelReader
        }
        reader?.control.stop(.cancelled)
    }

    // MARK: Its bytes

    /// What a tunnel can do at this moment.
    struct TunnelView: Sendable {
        /// Bytes that wait for the peer.
        var queued: Int
        var failure: HTTP2Failure?
        var hasNews: Bool
    }

    func view(_ stream: HTTP2Stream) -> TunnelView {
        lock.withLock { _ in
            TunnelView(
                queued: codec.queued(on: stream.number), failure: stream.inbox.failure ?? (stream.isOver ? .closed : failure),
                hasNews: stream.hasNews || failure != nil)
        }
    }
}

extension ConnectionPool {
    /// A place on a connection that is here already, whose server opens tunnels.
    func leaseForTunnel(_ route: Route) -> LeasedConnection? {
        guard mayShare(route) else { return nil }
        let found = withSharing { sharing in
            sharing.connections(to: route).first { $0.opensTunnels && $0.enter() }
        }
        guard let found else { return nil }
        found.lookIfIdle()
        guard !found.isRetired else {
            leave(found)
            return nil
        }
        found.probeIfRestedLong()
        return .shared(found)
    }
}
