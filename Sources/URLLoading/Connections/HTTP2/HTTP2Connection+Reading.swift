// SPDX-License-Identifier: Apache-2.0

// Reads a shared connection. One task reads at a time: the first that waits while no other reads. It reads until its
// own stream has an event, and then hands over to another waiting task. A single load therefore reads its socket
// itself, without a switch between tasks, and many loads share each read and each write.
//
// A task that was woken by a read often sends its next request soon. A reader that has woken tasks therefore yields
// once before it writes, so that their requests are written together.

import Synchronization
import URLLoadingIO
import URLLoadingWire

extension HTTP2Connection {
    /// Waits for an event of a stream, or until the load must act: it was stopped or suspended, or `deadline` has
    /// passed.
    /// - Parameters:
    ///   - countsIdle: whether the wait is for the peer, and limited by the idle timeout.
    ///   - endsOnWake: whether the wait ends whenever the load's slot is woken.
    func wait(
        for stream: HTTP2Stream, _ control: LoadHandle, until deadline: Int64 = .max, countsIdle: Bool = true,
        endsOnWake: Bool = false
    ) async {
        let start = countsIdle ? clock.coarseNow() : nil
        while true {
            switch state.withLock({ $0.part(of: stream) }) {
            case .event: return
            case .read:
                return await read(for: stream, control, until: deadline, idleSince: start, endsOnWake: endsOnWake)
            case .wait(let mustFlush):
                if mustFlush { flush() }
                await Poller.shared.park(stream.slot, .read, control, idleSince: start)
                let isOver =
                    control.stopReason != nil || control.isSuspended || (deadline != .max && clock.now() >= deadline)
                let (keepsWaiting, next) = state.withLock { $0.wokeUp(stream, isOver: isOver || endsOnWake) }
                next?.wake()
                if !keepsWaiting { return }
            }
        }
    }

    private func read(
        for stream: HTTP2Stream, _ control: LoadHandle, until deadline: Int64, idleSince start: Int64?, endsOnWake: Bool
    ) async {
        control.attach(transport.slot)
        if state.withLock({ $0.reading.wokenCount > 0 }) { await Task.yield() }
        var hasParked = false
        incoming.lateReads = 0
        reading: while true {
            flush()
            // Frames of other streams can keep the reader from parking, so it checks the idle timeout itself. What has
            // arrived is read before: the reader may have waited for a thread. Frames without a pause keep it no
            // longer than for what a socket can hold.
            if let start, clock.coarseNow() &- start >= control.idleLimit {
                if state.withLock({ $0.hasUnseenEvents(stream) }) { break }
                incoming.lateReads += 1
                if !incoming.mustRead || incoming.lateReads > HTTP2Incoming.maximumLateReads { control.stop(.idle) }
            }
            if control.stopReason != nil || control.isSuspended || (endsOnWake && hasParked) { break }
            if deadline != .max, clock.now() >= deadline { break }
            if incoming.mustRead {
                if state.withLock({ $0.hasUnseenEvents(stream) }) { break }
                guard readOnce() else { continue }
                await yieldIfDue()
                continue
            }
            if napIfFast() {
                incoming.mustRead = true
                continue
            }
            let interest: PollSlot.Interest
            let (slot, blockedOn) = (transport.slot, incoming.blockedOn)
            switch state.withLock({ $0.park(stream, on: slot, blockedOn: blockedOn) }) {
            case .event: break reading
            case .write: continue
            case .wait(let what): interest = what
            }
            if mayPark(interest) { await Poller.shared.park(slot, interest, control, idleSince: start) }
            slot.wakeWriterForReads(false)
            hasParked = true
            state.withLock { $0.unpark() }
            incoming.mustRead = true
        }
        control.detach(transport.slot)
        stopReading()
    }

    /// Lets the data of a fast body gather before it is read on, by a nap in this thread or in the poller's, as
    /// `ReceiveGathering` does for a connection with one body. Returns whether the thread has napped.
    private func napIfFast() -> Bool {
        let isFast = incoming.input.takeReceivedInTurn() >= ReceiveGathering.flood && places.count == 1
        transport.slot.gatherReads(isFast)
        return isFast && incoming.blockedOn == .read && Poller.shared.napIfAlone()
    }

    /// Yields after each 4 MiB: with a peer faster than the reader, the task would never suspend.
    private func yieldIfDue() async {
        guard incoming.input.receivedInTurn > 4 << 20 else { return }
        _ = incoming.input.takeReceivedInTurn()
        await Task.yield()
    }

    /// Lets input also wake a reader that waits for writing; returns false if input has already arrived.
    private func mayPark(_ interest: PollSlot.Interest) -> Bool {
        guard interest == .write else { return true }
        transport.slot.wakeWriterForReads(true)
        return !transport.hasPendingInput(askingKernel: false)
    }

    func stopReading() {
        let after = state.withLock { $0.endReading() }
        after.next?.wake()
        if after.closesTransport { closeTransport() }
        if after.setsTimer { clock.schedule(HTTP2ReadTimer(self), at: clock.coarseNow() + HTTP2ReadTimer.interval) }
    }

    /// Reads once and delivers the bytes. Returns false if none are available, or no more will come.
    func readOnce() -> Bool {
        let room = incoming.input.makeRoom()
        let outcome = Result { () throws(IOFailure) in try transport.read(into: room) }
        switch outcome {
        case .success(.moved(let count)):
            receive(count, filled: count == room.count)
            return true
        case .success(.blocked(let interest)):
            (incoming.blockedOn, incoming.mustRead) = (interest, false)
            emptyReads.add(1, ordering: .relaxed)
        case .success(.end):
            incoming.mustRead = false
            fail(.closed)
        case .failure(let failure):
            incoming.mustRead = false
            fail(.io(failure))
        }
        return false
    }

    private func receive(_ count: Int, filled: Bool) {
        incoming.input.received(count, filled: filled)
        incoming.mustRead = transport.mayHoldMore
        if let tap {
            for line in incoming.lines.lines(incoming.input.last(count)) {
                tap(.frame(line, isSent: false, connection: identifier))
            }
        }
        let now = clock.coarseNow()
        let slots = state.withLock { state in
            state.probing.lastReceived = now
            let consumed = state.codec.receive(incoming.input.bytes, second: now / 1_000_000_000)
            let slots = state.deliver(from: incoming.input)
            incoming.input.consume(consumed)
            return slots
        }
        for slot in slots { slot.wake() }
        report()
    }
}
