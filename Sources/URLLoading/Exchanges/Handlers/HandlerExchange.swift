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
