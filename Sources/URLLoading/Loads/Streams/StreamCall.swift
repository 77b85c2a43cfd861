// SPDX-License-Identifier: Apache-2.0

// A read, write or close that has to wait. It ends with its stream, with its own timeout, or with the cancellation of
// the calling task; in the last two cases the stream continues.

import Synchronization
import URLLoadingIO

struct StreamCall: Sendable {
    let side: StreamState.Side
    /// The timeout of the call; nil for none.
    let limit: Duration?
    let deadline: Int64
    /// Stopped when the calling task is cancelled.
    let token: StopToken

    init(_ side: StreamState.Side, timeout limit: Duration?, _ clock: LoopClock) {
        (self.side, self.limit) = (side, limit)
        deadline = limit.map { clock.now() &+ LoadHandle.nanoseconds($0) } ?? .max
        token = StopToken(clock: clock)
    }
}

/// The result of one attempt of a call.
enum StreamStep {
    case done
    case blocked(PollSlot.Interest)
    /// Not connected yet, or suspended.
    case notReady
}

extension StreamDriver {
    /// Repeats the attempt until it is done. Most calls are done at the first attempt.
    func run(
        _ side: StreamState.Side, timeout limit: Duration?, _ attempt: () throws(LoadError) -> StreamStep
    ) async throws(LoadError) {
        if Task.isCancelled { throw failure(.cancelled, side) }
        if case .done = try attempt() { return }
        let call = StreamCall(side, timeout: limit, clock)
        let result: Result<Void, LoadError> = await withTaskCancellationHandler {
            do throws(LoadError) { return .success(try await wait(call, attempt)) } catch { return .failure(error) }
        } onCancel: {
            call.token.stop(.cancelled)
        }
        try result.get()
    }

    private func wait(_ call: StreamCall, _ attempt: () throws(LoadError) -> StreamStep) async throws(LoadError) {
        guard let transport = try await ready(call) else { return try conclude(call, attempt) }
        call.token.attach(transport.slot)
        beginWaiting()
        defer {
            endWaiting()
            call.token.detach(transport.slot)
        }
        while true {
            try check(call)
            switch try attempt() {
            case .done: return
            case .notReady: guard try await ready(call) != nil else { return try conclude(call, attempt) }
            case .blocked(let interest):
                setTimer(call, transport.slot)
                await Poller.shared.park(transport.slot, interest, call.token)
                if call.side == .input { receivedInTurn = 0 }
            }
        }
    }

    /// Makes a last attempt after the stream has ended without an error: bytes received before can still be taken.
    private func conclude(_ call: StreamCall, _ attempt: () throws(LoadError) -> StreamStep) throws(LoadError) {
        guard case .done = try attempt() else { throw failure(.streamClosed, call.side) }
    }

    /// Waits until the stream is connected and not suspended. Returns `nil` if both directions have been closed or
    /// ended meanwhile.
    private func ready(_ call: StreamCall) async throws(LoadError) -> (any Transport)? {
        if let transport = state.withLock({ $0.readyTransport }) { return transport }
        let slot = Poller.shared.borrowSlot()
        handle.attach(slot)
        call.token.attach(slot)
        defer {
            state.withLock { $0.forget(slot) }
            call.token.detach(slot)
            handle.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        clock.schedule(slot, at: call.deadline)
        while true {
            try check(call)
            let (transport, hasEnded) = state.withLock { state -> ((any Transport)?, Bool) in
                state.forget(slot)
                if let transport = state.readyTransport { return (transport, false) }
                guard state.outcome == nil else { return (nil, true) }
                state.wait(slot)
                return (nil, false)
            }
            if let transport { return transport }
            if hasEnded {
                // Throws the stream's error, if it has one.
                try check(call)
                return nil
            }
            // Between the check and the wait the stream may have ended and woken its waiters, so check again.
            try check(call)
            await Poller.shared.park(slot, until: call.token)
        }
    }

    private func check(_ call: StreamCall) throws(LoadError) {
        if let error = ending(call.side) { throw error }
        if call.token.stopReason != nil { throw failure(.cancelled, call.side) }
        guard call.deadline != .max, clock.now() >= call.deadline else { return }
        throw failure(.streamCallTimeout, call.side, .remote).with(detail: call.limit.map { "not done within \($0)" })
    }
}
