// SPDX-License-Identifier: Apache-2.0

// One connection of the relay: two sockets, and one task that waits for both of them and for the next delivery. The
// task tries everything that may be possible after each wake-up, and waits only when nothing is.

import Synchronization
import URLLoadingIO

final class RelayConnection: ServedConnection, @unchecked Sendable {
    // Unchecked: everything except the token and the ordered cut is accessed only by the serving task.
    let number: Int
    private let relay: NetworkRelay
    private let token = StopToken()
    private let orderedCut = Lock<NetworkConditions.Cut?>(nil)

    private let client: SocketTransport
    /// `nil` before the server is connected, and if it cannot be.
    private var server: SocketTransport?
    private var toServer: RelayLink
    private var toClient: RelayLink
    /// Whether the connection was reset; the sockets are closed.
    private var isReset = false
    /// Whether the connection ends only when both sides have closed it, so that neither gets a reset for data that it
    /// sent before it read the end.
    private var awaitsBothEnds = false
    /// Wakes the task when the next delivery is due.
    private var alarm: (moment: Int64, alarm: Alarm)?
    private var buffer = [UInt8](repeating: 0, count: 64 * 1024)

    init(
        _ client: SocketTransport, number: Int, accepted: Int64, _ conditions: NetworkConditions, _ relay: NetworkRelay
    ) {
        self.client = client
        self.number = number
        self.relay = relay
        toServer = RelayLink(RelayLinkState(.toServer, conditions, number: number, accepted: accepted))
        toClient = RelayLink(RelayLinkState(.toClient, conditions, number: number, accepted: accepted))
    }

    func end() { token.stop(.cancelled) }
    func wake() { token.wake() }

    func cut(by cut: NetworkConditions.Cut) {
        orderedCut.withLock { if $0 != .reset { $0 = cut } }
        wake()
    }

    func serve() async {
        await connect()
        let slot = Poller.shared.borrowSlot()
        token.attach(slot)
        // Notifications that came before are lost; the first step tries everything.
        client.slot.relay(to: slot)
        server?.slot.relay(to: slot)
        while token.stopReason == nil {
            let outcome = step()
            if outcome == .over { break }
            if outcome == .busy {
                await Task.yield()
                continue
            }
            await Poller.shared.park(slot, until: token)
        }
        setAlarm(nil)
        client.close()
        server?.close()
        token.detach(slot)
        Poller.shared.returnSlot(slot)
        let dropped = (toServer.state.queued, toClient.state.queued)
        relay.change {
            $0.noteDropped(dropped.0, .toServer, of: number)
            $0.noteDropped(dropped.1, .toClient, of: number)
            $0.close(number)
        }
    }

    private func connect() async {
        if let server = try? await relay.connect(token) {
            self.server = server
            return
        }
        guard token.stopReason == nil else { return }
        relay.change { $0.noteUnreachable() }
        toServer.state.noteEnd()
        toClient.hasSenderEnded = true
        toClient.state.senderEnded(by: .reset, at: relay.clock.now())
    }

    // MARK: Steps

    private enum Outcome {
        /// The connection is over.
        case over
        /// Everything possible was done; the alarm is set to the next moment.
        case idle
        /// More is possible at once.
        case busy
    }

    private func step() -> Outcome {
        if let cut = orderedCut.withLock({ $0.take() }) { perform(cut) }
        // A bound, because a fast connection must not keep a thread from other tasks.
        for _ in 0..<32 where !isReset {
            let conditions = relay.conditions
            // A side's bytes are read before anything is delivered to it, so that they count to the right flight.
            var hasMoved = receive(.toServer, conditions)
            let (delivered, clientMoment) = deliver(.toClient, conditions)
            hasMoved = hasMoved || delivered
            hasMoved = receive(.toClient, conditions) || hasMoved
            let (alsoDelivered, serverMoment) = deliver(.toServer, conditions)
            hasMoved = hasMoved || alsoDelivered
            guard !hasMoved else { continue }
            let next = min(clientMoment ?? .max, serverMoment ?? .max)
            if isOver(next) { return .over }
            setAlarm(next == .max ? nil : next)
            return .idle
        }
        return isReset ? .over : .busy
    }

