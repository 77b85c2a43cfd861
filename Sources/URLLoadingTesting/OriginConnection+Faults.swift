// SPDX-License-Identifier: Apache-2.0

// Applies faults.

import Glibc
import URLLoadingIO

extension OriginConnection {
    /// Applies the faults of a point, or of all points that `matches` accepts.
    func applyFaults(
        _ point: HTTPTestServer.Fault.Point, where matches: ((HTTPTestServer.Fault.Point) -> Bool)? = nil
    ) async throws(Ending) {
        guard !faults.isEmpty else { return }
        while let index = faults.firstIndex(where: { matches?($0.point) ?? ($0.point == point) }) {
            try await inject(faults.remove(at: index))
        }
    }

    func inject(_ fault: HTTPTestServer.Fault) async throws(Ending) {
        origin.change { $0.record.counts.faults += 1 }
        try await flush()
        switch fault.effect {
        case .close: throw .close
        case .cut:
            socket.close()
            throw .gone
        case .reset:
            socket.abort()
            throw .gone
        case .stall: try await stall()
        case .delay(let duration): try await pause(duration)
        case .send(let bytes): try await send(bytes)
        case .garbage(let count):
            try await send((0..<max(0, count)).map { UInt8(truncatingIfNeeded: 0x80 &+ $0 &* 37) })
        case .halfChunk:
            try await send(Array("FF\r\nonly a part".utf8))
            throw .close
        }
    }

    private func send(_ bytes: [UInt8]) async throws(Ending) {
        output += bytes
        try await flush()
    }

    /// Waits until the client leaves, the origin stops or the test releases it.
    func stall() async throws(Ending) {
        try await flush()
        origin.change { $0.record.counts.stalled += 1 }
        defer { origin.change { $0.record.counts.stalled -= 1 } }
        await socket.waitWithoutReading(token) { mayLeaveStall }
        if mayLeaveStall { try await drain() }
        throw .close
    }

    /// Reads to the end, because unread bytes can hide that the client has left.
    private func drain() async throws(Ending) {
        do throws(IOFailure) {
            let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 * 1024, alignment: 1)
            defer { room.deallocate() }
            while try await socket.receive(into: room, token) > 0 {}
        } catch { throw .close }
    }
}

extension SocketTransport {
    /// Waits until a condition is met, the peer has left or the token is stopped, and reads nothing meanwhile. Whatever
    /// meets the condition wakes the socket's slot.
    ///
    /// The wait is on a slot of its own: on the socket's, input that is never read would end each wait at once
    /// (`PollSlot.mayHoldInput`), and another task may wait there.
    func waitWithoutReading(_ token: StopToken, until isMet: () -> Bool) async {
        _ = await Poller.shared.wait(
            until: token,
            check: { own -> Void? in
                slot.relay(to: own)
                return isMet() || peerHasLeft ? () : nil
            },
            forget: { _ in slot.unrelay() })
    }

    /// Whether the peer has ended its direction or reset the connection, determined without reading.
    var peerHasLeft: Bool {
        // POLLRDHUP is specific to Linux and not declared without _GNU_SOURCE.
        let hangUp: Int16 = 0x2000
        var question = pollfd(fd: descriptor, events: hangUp, revents: 0)
        guard poll(&question, 1, 0) > 0 else { return false }
        return question.revents & (hangUp | Int16(POLLHUP) | Int16(POLLERR)) != 0
    }
}
