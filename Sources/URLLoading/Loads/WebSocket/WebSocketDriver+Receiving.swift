// SPDX-License-Identifier: Apache-2.0

// Reading a WebSocket. The socket has no task of its own: the first waiting call reads for all, and leaves the reading
// to another call when its own result has arrived. Calls read only what one of them waits for; beyond that, only the
// idle timer reads.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

extension WebSocketDriver {
    /// Runs a call that may have to wait. Cancelling the calling task ends the call; the socket continues.
    func calling<Value: Sendable>(
        timeout limit: Duration? = nil, _ body: (WebSocketCall) async throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        let call = WebSocketCall(timeout: limit, clock)
        defer { call.finish() }
        let result: Result<Value, LoadError> = await withTaskCancellationHandler {
            do throws(LoadError) { return .success(try await body(call)) } catch { return .failure(error) }
        } onCancel: {
            call.token.stop(.cancelled)
        }
        return try result.get()
    }

    /// Returns the next message; `nil` after a regular close (code 1000, 1001 or none).
    func receive() async throws(LoadError) -> WebSocketMessage? {
        guard state.withLock({ $0.enterReceiving() }) else { throw failure(.webSocketBusy) }
        defer {
            state.withLock { $0.leaveReceiving() }
            // Wakes a reader that waited for space for read-ahead messages.
            settle()
        }
        if receivedInTurn.load(ordering: .relaxed) > Self.turn {
            receivedInTurn.store(0, ordering: .relaxed)
            await Task.yield()
        }
        return try await calling { (call) throws(LoadError) in
            try await wait(call) { state in
                if let message = state.takeAhead() { return .success(message) }
                switch state.outcome {
                case .closed(let close, _)? where close.isUsual: return .success(nil)
                case let outcome?: return .failure(ended(outcome))
                case nil: return nil
                }
            }
        }
    }

    /// The number of bytes after which the reader yields, because a peer faster than its reader never makes the reader
    /// wait.
    private static let turn = 4 << 20

    // MARK: Waiting

    /// Waits until `check`, which is called under the lock, returns a result. Reads meanwhile, unless another call
    /// does.
    /// - Parameter late: the reason of the error when the call's timeout has expired.
    func wait<Value: Sendable>(
        _ call: WebSocketCall, reading: Bool = true, late: LoadError.Reason = .cancelled,
        _ check: (inout WebSocketState) -> Result<Value, LoadError>?
    ) async throws(LoadError) -> Value {
        clock.schedule(call.slot, at: call.deadline)
        var lead: (any Transport)?
        defer {
            if let lead { stopReading(lead, call) }
            state.withLock { $0.forget(call.slot) }
        }
        while true {
            let step = lead.map { read(from: $0) }
            let (result, isLeading) = state.withLock { state -> (Result<Value, LoadError>?, Bool) in
                state.forget(call.slot)
                if let result = check(&state) { return (result, lead != nil) }
                if lead == nil, reading { lead = state.beginReading() }
                let isLeading = lead != nil && state.mayRead
                if !isLeading { state.wait(call.slot) }
                return (nil, isLeading)
            }
            if let result { return try result.get() }
            if call.token.stopReason != nil { throw failure(.cancelled) }
            if call.deadline != .max, clock.now() >= call.deadline { throw failure(late, after: call.limit) }
            guard let transport = lead else {
                await Poller.shared.park(call.slot, until: call.token)
                continue
            }
            guard isLeading else {
                stopReading(transport, call)
                lead = nil
                continue
            }
            guard let step else {
                call.token.attach(transport.slot)
                clock.schedule(transport.slot, at: call.deadline)
                continue
            }
            guard case .blocked(let interest) = step else { continue }
            receivedInTurn.store(0, ordering: .relaxed)
            if let lingersUntil = state.withLock({ $0.lingersUntil }) {
                let now = clock.now()
                clock.schedule(transport.slot, at: now < lingersUntil ? lingersUntil : now &+ Self.soon)
            }
            await Poller.shared.park(transport.slot, interest, call.token, idleSince: nil)
        }
    }

