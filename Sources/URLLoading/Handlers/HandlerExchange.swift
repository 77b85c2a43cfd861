// What a handler of the caller's answered. Its body is the caller's code: each piece is pulled in a task
// of its own, which the load does not wait for when it ends.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class HandlerExchange: Exchange, @unchecked Sendable {
    let response: Response
    /// Where the handler wants the load to go on.
    let redirect: Request?
    private var pieces: AnyChunkIterator?
    private var pending: Chunk?
    private let makeTrailers: (@Sendable () -> Headers)?
    /// Set by the load when it takes the answer.
    private let taker = Lock<Load?>(nil)

    init(
        _ response: Response, _ pieces: AnyChunkIterator?, redirect: Request? = nil,
        trailers: (@Sendable () -> Headers)? = nil
    ) {
        self.response = response
        self.pieces = pieces
        self.redirect = redirect
        makeTrailers = trailers
    }

    var head: HTTPHead? { response.http }
    var expectedLength: Int64? { response.expectedLength }
    var trailers: Headers { makeTrailers?() ?? Headers() }
    var load: Load? { taker.withLock { $0 } }

    func taken(by load: Load) { taker.withLock { $0 = load } }

    func buffered(atMost most: Int) -> BodyPiece? {
        guard let chunk = pending else { return pieces == nil ? .end : nil }
        guard chunk.count > most else {
            pending = nil
            return .chunk(chunk)
        }
        guard most > 0 else { return nil }
        let (first, rest) = chunk.split(at: most)
        pending = rest
        return .chunk(first)
    }

    func fill(atMost most: Int) async throws(LoadError) {
        guard let load else { throw .bodyUnavailable }
        if load.isSuspended { await load.untilResumed() }
        guard pending == nil, let pieces else { return }
        let pulled = await pieces.next(for: load)
        if let reason = load.stopReason {
            await load.insiders?.close()
            throw LoadError(reason, phase: .receiving)
        }
        switch pulled {
        case .success(let piece?): pending = piece.count > 0 ? piece : nil
        case .success(nil): self.pieces = nil
        case .failure(let error): throw LoadError(handler: error, phase: .receiving)
        }
    }

    func release() { (pieces, pending) = (nil, nil) }
}

extension LoadError {
    /// What a handler threw.
    init(handler error: any Error, phase: Phase) {
        if let error = error as? LoadError { self = error } else {
            self.init(.handlerFailed, phase: phase, party: .local, underlying: error)
        }
    }
}

/// Counts our own code that runs inside a handler's task. A load that ends waits for it, though not for
/// the handler: it has heard of the end, and has connections to give back.
final class Insiders: Sendable {
    private struct State: Sendable {
        var count = 0
        var isClosed = false
        var waiting: PollSlot?
    }
    private let state = Lock(State())

    /// Returns false if the load is over.
    func enter() -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.count += 1
            return true
        }
    }

    func leave() {
        let waiting = state.withLock { state in
            state.count -= 1
            return state.count == 0 ? state.waiting : nil
        }
        waiting?.wake()
    }

    /// Nobody enters any more; returns when those inside have left.
    func close() async {
        let isEmpty = state.withLock { state in
            state.isClosed = true
            return state.count == 0
        }
        guard !isEmpty else { return }
        let slot = Poller.shared.borrowSlot()
        while true {
            let isEmpty = state.withLock { state in
                state.waiting = state.count == 0 ? nil : slot
                return state.count == 0
            }
            if isEmpty { break }
            await Poller.shared.park(slot, until: .never)
        }
        Poller.shared.returnSlot(slot)
    }
}