    private func isOver(_ next: Int64) -> Bool {
        let haveBothEnded = toServer.hasSenderEnded && toClient.hasSenderEnded
        let areBothOver = toServer.state.isOver && toClient.state.isOver
        if areBothOver { return !awaitsBothEnds || haveBothEnded }
        // A silent link delivers nothing, and both sides have left.
        return haveBothEnded && next == .max && !toServer.isBlocked && !toClient.isBlocked
    }

    private func setAlarm(_ moment: Int64?) {
        guard alarm?.moment != moment else { return }
        alarm?.alarm.off()
        alarm = moment.map { ($0, Alarm(relay.clock, at: $0, token)) }
    }

    private func perform(_ cut: NetworkConditions.Cut) {
        switch cut {
        case .reset: reset()
        case .finish:
            awaitsBothEnds = true
            for direction in NetworkConditions.Direction.allCases where !self[direction].state.isOver {
                finish(direction)
            }
        }
    }

    private func reset() {
        isReset = true
        client.abort()
        server?.abort()
    }

    /// Ends a direction by FIN; drops what is queued.
    private func finish(_ direction: NetworkConditions.Direction) {
        socket(direction)?.finishWriting()
        drop(direction)
    }

    private func drop(_ direction: NetworkConditions.Direction) {
        let count = self[direction].state.queued
        self[direction].noteEnd()
        relay.change { $0.noteDropped(count, direction, of: number) }
    }

    // MARK: Bytes

    private subscript(direction: NetworkConditions.Direction) -> RelayLink {
        get { direction == .toServer ? toServer : toClient }
        _modify { if direction == .toServer { yield &toServer } else { yield &toClient } }
    }

    /// The receiver of a direction.
    private func socket(_ direction: NetworkConditions.Direction) -> SocketTransport? {
        direction == .toServer ? server : client
    }

    /// The flight that the sender's next bytes belong to: see `NetworkRelay.Flight`.
    private func round(_ direction: NetworkConditions.Direction) -> Int {
        direction == .toServer ? toClient.deliveredRound + 1 : max(1, toServer.deliveredRound)
    }

    /// Reads what the sender of a direction has sent, as far as the queue has room. Returns whether there was any.
    private func receive(_ direction: NetworkConditions.Direction, _ conditions: NetworkConditions) -> Bool {
        guard let sender = socket(direction.opposite), !self[direction].hasSenderEnded else { return false }
        var hasMoved = false
        while true {
            let isDropped = self[direction].state.isOver
            let room = isDropped ? buffer.count : min(buffer.count, self[direction].state.room(conditions[direction]))
            guard room > 0 else { return hasMoved }
            let progress = buffer.withUnsafeMutableBytes { bytes in
                Result { () throws(IOFailure) in
                    try sender.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<room]))
                }
            }
            switch progress {
            case .success(.moved(let count)):
                hasMoved = true
                // One piece at a time, or an endless sender would keep the task here.
                guard !isDropped else { return true }
                let round = round(direction)
                self[direction].receive(buffer[..<count], round: round, at: relay.clock.now())
                relay.change { $0.noteReceived(count, round: round, direction, of: number) }
            case .success(.blocked): return hasMoved
            case .success(.end):
                let cut = self[direction].isSenderReset ? NetworkConditions.Cut.reset : .finish
                self[direction].senderEnded(by: cut, at: relay.clock.now())
                return true
            case .failure:
                self[direction].senderEnded(by: .reset, at: relay.clock.now())
                return true
            }
        }
    }

    /// Delivers what is due in a direction. Returns whether that was anything, and the moment at which the rest is.
    private func deliver(
        _ direction: NetworkConditions.Direction, _ conditions: NetworkConditions
    ) -> (hasMoved: Bool, next: Int64?) {
        guard let receiver = socket(direction) else { return (false, nil) }
        let link = conditions[direction]
        var hasMoved = false
        self[direction].isBlocked = false
        for _ in 0..<1_024 where !isReset {
            switch self[direction].state.next(link, at: relay.clock.now()) {
            case .idle: return (hasMoved, nil)
            case .wait(let moment): return (hasMoved, moment)
            case .end(.reset):
                reset()
                return (true, nil)
            case .end(.finish):
                finish(direction)
                return (true, nil)
            case .deliver(let count):
                let round = self[direction].state.nextRound ?? 0
                if round > self[direction].deliveredRound {
                    // The last moment at which what the receiver sends belongs to its earlier flight.
                    hasMoved = receive(direction.opposite, conditions) || hasMoved
                }
                switch write(count, of: round, direction, to: receiver, link) {
                case .moved?: hasMoved = true
                case .blocked?:
                    self[direction].isBlocked = true
                    return (hasMoved, nil)
                case .end?, nil:
                    // The receiver has gone. What it sent before is still read and passed on.
                    drop(direction)
                    self[direction.opposite].isSenderReset = true
                    return (true, nil)
                }
            }
        }
        return (hasMoved, nil)
    }

    /// Writes a segment. Returns `nil` if the receiver has gone.
    private func write(
        _ count: Int, of round: Int, _ direction: NetworkConditions.Direction, to receiver: SocketTransport,
        _ link: NetworkConditions.Link
    ) -> Progress? {
        // Written under the lock of the records: a test that the receiver has notified of these bytes finds them
        // counted. The write does not wait.
        return relay.change { [number] state in
            let progress = try? self[direction].bytes.withFirst(count) { try receiver.write($0) }
            if case .moved(let moved)? = progress {
                state.noteDelivered(moved, round: round, direction, of: number)
                self[direction].noteDelivered(moved, of: round, link)
            }
            return progress
        }
    }
}