    private func stopReading(_ transport: any Transport, _ call: WebSocketCall) {
        call.token.detach(transport.slot)
        state.withLock { $0.endReading() }
        settle()
        keep(within: Self.idleInterval)
    }

    // MARK: Reading

    enum ReadStep {
        /// The state has changed, or the reader should yield.
        case moved
        case blocked(PollSlot.Interest)
    }

    /// Reads what is available without a wait, at most up to the next message. Called by the reader alone.
    func read(from transport: any Transport, atMost most: Int = .max, reads: Int = 64) -> ReadStep {
        var reads = reads
        input?.setLimit(maximumMessageSize.load(ordering: .relaxed))
        while true {
            if let until = state.withLock({ $0.lingersUntil }) {
                if isPastCloseDeadline(transport, until) {
                    lost(nil)
                    return .moved
                }
                guard discard(from: transport, &reads) else { return .blocked(.read) }
                if reads <= 0 || state.withLock({ $0.lingersUntil }) == nil { return .moved }
                continue
            }
            do throws(WireViolation) {
                while let event = try input?.next() {
                    if !process(event) { return .moved }
                }
            } catch {
                violated(error)
                return .moved
            }
            answer()
            guard reads > 0 else { return .moved }
            reads -= 1
            switch receive(from: transport, atMost: most) {
            case .moved(let count):
                input?.received(count)
                receivedInTurn.add(count, ordering: .relaxed)
                receivedCount.add(Int64(count), ordering: .relaxed)
            case .blocked(let interest):
                input?.releaseBuffer(.large)
                return .blocked(interest)
            case .end: return .moved
            }
        }
    }

    private func receive(from transport: any Transport, atMost most: Int) -> Progress {
        guard var room = input?.room(.large) else { return .end }
        if room.count > most { room = UnsafeMutableRawBufferPointer(rebasing: room[..<most]) }
        do throws(IOFailure) {
            let progress = try transport.read(into: room)
            if case .end = progress { lost(nil) }
            return progress
        } catch {
            lost(error)
            return .end
        }
    }

    /// - Returns: whether to continue with the next event.
    private func process(_ event: WebSocketInput.Event) -> Bool {
        switch event {
        case .message(let message):
            state.withLock { $0.deliver(message) }
            answer()
            return false
        case .ping(let payload): state.withLock { $0.control.receivedPing(payload) }
        case .pong(let payload):
            let now = clock.now()
            state.withLock { $0.control.receivedPong(payload, now) }
            settle()
        case .close(let close):
            let moment = closeDeadline
            state.withLock { $0.receivedClose(close, until: moment) }
            input?.drop(.large)
            _ = pump()
            settle()
            return false
        }
        return true
    }

    /// Answers the last of the received pings.
    private func answer() { if state.withLock({ !$0.control.isEmpty }) { _ = pump() } }

    /// Handles the end of the connection. Without a close frame it is a failure, even after a TLS close_notify.
    func lost(_ failure: IOFailure?) {
        let tunnel = state.withLock { $0.transport as? HTTP2Tunnel }
        let error =
            tunnel?.failure?.loadError(.receiving, hasBegun: false) ?? failure.map { LoadError($0, .receiving) }
            ?? LoadError(.connectionLost, phase: .receiving, party: .remote, detail: "closed without a close frame")
        state.withLock { state in
            state.fail(error.at(url))
            state.stopLingering()
        }
        settle()
    }

    /// Drops bytes before the end of the connection, after both sides have sent their close frames.
    /// - Returns: false if no bytes have arrived.
    private func discard(from transport: any Transport, _ reads: inout Int) -> Bool {
        let buffer = ReadBuffers.large.take()
        defer { ReadBuffers.large.giveBack(buffer) }
        while reads > 0 {
            reads -= 1
            let progress = try? transport.read(into: buffer.room(from: 0))
            switch progress {
            case .moved?: continue
            case .blocked?: return false
            case .end?, nil:
                lost(nil)
                return true
            }
        }
        return true
    }
}

extension WebSocketClose? {
    /// True for codes that are not failures: normal, going away, or none.
    var isUsual: Bool { self.map { $0.code == .normal || $0.code == .goingAway } ?? true }
}
