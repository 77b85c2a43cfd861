// SPDX-License-Identifier: Apache-2.0

// Sending over a WebSocket. A call that sends a message has the turn until the message is sent. One call writes at a
// time, and it also writes the pending control frames.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

extension WebSocketDriver {
    func send(_ message: WebSocketMessage) async throws(LoadError) {
        if Task.isCancelled { throw failure(.cancelled) }
        try await calling { (call) throws(LoadError) in
            try await turn(of: call)
            defer { leaveTurn(call) }
            var sending = try prepare(message)
            do throws(LoadError) { try await push(call) { self.pump(&sending) } } catch {
                // Another message cannot follow a partial one.
                if sending.isBegun, !sending.isWritten { abandon() }
                // What follows must not refer to bytes that the peer never received (RFC 7692 §7.1.1).
                if sending.isCompressed, !sending.isBegun { deflater = nil }
                throw error
            }
        }
    }

    /// Waits until the calls that came before have sent their messages.
    private func turn(of call: WebSocketCall) async throws(LoadError) {
        state.withLock { $0.queue(call) }
        do throws(LoadError) {
            try await wait(call, reading: false) { state -> Result<Void, LoadError>? in
                if let outcome = state.outcome { return .failure(ended(outcome)) }
                guard !state.control.hasSentClose else { return .failure(closed) }
                return state.takeTurn(call) ? .success(()) : nil
            }
        } catch {
            leaveTurn(call)
            throw error
        }
    }

    private func leaveTurn(_ call: WebSocketCall) {
        let (next, isEnding) = state.withLock { ($0.leaveTurn(call), $0.outcome != nil) }
        next?.wake()
        if isEnding { settle() }
    }

    private var closed: LoadError {
        LoadError(.webSocketClosed, phase: .sending, party: .local, url: url, detail: "closed by this side")
    }

    /// Pumps until all is sent. Called by the call that has the turn.
    private func push(_ call: WebSocketCall, late: LoadError.Reason = .cancelled, _ pump: () -> Pumped)
        async throws(LoadError)
    {
        guard let slot = state.withLock({ $0.transport?.slot }) else { throw failure(.cancelled) }
        var isAttached = false
        defer { if isAttached { call.token.detach(slot) } }
        while true {
            if let outcome = state.withLock({ $0.outcome }) { throw ended(outcome) }
            let pumped = pump()
            if case .done = pumped { return }
            if case .failed(let error) = pumped {
                // The close frame of a stop may have come between two pieces, and nothing may follow it.
                if stopReason != nil { settle() }
                throw state.withLock { $0.outcome }.map { ended($0) } ?? error
            }
            if !isAttached {
                call.token.attach(slot)
                clock.schedule(slot, at: call.deadline)
                isAttached = true
            }
            if call.token.stopReason != nil { throw failure(.cancelled) }
            if call.deadline != .max, clock.now() >= call.deadline { throw failure(late, after: call.limit) }
            switch pumped {
            case .blocked(let interest): await Poller.shared.park(slot, interest, call.token, idleSince: nil)
            default: await Poller.shared.park(slot, .write, call.token, idleSince: nil)
            }
        }
    }

    private func prepare(_ message: WebSocketMessage) throws(LoadError) -> WebSocketSending {
        let (kind, bytes): (WebSocketCodec.Kind, Data) =
            switch message {
            case .text(let text): (.text, Data(text.utf8))
            case .data(let data): (.binary, data)
            }
        guard let deflate, bytes.count >= options.compression.threshold,
            let deflater = deflater
                ?? MessageDeflater(windowBits: deflate.clientWindowBits, forgets: deflate.clientNoContextTakeover)
        else { return WebSocketSending(kind, bytes, isCompressed: false) }
        self.deflater = deflater
        do throws(WireViolation) {
            let compressed = try bytes.withUnsafeBytes { all in
                Result { () throws(WireViolation) in try deflater.deflate(all) }
            }.get()
            return WebSocketSending(kind, Data(compressed), isCompressed: true)
        } catch {
            throw LoadError(error, .sending).at(url)
        }
    }

    private func abandon() {
        let error = LoadError(.writeIncomplete, phase: .sending, party: .local, url: url)
        let moment = closeDeadline
        state.withLock { $0.fail(error, .goingAway, until: moment) }
        _ = pump()
        settle()
    }

    // MARK: Writing

    enum Pumped {
        case done
        case blocked(PollSlot.Interest)
        /// Another call is writing.
        case busy
        case failed(LoadError)
    }

    func pump() -> Pumped {
        var none: WebSocketSending?
        return pump(&none, isWaiting: false)
    }

    private func pump(_ message: inout WebSocketSending) -> Pumped {
        var sending: WebSocketSending? = message
        defer { message = sending ?? message }
        return pump(&sending, isWaiting: true)
    }

    private enum Next {
        case frame(WebSocketControl.Frame)
        case piece
        case nothing
    }

