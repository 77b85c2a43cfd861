// SPDX-License-Identifier: Apache-2.0

// Delivers the body of a task to its consumer: read ahead by the driver, pulled by a reader, or pushed into a sink.

import FoundationEssentials
import Synchronization
import URLLoadingIO

extension TaskDriver {
    /// Waits until the load has ended; throws its error.
    func finished() async throws(LoadError) {
        let outcome = await wait { state, slot -> LoadTaskState.Outcome? in
            if let outcome = state.outcome { return outcome }
            state.waitForEnd(slot)
            return nil
        }
        guard let outcome else { throw LoadError(.cancelled, phase: .waiting, party: .local).at(original.url) }
        if let error = outcome.error { throw error }
    }

    /// Reads as far as there is demand, then leaves the exchange to a reader.
    @inline(never)
    func read(_ exchange: any Exchange) async throws(LoadError) {
        let readAhead = core.configuration.readAhead
        do throws(LoadError) {
            while true {
                var most = 0
                var isWanted = false
                if case .read(let count) = state.withLock({ $0.demand(upTo: readAhead) }) {
                    (most, isWanted) = (count, true)
                }
                switch try exchange.buffered(atMost: most) {
                case .chunk(let chunk)?:
                    try keep(chunk)
                case .end?:
                    exchange.release()
                    return complete(.finished, exchange.trailers)
                case nil where most > 0: try await exchange.fill(atMost: most)
                case nil where isWanted && exchange.isSending: try await continueSending(exchange)
                case nil: if try leave(exchange) { return }
                }
            }
        } catch {
            throw exchange.failed(error)
        }
    }

    /// Sends the rest of the request while there is no demand for more of the response. Returns when the request is
    /// sent, or when a consumer asks for the body.
    @inline(never)
    func continueSending(_ exchange: any Exchange) async throws(LoadError) {
        guard state.withLock({ $0.beginSending() }) else { return }
        try await exchange.continueSending()
        state.withLock { $0.endSending() }
    }

    @inline(never)
    func keep(_ chunk: Chunk) throws(LoadError) {
        context.received(chunk.count)
        let readAhead = core.configuration.readAhead
        let limit = core.configuration.limits.collectedBodySize
        try state.withLock { state throws(LoadError) in
            try state.keep(chunk, readAhead: readAhead, limit: limit)
        }.wake()
    }

    /// Leaves the exchange to a reader. Returns false if the driver must read on.
    @inline(never)
    func leave(_ exchange: any Exchange) throws(LoadError) -> Bool {
        exchange.setUnread(true)
        let (leaving, readers) = state.withLock { ($0.leave(exchange), $0.takeReaders()) }
        readers.wake()
        switch leaving {
        case .stay:
            exchange.setUnread(false)
            return false
        case .pointless: throw LoadError(.cancelled, phase: .receiving, party: .local)
        case .left:
            // A stop that arrived before the exchange was left found it owned, so its owner must end the load here.
            if stopReason != nil { stopped() }
            watchForReader()
            return true
        }
    }

    @inline(never)
    func push(_ exchange: any Exchange, into sink: any LoadSink) async throws(LoadError) {
        do throws(LoadError) {
            while true {
                switch try exchange.buffered(atMost: .max) {
                case .chunk(let chunk)?:
                    context.received(chunk.count)
                    await sink.receive(chunk)
                case .end?:
                    exchange.release()
                    return complete(.finished, exchange.trailers)
                case nil:
                    sink.pause()
                    try await exchange.fill(atMost: .max)
                }
            }
        } catch {
            throw exchange.failed(error)
        }
    }

    // MARK: The reader

    /// Returns the next chunk to the consumer that claimed the body.
    func next() async throws(LoadError) -> Chunk? {
        switch state.withLock({ $0.take(nil) }) {
        case .chunk(let chunk): return chunk
        case .end: return nil
        case .failed(let error): throw error
        case .pull(let exchange): return try await pull(exchange)
        case .wait: return try await waitForChunk()
        }
    }

