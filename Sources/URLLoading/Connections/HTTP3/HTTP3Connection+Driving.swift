// SPDX-License-Identifier: Apache-2.0

// The driver of a connection: receives what has arrived, sends what is due, and waits for more or for the next
// deadline, until the connection is over.

#if HTTP3

import Synchronization
import URLLoadingIO
import URLLoadingWire

extension HTTP3Connection {
    /// Starts the driver, which sends the first datagrams before this returns.
    func run(_ socket: DatagramSocket) {
        isAt(socket.localAddress)
        // Loads of every priority wait for it.
        _ = Task.apart(priority: .high) { await self.drive(HTTP3Sockets(socket)) }
    }

    private func drive(_ first: HTTP3Sockets) async {
        var sockets = first
        sockets.present.socket.slot.relay(to: slot)
        // What is relayed wakes a reader, and by this also a writer.
        slot.wakeWriterForReads(true)
        // Nothing stops the driver from outside: the connection ends, and the driver with it.
        let token = StopToken()
        let input = DatagramBuffer()
        var errorCount = 0
        // A connection that ends soon does not read the kernel's tables.
        let listeningTime = Poller.now() + Self.timeBeforeNews
        var isListening = false
        // Whether the driver naps between its reads in place of waiting for notifications.
        var naps = false
        while true {
            let (count, mayHoldMore) = receive(from: sockets, into: input, asksAnyway: naps, &errorCount)
            guard state.withLock({ $0.beginSending() }) else {
                // The load that sends wakes the driver then.
                await Poller.shared.park(slot, .read, token)
                continue
            }
            let (turn, isBlocked) = send(from: sockets, (sockets.present.socket.isStranded, news.changeCount))
            trace()
            if turn.isOver { break }
            if sockets.follow(turn.migration) { isAt(sockets.present.socket.localAddress) }
            let isMoving = turn.look.map { migrate($0, &sockets) } ?? false
            sender.sockets = sockets
            let now = Poller.now()
            if !isListening, now >= listeningTime {
                isListening = true
                news.add(slot)
            }
            if !isListening { sender.setAlarm(listeningTime, now: now, slot) }
            sender.setAlarm(turn.deadline, now: now, slot)
            // The datagrams of a fast body gather before they are read, as in `ReceiveGathering`.
            let isFast = count >= Self.flood
            sockets.present.socket.slot.gatherReads(isFast)
            if !mayHoldMore {
                naps = isFast && !isBlocked && Poller.shared.mayNap(ownSlots: Self.slotCount)
                // Each group that arrives during a nap would wake the polling thread.
                sockets.present.socket.mute(naps)
            }
            if state.withLock({ $0.endSending() }) || isMoving { continue }
            if naps, !mayHoldMore { Poller.shared.nap() }
            if mayHoldMore || naps {
                if state.withLock({ $0.yieldsTurn() }) { await Task.yield() }
                continue
            }
            if turn.deadline <= now, !isBlocked { continue }
            await Poller.shared.park(slot, isBlocked ? .write : .read, token)
        }
        // The peer is told the reason, as far as that is possible without a wait. No load sends any more.
        _ = send(from: sockets, nil)
        trace()
        if isListening { news.remove(slot) }
        sockets.close()
        Poller.shared.returnSlot(slot)
        report()
        if peer != nil { tap?(.closed(connection: identifier)) }
    }

    /// Sends what is due, in the task of a load: that takes no change of tasks.
    func sendNow() {
        guard state.withLock({ $0.beginSending() }) else { return }
        guard let sockets = sender.sockets else {
            _ = state.withLock { $0.endSending() }
            return flushIfNeeded()
        }
        let (turn, isBlocked) = send(from: sockets, nil)
        let now = Poller.now()
        sender.setAlarm(turn.deadline, now: now, slot)
        if state.withLock({ $0.endSending() }) || isBlocked || turn.isOver || turn.deadline <= now { flushIfNeeded() }
    }

    /// Passes what has been received and sent to the trace.
    private func trace() {
        guard let tap else { return }
        for item in state.withLock({ $0.takeTrace() }) {
            switch item {
            case .frame(let line, let isSent): tap(.frame(line, isSent: isSent, connection: identifier))
            case .log(let record):
                tap(.log(record, connection: identifier))
                guard let packet = QUICPacketLine(record) else { continue }
                tap(.frame(packet.text, isSent: packet.isSent, connection: identifier))
            }
        }
    }

    /// The age in nanoseconds from which on a connection hears of changes of the networks.
    private static let timeBeforeNews: Int64 = 1_000_000_000
    /// With so many bytes for one wait, data arrives faster than the driver is woken. Lower than that of
    /// `ReceiveGathering`: servers send datagrams in groups of some ten kilobytes.
    private static let flood = 16 * 1024
    /// The slots of a connection with one stream, besides that of its socket: the driver's, the stream's, and that of
    /// the reports of the networks.
    private static let slotCount = 3

    private func wake(_ slots: [PollSlot]) {
        for slot in slots { slot.wake() }
        report()
    }

    /// Lets the connection move to another local address, if the system would choose another one now. Returns whether a
    /// datagram is due there.
    private func migrate(_ look: HTTP3Migration.Look, _ sockets: inout HTTP3Sockets) -> Bool {
        guard state.withLock({ $0.access }).refusal(to: remote, monitor) == nil,
            let socket = self.sockets.make(apartFrom: sockets.present.socket)
        else { return false }
        var slots: [PollSlot] = []
        let number = state.withLock { $0.migrate(look, now: Poller.now(), &slots) }
        wake(slots)
        guard let number else {
            socket.close()
            return false
        }
        socket.slot.relay(to: slot)
        sockets.ask(on: number, socket)
        return true
    }

