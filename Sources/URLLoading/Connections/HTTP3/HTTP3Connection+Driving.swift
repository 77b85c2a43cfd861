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
        _ = Task.here(priority: .high) { await self.drive(HTTP3Sockets(socket)) }
    }

    private func drive(_ first: HTTP3Sockets) async {
        var sockets = first
        sockets.present.socket.slot.relay(to: slot)
        // What is relayed wakes a reader, and by this also a writer.
        slot.wakeWriterForReads(true)
        news.add(slot)
        // Nothing stops the driver from outside: the connection ends, and the driver with it.
        let token = StopToken()
        let input = DatagramBuffer()
        var output = HTTP3Output()
        var alarms = HTTP3Alarms()
        var errorCount = 0
        while true {
            let hasReceived = receive(from: sockets, into: input, &errorCount)
            wake(state.withLock { $0.passDeadline(now: Poller.now()) })
            let isBlocked = send(&output, sockets)
            trace()
            let (isOver, deadline, migration) = state.withLock { ($0.isOver, $0.deadline, $0.migration) }
            if isOver { break }
            if sockets.follow(migration) { isAt(sockets.present.socket.localAddress) }
            if migrateIfNeeded(&sockets) { continue }
            if hasReceived {
                await yieldIfDue()
                continue
            }
            let now = Poller.now()
            if deadline <= now, !isBlocked { continue }
            if deadline > now, let moment = alarms.next(deadline, now: now) {
                Poller.shared.schedule(slot, at: moment)
            }
            await Poller.shared.park(slot, isBlocked ? .write : .read, token)
        }
        // The peer is told the reason, as far as that is possible without a wait.
        _ = send(&output, sockets)
        trace()
        news.remove(slot)
        sockets.close()
        Poller.shared.returnSlot(slot)
        output.free()
        report()
        if peer != nil { tap?(.closed(connection: identifier)) }
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

    /// Yields after each 4 MiB: with a peer faster than the driver, the task would never suspend.
    private func yieldIfDue() async {
        let isDue = state.withLock { state in
            guard state.receivedInTurn > 4 << 20 else { return false }
            state.receivedInTurn = 0
            return true
        }
        if isDue { await Task.yield() }
    }

    private func wake(_ slots: [PollSlot]) {
        for slot in slots { slot.wake() }
        report()
    }

    /// Lets the connection move to another local address, if the present one is of no use and the system would choose
    /// another one now. Returns whether a datagram is due there.
    private func migrateIfNeeded(_ sockets: inout HTTP3Sockets) -> Bool {
        let isStranded = sockets.present.socket.isStranded
        let (look, access) = state.withLock {
            ($0.look(isStranded: isStranded, changeCount: news.changeCount, now: Poller.now()), $0.access)
        }
        guard let look, access.refusal(to: remote, monitor) == nil,
            let socket = self.sockets.make(apartFrom: sockets.present.socket)
        else { return false }
        let number = state.withLock { $0.migrate(look, now: Poller.now()) }
        report()
        guard let number else {
            socket.close()
            return false
        }
        socket.slot.relay(to: slot)
        sockets.ask(on: number, socket)
        return true
    }

    /// Returns whether there may be more to receive.
    private func receive(from sockets: HTTP3Sockets, into input: DatagramBuffer, _ errorCount: inout Int) -> Bool {
        var mayHoldMore = false
        for path in sockets.all {
            mayHoldMore = receive(from: path, into: input, &errorCount) || mayHoldMore
        }
        return mayHoldMore
    }

    private func receive(
        from path: HTTP3Sockets.Path, into input: DatagramBuffer, _ errorCount: inout Int
    ) -> Bool {
        do throws(IOFailure) {
            guard case .moved = try path.socket.receive(into: input) else { return false }
            errorCount = 0
            wake(state.withLock { $0.receive(input, on: path.number, now: Poller.now()) })
            return true
        } catch {
            // A report of the network is received once; an error that stays is one of the socket.
            errorCount += 1
            if errorCount > Self.mostErrors { fail(.io(error)) }
            return disregard(error)
        }
    }
    private static let mostErrors = 64

    /// Sends what is due. Returns whether the socket takes no more for now.
    private func send(_ output: inout HTTP3Output, _ sockets: HTTP3Sockets) -> Bool {
        while true {
            if output.isSent {
                let (datagrams, slots) = state.withLock {
                    $0.nextDatagrams(into: output.buffer, now: Poller.now())
                }
                wake(slots)
                guard let datagrams else { return false }
                output.fill(datagrams)
            }
            // What is left for a path that was given up is lost.
            guard let socket = sockets[output.path] else {
                output.drop()
                continue
            }
            do throws(IOFailure) {
                guard case .moved(let count) = try socket.send(output.rest, size: output.size, ecn: output.ecn) else {
                    return true
                }
                output.advance(count)
            } catch {
                // Datagrams that cannot be sent are lost, like others on their way.
                output.drop()
                guard disregard(error) else { return false }
            }
        }
    }

    /// Handles an error of the socket: it ends a handshake. Afterwards it may be of the network, which may come back,
    /// or forged; a peer that is lost is silent.
    /// - Returns: whether the connection goes on.
    private func disregard(_ failure: IOFailure) -> Bool {
        let isOpening = state.withLock { if case .opening = $0.phase { true } else { false } }
        guard isOpening else { return true }
        fail(.io(failure))
        return false
    }
}

/// Datagrams that are not yet sent. Used by the driver only.
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