    func pull(_ exchange: any Exchange) async throws(LoadError) -> Chunk? {
        exchange.setUnread(false)
        do throws(LoadError) {
            guard let chunk = try await exchange.next() else {
                complete(.finished, exchange.trailers)
                return nil
            }
            context.received(chunk.count)
            let reason = stopReason
            guard state.withLock({ $0.putBack(exchange, isStopped: reason != nil) }) else {
                throw exchange.failed(LoadError(reason ?? .cancelled, phase: .receiving))
            }
            // A stop that arrived before `putBack` found the exchange owned, so its owner must end the load here.
            if stopReason != nil { stopped() }
            return chunk
        } catch {
            complete(.failed(error))
            throw error
        }
    }

    func waitForChunk() async throws(LoadError) -> Chunk? {
        let taken = await wait(stoppingOnCancel: true) { state, slot -> LoadTaskState.Taken? in
            let taken = state.take(slot)
            if case .wait = taken { return nil }
            return taken
        }
        switch taken {
        case .chunk(let chunk)?: return chunk
        case .end?: return nil
        case .failed(let error)?: throw error
        case .pull(let exchange)?: return try await pull(exchange)
        case .wait?, nil: throw LoadError(.cancelled, phase: .receiving, party: .local).at(original.url)
        }
    }

    /// Returns the whole body, read by the driver. Cancelling the calling task ends only the wait.
    func whole() async throws(LoadError) -> Data {
        #if DEBUG
        UnresumedNote.schedule(self)
        #endif
        if state.withLock({ $0.registerWholeConsumer() }) { context.handle.wake() }
        while true {
            let seen = await wait { state, slot -> LoadTaskState.Whole? in
                let seen = state.takeWhole(slot)
                if case .wait = seen { return nil }
                return seen
            }
            switch seen {
            case .data(let data)?: return data
            case .failed(let error)?: throw error
            case .drive(let exchange)?: startDriving(exchange)
            case .wait?, nil: throw LoadError(.cancelled, phase: .waiting, party: .local).at(original.url)
            }
        }
    }

    private func startDriving(_ exchange: any Exchange) {
        Task(executorPreference: LoopPreference.current) { await self.continueDriving(exchange) }
    }

    /// Lets the load end although its body may have no consumer: a caller waits for the end.
    func requireEnd() { act(on: state.withLock { $0.requireEnd() }) }

    /// Called when the last reference to the sequence of the body is gone.
    func readerLeft() {
        act(on: state.withLock { $0.leaveSequence() })
        watchForForgottenBody()
    }

    private func act(on ending: LoadTaskState.Ending) {
        switch ending {
        case .drive(let exchange): startDriving(exchange)
        case .wake: context.handle.wake()
        case .none: break
        }
    }

    func continueDriving(_ exchange: any Exchange) async {
        exchange.setUnread(false)
        do throws(LoadError) { try await read(exchange) } catch { complete(.failed(error)) }
    }

    /// Waits for the response.
    func response() async throws(LoadError) -> Response {
        #if DEBUG
        UnresumedNote.schedule(self)
        #endif
        let result = await wait { state, slot -> Result<Response, LoadError>? in
            if let response = state.response { return .success(response) }
            if let error = state.outcome?.error { return .failure(error) }
            state.waitForResponse(slot)
            return nil
        }
        guard let result else { throw LoadError(.cancelled, phase: .waiting, party: .local).at(original.url) }
        return try result.get()
    }

    // MARK: Waiting

    /// Repeats `attempt` until it returns a value; `nil` if the calling task was cancelled before.
    func wait<R: Sendable>(
        stoppingOnCancel: Bool = false,
        _ attempt: @Sendable (inout LoadTaskState, PollSlot) -> R?
    ) async -> R? {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        return await withTaskCancellationHandler {
            while true {
                let seen = state.withLock { state in
                    state.forget(slot)
                    let seen = attempt(&state, slot)
                    if seen != nil { state.forget(slot) }
                    return seen
                }
                if let seen { return seen }
                if Task.isCancelled {
                    state.withLock { $0.forget(slot) }
                    return nil
                }
                await Poller.shared.park(slot, until: .never)
            }
        } onCancel: {
            if stoppingOnCancel { stop(.cancelled) }
            slot.wake()
        }
    }
}