    /// Receives what has arrived.
    /// - Parameter asksAnyway: whether the socket is read also if no datagram was notified.
    /// - Returns: the number of bytes, and whether there may be more.
    private func receive(
        from sockets: HTTP3Sockets, into input: DatagramBuffer, asksAnyway: Bool, _ errorCount: inout Int
    ) -> (count: Int, mayHoldMore: Bool) {
        var got = receive(from: sockets.present, into: input, asksAnyway, &errorCount)
        if let asked = sockets.asked {
            let other = receive(from: asked, into: input, false, &errorCount)
            got = (got.count + other.count, got.mayHoldMore || other.mayHoldMore)
        }
        return got
    }

    private func receive(
        from path: HTTP3Sockets.Path, into input: DatagramBuffer, _ asksAnyway: Bool, _ errorCount: inout Int
    ) -> (count: Int, mayHoldMore: Bool) {
        // The driver is also woken by loads, which have something to send.
        guard path.socket.slot.mayHoldInput || asksAnyway else { return (0, false) }
        do throws(IOFailure) {
            guard case .moved(let groups) = try path.socket.receive(into: input) else { return (0, false) }
            errorCount = 0
            wake(state.withLock { $0.receive(input, on: path.number, now: Poller.now()) })
            return (input.count, groups == input.mostGroups)
        } catch {
            // A report of the network is received once; an error that stays is one of the socket.
            errorCount += 1
            if errorCount > Self.mostErrors { fail(.io(error)) }
            return (0, disregard(error))
        }
    }
    private static let mostErrors = 64

    /// Sends what is due. Called between `beginSending` and `endSending`.
    /// - Returns: what follows, and whether the socket takes no more for now.
    private func send(
        from sockets: HTTP3Sockets, _ network: (isStranded: Bool, changeCount: Int)?
    ) -> (turn: HTTP3State.Turn, isBlocked: Bool) {
        var network = network
        while true {
            let buffer = sender.output.isSent ? sender.output.buffer : nil
            let turn = state.withLock { [network] in $0.turn(into: buffer, network, now: Poller.now()) }
            wake(turn.slots)
            if buffer != nil {
                guard let datagrams = turn.datagrams else { return (turn, false) }
                sender.output.fill(datagrams)
            }
            // What is left for a path that was given up is lost.
            guard let socket = sockets[sender.output.path] else {
                sender.output.drop()
                continue
            }
            let output = sender.output
            do throws(IOFailure) {
                guard case .moved(let count) = try socket.send(output.rest, size: output.size, ecn: output.ecn) else {
                    return (turn, true)
                }
                sender.output.advance(count)
            } catch {
                // Datagrams that cannot be sent are lost, like others on their way.
                sender.output.drop()
                if !disregard(error) { return (turn, false) }
            }
            network?.isStranded = sockets.present.socket.isStranded
        }
    }

    /// Handles an error of the socket: it ends a handshake. Afterwards it may be of the network, which may come back,
    /// or forged; a peer that is lost is silent.
    /// - Returns: whether the connection goes on.
    private func disregard(_ failure: IOFailure) -> Bool {
        guard state.withLock({ $0.isOpening }) else { return true }
        fail(.io(failure))
        return false
    }
}

/// What the task that sends has for itself: see `HTTP3State.Sending`.
final class HTTP3Sender: @unchecked Sendable {
    // Unchecked: guarded by the state's `sending`.
    fileprivate var output = HTTP3Output()
    private var alarms = HTTP3Alarms()
    /// `nil` before the driver has begun.
    fileprivate var sockets: HTTP3Sockets?

    deinit { output.free() }

    /// Lets the poller wake the driver at a moment, if it would not be sooner.
    fileprivate func setAlarm(_ moment: Int64, now: Int64, _ slot: PollSlot) {
        guard moment > now, let moment = alarms.next(moment, now: now) else { return }
        Poller.shared.schedule(slot, at: moment)
    }
}

/// Datagrams that are not yet sent.
private struct HTTP3Output {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    private var unsent = 0..<0
    private(set) var size = 0
    private(set) var ecn: UInt8 = 0
    private(set) var path: UInt32 = 0

    var isSent: Bool { unsent.isEmpty }
    var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[unsent]) }

    mutating func fill(_ datagrams: QUICDatagrams) {
        (unsent, size, ecn, path) = (0..<datagrams.count, datagrams.size, datagrams.ecn, datagrams.path)
    }
    mutating func advance(_ count: Int) { unsent = unsent.lowerBound + count..<unsent.upperBound }
    mutating func drop() { unsent = 0..<0 }
    func free() { buffer.deallocate() }
}

/// The moments at which the poller wakes the driver. A timer cannot be taken back, so one is set only if none fires
/// before the deadline: the driver looks at the deadline again whenever it is woken.
package struct HTTP3Alarms {
    /// In descending order.
    private var set: [Int64] = []

    package init() {}

    /// Returns the moment for which a timer must be set, if any.
    package mutating func next(_ deadline: Int64, now: Int64) -> Int64? {
        while let first = set.last, first <= now { set.removeLast() }
        guard deadline != .max, set.last.map({ $0 > deadline }) != false else { return nil }
        set.append(deadline)
        return deadline
    }
}

#endif