/// One direction of a connection: its schedule, and the bytes that are scheduled.
private struct RelayLink {
    var state: RelayLinkState
    private(set) var bytes = RelayBytes()
    /// Whether the sender's end was read.
    var hasSenderEnded = false
    /// Whether a write to the sender failed because it has reset the connection. The kernel reports a reset once, so a
    /// later read may return a plain end.
    var isSenderReset = false
    /// Whether the receiver had no room for the segment that is due.
    var isBlocked = false
    /// The latest round of which a byte was delivered; 0 before the first.
    private(set) var deliveredRound = 0

    init(_ state: RelayLinkState) { self.state = state }

    mutating func receive(_ piece: ArraySlice<UInt8>, round: Int, at now: Int64) {
        bytes.append(Array(piece))
        state.receive(piece.count, round: round, at: now)
    }

    mutating func senderEnded(by cut: NetworkConditions.Cut, at now: Int64) {
        hasSenderEnded = true
        state.senderEnded(by: cut, at: now)
    }

    mutating func noteDelivered(_ count: Int, of round: Int, _ link: NetworkConditions.Link) {
        state.noteDelivered(count, link)
        bytes.removeFirst(count)
        deliveredRound = max(deliveredRound, round)
    }

    mutating func noteEnd() {
        state.noteEnd()
        bytes = RelayBytes()
    }
}

/// The queued bytes, in the pieces in which they were received.
private struct RelayBytes {
    private var pieces: [[UInt8]] = []
    /// The index of the first piece that is left, and the number of its bytes that are gone.
    private var (first, offset) = (0, 0)

    mutating func append(_ piece: [UInt8]) { pieces.append(piece) }

    /// Passes the first bytes, no more than the first piece has.
    func withFirst<R>(_ count: Int, _ use: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try pieces[first].withUnsafeBytes { try use(UnsafeRawBufferPointer(rebasing: $0[offset..<(offset + count)])) }
    }

    /// Removes bytes of the first piece.
    mutating func removeFirst(_ count: Int) {
        offset += count
        guard offset == pieces[first].count else { return }
        pieces[first] = []
        (first, offset) = (first + 1, 0)
        // Moving the rest costs as much as the elements that it frees.
        guard first * 2 >= pieces.count else { return }
        pieces.removeFirst(first)
        first = 0
    }
}
