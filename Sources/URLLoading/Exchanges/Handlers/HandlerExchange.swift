// SPDX-License-Identifier: Apache-2.0

// The response of a custom handler. Its body is the caller's code: each piece is pulled in a task of its own, which the
// load does not await when it ends.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class HandlerExchange: Exchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    let response: Response
    /// The request to which the handler redirects the load.
    let redirect: Request?
    private var pieces: AnyChunkIterator?
    private var pending = PendingChunk()
    private let makeTrailers: (@Sendable () -> Headers)?
    /// True if the handler forwarded a response and replaced only its body.
    var isForwarded = false
    /// True if the load itself reads the body, not another handler.
    var isOutermost = false
    private struct Receiver: Sendable {
        let load: LoadContext
        /// Whether the pieces are asked for on the event loop (`ProgramHandler`).
        let onLoop: Bool
    }
    /// The load, set when it takes the response.
    private let receiver = Lock<Receiver?>(nil)

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
    var load: LoadContext? { receiver.withLock { $0?.load } }

    /// Empty, because the marks of the responses that the handler used are collected by `CollectedMarks`.
    func marks(for query: CacheQuery) -> AnswerMarks { AnswerMarks() }

    func taken(by load: LoadContext, onLoop: Bool) {
        receiver.withLock { $0 = Receiver(load: load, onLoop: onLoop) }
    }

    func buffered(atMost most: Int) -> BodyPiece? {
        pending.chunk == nil && pieces == nil ? .end : pending.take(atMost: most)
    }

    func fill(atMost most: Int) async throws(LoadError) {
        guard let receiver = receiver.withLock({ $0 }) else { throw .bodyUnavailable }
        let load = receiver.load
        if load.isSuspended { await load.handle.untilResumed() }
        guard pending.chunk == nil, let pieces else { return }
        let pulled = await pieces.next(for: load.handle, onLoop: receiver.onLoop)
        if let reason = load.stopReason {
            if isOutermost { await load.handlerScope?.close() }
            throw LoadError(reason, phase: .receiving)
        }
        switch pulled {
        case .success(let piece?): pending.chunk = piece.count > 0 ? piece : nil
        case .success(nil): self.pieces = nil
        case .failure(let error): throw LoadError(handler: error, phase: .receiving)
        }
    }

    func release() { (pieces, pending.chunk) = (nil, nil) }
}

extension AnyChunkIterator {
    /// Returns the next piece; nil at the end. The sequence is the caller's code: stopping the load cancels it, and
    /// does not wait for it.
    fileprivate func next(for load: LoadHandle, onLoop: Bool) async -> Result<Chunk?, any Error> {
        let pulled = await CallbackOutcome.run(load, onLoop: onLoop) { [self] () -> Result<Chunk?, any Error> in
            do { return .success(try await next()?.chunk) } catch { return .failure(error) }
        }
        guard case .answered(let piece) = pulled else { return .failure(CancellationError()) }
        return piece
    }
}

extension LoadError {
    /// Creates the error for an error thrown by a handler.
    init(handler error: any Error, phase: Phase) {
        if let error = error as? LoadError {
            self = error
        } else {
            self.init(.handlerFailed, phase: phase, party: .local, underlying: error)
        }
    }
}

/// Tracks library code that runs inside the tasks of custom handlers, and the exchanges it has opened there. A load
/// that ends waits for that code, though not for the handlers, which are cancelled; then the exchanges are released,
/// even if a handler still refers to them.
final class HandlerScope: Sendable {
    fileprivate struct Opened: Sendable { weak var exchange: (any Exchange)? }
    fileprivate struct State: Sendable {
        var count = 0
        /// True if two calls were inside at the same time.
        var haveOverlapped = false
        var isClosed = false
        var opened: [Opened] = []
        var waiting: PollSlot?
    }
    private let state = Lock(State())

    /// Registers a call inside. Returns false if the load has ended.
    func enter() -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.count += 1
            if state.count > 1 { state.haveOverlapped = true }
            return true
        }
    }

    var haveOverlapped: Bool { state.withLock { $0.haveOverlapped } }

    func leave(with exchange: (any Exchange)? = nil) {
        let (left, waiting) = state.withLock { state in
            state.count -= 1
            if let exchange {
                state.opened.removeAll { $0.exchange == nil }
                state.opened.append(Opened(exchange: exchange))
            }
            return (state.takeIfOver(), state.count == 0 ? state.waiting : nil)
        }
        for opened in left { opened.exchange?.release() }
        waiting?.wake()
    }

    /// Closes the scope: no call may enter any more, and the last one to leave releases the exchanges.
    func end() {
        let left = state.withLock { state in
            state.isClosed = true
            return state.takeIfOver()
        }
        for opened in left { opened.exchange?.release() }
    }

    /// Closes the scope, and waits until the calls inside have left.
    func close() async {
        end()
        await Poller.shared.wait { slot in
            state.withLock { state in
                state.waiting = state.count == 0 ? nil : slot
                return state.count == 0
            }
        }
    }
}

extension HandlerScope.State {
    fileprivate mutating func takeIfOver() -> [HandlerScope.Opened] {
        guard isClosed, count == 0 else { return [] }
        defer { opened = [] }
        return opened
    }
}