    /// Writes as much as possible without a wait: first the rest of what was begun, then control frames, then the
    /// message, piece by piece.
    private func pump(_ message: inout WebSocketSending?, isWaiting: Bool) -> Pumped {
        guard let transport = state.withLock({ $0.beginWriting(isWaiting: isWaiting) }) else { return .busy }
        while true {
            do throws(LoadError) {
                if let interest = try flush(transport) {
                    stopWriting(transport)
                    // The idle timer continues the writing, because there may be no other call to do so.
                    keep(within: Self.soon, hasLeftover: true)
                    return .blocked(interest)
                }
                switch next(transport, hasPiece: message?.isWritten == false) {
                case .frame(let frame): try append { (output) throws(WireViolation) in try output?.append(frame) }
                case .piece: try append { (output) throws(WireViolation) in try output?.append(&message) }
                case .nothing: return .done
                }
            } catch {
                stopWriting(transport)
                // A failed write does not end the reading: received messages remain readable, and the next read finds
                // the end.
                keep(within: Self.soon)
                return .failed(error)
            }
        }
    }

    /// Returns what to write next; after `.nothing` another call may write.
    private func next(_ transport: any Transport, hasPiece: Bool) -> Next {
        if !hasPiece { output?.releaseBuffer() }
        let now = clock.now()
        let (next, isWanted, isEnding) = state.withLock { state -> (Next, Bool, Bool) in
            if let frame = state.control.next(now) { return (.frame(frame), false, false) }
            if hasPiece { return (.piece, false, false) }
            return (.nothing, state.endWriting(), state.outcome != nil)
        }
        if isWanted { transport.slot.wake() }
        if isEnding { settle() }
        return next
    }

    private func stopWriting(_ transport: any Transport) {
        let (isWanted, isEnding) = state.withLock { ($0.endWriting(), $0.outcome != nil) }
        if isWanted { transport.slot.wake() }
        if isEnding { settle() }
    }

    /// - Returns: the event to wait for, if not all could be sent.
    private func flush(_ transport: any Transport) throws(LoadError) -> PollSlot.Interest? {
        do throws(IOFailure) {
            while let progress = try output?.write(to: transport) {
                switch progress {
                case .moved(let count):
                    output?.moved(count)
                    sentCount.add(Int64(count), ordering: .relaxed)
                case .blocked(let interest): return interest
                case .end: throw IOFailure(.closedByPeer, .write)
                }
            }
            return nil
        } catch {
            throw LoadError(error, .sending).at(url)
        }
    }

    private func append(_ change: (inout WebSocketOutput?) throws(WireViolation) -> Void) throws(LoadError) {
        do throws(WireViolation) { try change(&output) } catch { throw LoadError(error, .sending).at(url) }
    }

    // MARK: Pings and the close

    func ping(timeout limit: Duration?) async throws(LoadError) -> Duration {
        if Task.isCancelled { throw failure(.cancelled) }
        return try await calling(timeout: limit) { (call) throws(LoadError) in
            try await wait(call, reading: false, late: .pingTimeout) { state -> Result<Void, LoadError>? in
                if let outcome = state.outcome { return .failure(ended(outcome)) }
                return state.transport == nil ? nil : .success(())
            }
            guard let id = state.withLock({ $0.control.queuePing() }) else { throw failure(.webSocketBusy) }
            defer { state.withLock { $0.control.forgetPing(id) } }
            _ = pump()
            let nanoseconds = try await wait(call, late: .pingTimeout) { state -> Result<Int64, LoadError>? in
                if let answer = state.control.answer(to: id) { return .success(answer) }
                return state.outcome.map { .failure(ended($0)) }
            }
            return .nanoseconds(nanoseconds)
        }
    }

    /// Sends a close frame and waits for the closing handshake; returns when the socket has released all its resources.
    func close(_ close: WebSocketClose) async {
        let isOpen = state.withLock { state in
            state.control.announceClose(close)
            return state.transport != nil || state.isOver
        }
        if !isOpen { stop(.cancelled) }
        do throws(LoadError) {
            try await calling(timeout: options.closeTimeout) { (call) throws(LoadError) in
                // The close frame follows the messages being sent; it is not sent if the socket has ended.
                if (try? await turn(of: call)) != nil {
                    defer { leaveTurn(call) }
                    state.withLock { $0.control.queueClose(close) }
                    try await push(call, late: .closeTimeout) { self.pump() }
                }
                try await wait(call, late: .closeTimeout) { $0.isOver ? .success(()) : nil }
            }
        } catch {
            // The peer's time to close is over, or the caller was cancelled.
            state.withLock { state in
                state.fail(error)
                state.stopLingering()
            }
            settle()
        }
        await over()
    }

    /// Waits until the socket has released all its resources.
    func over() async {
        await Poller.shared.wait { slot in
            state.withLock { state in
                state.forget(slot)
                if !state.isOver { state.wait(slot) }
                return state.isOver
            }
        }
    }
}
