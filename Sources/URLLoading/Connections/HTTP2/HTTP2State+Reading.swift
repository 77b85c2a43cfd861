// SPDX-License-Identifier: Apache-2.0

// The reader of a shared connection's socket: one of the tasks that wait for their streams, or the read timer.

import URLLoadingIO

extension HTTP2State {
    /// The task that reads the socket, and the queue of the next ones.
    struct Reading {
        private enum Reader {
            case none
            /// A check by the timer, or by a load that takes a slot.
            case timer
            /// The task of a stream.
            case stream(HTTP2Stream)
            /// The task of a stream that waits on the socket's slot, and must be woken to write frames.
            case waiting(HTTP2Stream, PollSlot)
        }
        private var reader = Reader.none
        /// The streams that may read next, each at its `place`.
        private var queue: [HTTP2Stream] = []
        /// The number of tasks that were woken by events and do not run yet.
        var wokenCount = 0
        private var isTimerSet = false

        var isFree: Bool { if case .none = reader { true } else { false } }

        func isReader(_ stream: HTTP2Stream) -> Bool {
            switch reader {
            case .none, .timer: false
            case .stream(let reader), .waiting(let reader, _): reader === stream
            }
        }

        /// The socket's slot, if the reader waits there.
        var waitingSocket: PollSlot? { if case .waiting(_, let slot) = reader { slot } else { nil } }

        mutating func begin(_ stream: HTTP2Stream) -> Bool {
            guard isFree else { return false }
            reader = .stream(stream)
            return true
        }

        mutating func beginIdleRead() -> Bool {
            guard isFree else { return false }
            reader = .timer
            return true
        }

        mutating func wait(on slot: PollSlot) {
            if case .stream(let stream) = reader { reader = .waiting(stream, slot) }
        }
        mutating func endWait() { if case .waiting(let stream, _) = reader { reader = .stream(stream) } }
        mutating func end() { reader = .none }

        mutating func enqueue(_ stream: HTTP2Stream) {
            guard stream.place == nil else { return }
            stream.place = queue.count
            queue.append(stream)
        }

        /// Removes a stream that ends, so that it does not stay in the queue of a long-running reader.
        mutating func dequeue(_ stream: HTTP2Stream) {
            guard let place = stream.place, let last = queue.popLast() else { return }
            stream.place = nil
            guard last !== stream else { return }
            queue[place] = last
            last.place = place
        }

        /// Returns the slot of the next stream to read, if no task reads.
        mutating func nextSlot() -> PollSlot? {
            guard isFree else { return nil }
            while let last = queue.popLast() {
                last.place = nil
                if last.isWaiting, !last.hasUnseenEvents { return last.slot }
            }
            return nil
        }

        mutating func setTimer() -> Bool {
            defer { isTimerSet = true }
            return !isTimerSet
        }

        mutating func timerFired() { isTimerSet = false }
    }

    enum Part {
        case event
        case read
        /// Waits while another task reads.
        case wait(mustFlush: Bool)
    }

    /// Returns how the task of a stream waits for an event.
    mutating func part(of stream: HTTP2Stream) -> Part {
        if hasUnseenEvents(stream) { return .event }
        if reading.begin(stream) { return .read }
        stream.isWaiting = true
        reading.enqueue(stream)
        return .wait(mustFlush: reading.waitingSocket != nil)
    }

    /// Handles the wake-up of a stream's task. Returns whether its wait continues, and otherwise the slot of the next
    /// reader: the wake-up may have been the call to read.
    /// - Parameter isOver: whether the wait ends without an event.
    mutating func wokeUp(_ stream: HTTP2Stream, isOver: Bool) -> (keepsWaiting: Bool, next: PollSlot?) {
        stream.isWaiting = false
        runs(stream)
        guard stream.hasUnseenEvents || isOver || failure != nil else { return (true, nil) }
        return (false, reading.nextSlot())
    }

    enum Parking {
        case event, write
        case wait(PollSlot.Interest)
    }

    /// Returns how the reader waits when the socket is empty.
    /// - Parameter blockedOn: the event that its last read waits for: TLS may have to write before it can read.
    mutating func park(_ stream: HTTP2Stream, on slot: PollSlot, blockedOn: PollSlot.Interest) -> Parking {
        if hasUnseenEvents(stream) { return .event }
        if writing.awaitsWriter { return .write }
        reading.wait(on: slot)
        return .wait(writing.isBlocked(on: .write) || blockedOn == .write ? .write : .read)
    }

    mutating func unpark() { reading.endWait() }

    struct AfterReading {
        /// The slot of the stream that reads next.
        var next: PollSlot?
        var closesTransport = false
        var setsTimer = false
    }

    mutating func endReading() -> AfterReading {
        reading.end()
        var after = AfterReading(next: reading.nextSlot(), closesTransport: mustClose)
        if after.next == nil, failure == nil, closing == .no { after.setsTimer = reading.setTimer() }
        return after
    }

    /// Returns whether the caller may read the socket.
    mutating func beginIdleRead() -> Bool { failure == nil && closing == .no && reading.beginIdleRead() }

    mutating func timerFired() -> Bool {
        reading.timerFired()
        return beginIdleRead()
    }
}
