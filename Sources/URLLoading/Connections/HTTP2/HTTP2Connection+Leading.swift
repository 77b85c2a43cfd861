// Who reads. One task at a time does: the first that waits while nobody reads. It goes on until its own stream has
// something, and leaves the reading to another that waits. So a single load reads its socket itself, without a hop
// between tasks, and many share one read and one write.
//
// Who was woken by what was read sends his next request soon: a reader that has woken others lets them run once
// before he writes, and their requests go out together.

import Synchronization
import URLLoadingIO
import URLLoadingWire

extension HTTP2Connection {
    private enum Part {
        case news, lead, follow(flushes: Bool)
    }

    /// Waits until something has happened to a stream, or its load is to look: it was stopped, suspended, or
    /// `deadline` has passed.
    /// - Parameters:
    ///   - countsIdle: it is the peer who is waited for.
    ///   - hearsWake: whatever wakes the load ends the wait.
    func wait(
        for stream: HTTP2Stream, _ control: LoadControl, until deadline: Int64 = .max, countsIdle: Bool = true,
        hearsWake: Bool = false
    ) async {
        let start = countsIdle ? clock.coarseNow() : nil
        while true {
            switch part(stream, control) {
            case .news: return
            case .lead: return await lead(stream, control, deadline, start, hearsWake)
            case .follow(let flushes):
                if flushes { flush() }
                await Poller.shared.park(stream.slot, .read, control, idleSince: start)
                if !leaveLine(stream, control, deadline) || hearsWake { return }
            }
        }
    }

    private func part(_ stream: HTTP2Stream, _ control: LoadControl) -> Part {
        lock.withLock { _ in
            if stream.hasNews || failure != nil { return .news }
            guard isLed else {
                (isLed, leader) = (true, stream)
                return .lead
            }
            stream.isWaiting = true
            if stream.place == nil {
                stream.place = line.count
                line.append(stream)
            }
            return .follow(flushes: isLeaderParked)
        }
    }

    /// Returns whether the wait goes on. Who leaves leaves the reading to others.
    private func leaveLine(_ stream: HTTP2Stream, _ control: LoadControl, _ deadline: Int64) -> Bool {
        let isOver = control.stopReason != nil || control.isSuspended || (deadline != .max && clock.now() >= deadline)
        let (goesOn, next): (Bool, PollSlot?) = lock.withLock { _ in
            stream.isWaiting = false
            runs(stream)
            guard stream.hasNews || isOver || failure != nil else { return (true, nil) }
            return (false, nextInLine())
        }
        next?.wake()
        return goesOn
    }

    /// Who is to read if nobody does. Under the lock.
    func nextInLine() -> PollSlot? {
        guard !isLed else { return nil }
        while let last = line.popLast() {
            last.place = nil
            if last.isWaiting, !last.hasNews { return last.slot }
        }
        return nil
    }

    /// A stream that ends must not wait in the line for a reader who may never leave. Under the lock.
    func dropFromLine(_ stream: HTTP2Stream) {
        guard let place = stream.place, let last = line.popLast() else { return }
        stream.place = nil
        guard last !== stream else { return }
        line[place] = last
        last.place = place
    }

    private func lead(
        _ stream: HTTP2Stream, _ control: LoadControl, _ deadline: Int64, _ start: Int64?, _ hearsWake: Bool
    ) async {
        control.attach(transport.slot)
        if lock.withLock({ _ in wokenCount > 0 }) { await Task.yield() }
        var hasParked = false
        reading: while true {
            flush()
            // Whoever never parks, because others' frames keep coming, sees to his own time.
            if let start, clock.coarseNow() &- start >= control.idleLimit { control.stop(.idle) }
            if control.stopReason != nil || control.isSuspended || (hearsWake && hasParked) { break }
            if deadline != .max, clock.now() >= deadline { break }
            if mustRead {
                if lock.withLock({ _ in stream.hasNews || failure != nil }) { break }
                guard readOnce() else { continue }
                await giveWay()
                continue
            }
            let interest: PollSlot.Interest
            switch parkLeader(stream) {
            case .news: break reading
            case .write: continue
            case .wait(let what): interest = what
            }
            if mayPark(interest) { await Poller.shared.park(transport.slot, interest, control, idleSince: start) }
            transport.slot.hearReadsWhileWriting(false)
            hasParked = true
            lock.withLock { _ in
                isLeaderParked = false
                mustRead = true
            }
        }
        control.detach(transport.slot)
        stopLeading()
    }

    /// A peer that is faster than we are never makes the reader wait: now and then others get their turn.
    private func giveWay() async {
        guard input.receivedInTurn > Self.turn else { return }
        input.receivedInTurn = 0
        await Task.yield()
    }
    private static let turn = 4 << 20

    private enum Parking {
        case news, write, wait(PollSlot.Interest)
    }

    /// What the reader waits for, if he need.
    private func parkLeader(_ stream: HTTP2Stream) -> Parking {
        lock.withLock { _ in
            if stream.hasNews || failure != nil { return .news }
            if mustWriteFirst { return .write }
            input.receivedInTurn = 0
            isLeaderParked = true
            let interest = writeBlockedOn == .write || readBlockedOn == .write ? PollSlot.Interest.write : .read
            return .wait(interest)
        }
    }

    /// Who waits to write hears what can be read from now on, and looks for what was heard before.
    private func mayPark(_ interest: PollSlot.Interest) -> Bool {
        guard interest == .write else { return true }
        transport.slot.hearReadsWhileWriting(true)
        return !transport.hasPendingInput(askingKernel: false)
    }

    func stopLeading() {
        var keeps = false, closes = false
        let next = lock.withLock { _ in
            (isLed, leader, isLeaderParked) = (false, nil, false)
            closes = closesAfterReading
            let next = nextInLine()
            if next == nil, !isKeeping, failure == nil, !closes {
                isKeeping = true
                keeps = true
            }
            return next
        }
        next?.wake()
        if closes { closeTransport() }
        if keeps { clock.schedule(HTTP2Keeper(self), at: clock.coarseNow() + HTTP2Keeper.interval) }
    }

    // MARK: Reading

    /// Reads once and deals out what came. Returns false if nothing is there, or nothing more comes.
    func readOnce() -> Bool {
        let room = input.makeRoom()
        let outcome = Result { () throws(IOFailure) in try transport.read(into: room) }
        switch outcome {
        case .success(.moved(let count)):
            receive(count, filled: count == room.count)
            return true
        case .success(.blocked(let interest)):
            (readBlockedOn, mustRead) = (interest, false)
            looks.add(1, ordering: .relaxed)
        case .success(.end):
            mustRead = false
            fail(.closed)
        case .failure(let failure):
            mustRead = false
            fail(.io(failure))
        }
        return false
    }

    private func receive(_ count: Int, filled: Bool) {
        input.received(count, filled: filled)
        mustRead = filled || transport.mayHoldMore
        if let tap {
            for line in receivedLines.lines(input.last(count)) { tap(.frame(line, isSent: false, connection: identifier)) }
        }
        let now = clock.coarseNow()
        let slots = lock.withLock { _ in
            lastHeard = now
            let consumed = codec.receive(input.bytes, second: now / 1_000_000_000)
            let slots = deposit(codec.takeEvents())
            input.consume(consumed)
            return slots
        }
        for slot in slots { slot.wake() }
        report()
    }

    // MARK: Dealing out

    /// Lays what has happened with the streams it happened to. Returns whom to wake. Under the lock.
    func deposit(_ events: [HTTP2Event]) -> [PollSlot] {
        var slots: [PollSlot] = []
        for event in events {
            switch event {
            case .informational(let number, let head): change(number, &slots) { $0.inbox.informational.append(head) }
            case .response(let number, let head): change(number, &slots) { $0.inbox.head = head }
            case .data(let number, let range):
                codec.arrived(range.count)
                guard let stream = streams[number] else { break }
                let isAwaited = stream.readsBody && (stream === leader || stream.isWaiting || stream.wasWoken)
                stream.inbox.chunks.append(input.chunk(range, isAwaited: isAwaited, after: stream.inbox.chunks.last))
                stream.inbox.dataCount += range.count
                note(stream, &slots)
            case .end(let number, let trailers):
                change(number, &slots) {
                    $0.isComplete = true
                    $0.inbox.trailers = trailers
                }
            case .sent(let number, let count): change(number, &slots) { $0.inbox.sent += count }
            case .sentAll(let number):
                change(number, &slots) {
                    $0.hasSentAll = true
                    $0.inbox.hasSentAll = true
                }
            case .reset(let number, let code): fail(number, .reset(code), &slots)
            case .violation(let number, let violation): fail(number, .wire(violation), &slots)
            case .unprocessed(let number): fail(number, wasToldToCalm ? .calm : .unprocessed, &slots)
            case .concurrency(let count):
                setLimit(count)
                heardSettings(&slots)
            case .goAway(let code):
                if code == .enhanceYourCalm { wasToldToCalm = true }
                retire()
            case .failed(let violation): slots += failUnderLock(.wire(violation))
            case .settingsAcknowledged: areSettingsAcknowledged = true
            case .pong: break
            }
        }
        return slots
    }

    private func change(_ number: Int32, _ slots: inout [PollSlot], _ body: (HTTP2Stream) -> Void) {
        guard let stream = streams[number] else { return }
        body(stream)
        note(stream, &slots)
    }

    private func fail(_ number: Int32, _ failure: HTTP2Failure, _ slots: inout [PollSlot]) {
        change(number, &slots) { stream in
            stream.isOver = true
            // After the answer the peer may say that it needs no more of the request (RFC 9113 8.1).
            if !stream.isComplete { stream.inbox.failure = failure }
            stream.hasSentAll = true
            stream.inbox.hasSentAll = true
        }
    }

    func note(_ stream: HTTP2Stream, _ slots: inout [PollSlot]) {
        stream.hasNews = true
        if stream === leader {
            if isLeaderParked { slots.append(transport.slot) }
        } else if stream.isTunnel {
            if slots.last !== stream.slot { slots.append(stream.slot) }
        } else if stream.isWaiting {
            stream.isWaiting = false
            stream.wasWoken = true
            wokenCount += 1
            slots.append(stream.slot)
        }
    }
}
