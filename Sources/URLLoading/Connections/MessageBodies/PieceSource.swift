// SPDX-License-Identifier: Apache-2.0

// The pieces of a caller's sequence, one at a time.
//
// The sequence may suspend for ever, so a task of its own asks it. That task begins on the calling thread: a piece at
// hand is there when the call returns, without a hand-over to another thread, which cost more than sending 64 KiB.

import Synchronization
import URLLoadingIO

/// Asks a sequence for its pieces on behalf of a sender, which never waits for a sequence that it has abandoned.
final class PieceSource: Sendable {
    typealias Piece = Result<SequencePiece?, any Error>

    private enum State: Sendable {
        case idle
        /// The sequence runs on the thread of `take`.
        case asking
        /// The sequence has suspended, and its task wakes the sender.
        case awaited(Task<Void, Never>)
        case arrived(Piece)
        case abandoned
    }
    private let state = Lock(State.idle)
    private let pieces: AnyChunkIterator
    private let leaked: LeakCount
    private let wake: @Sendable () -> Void

    /// - Parameters:
    ///   - leaked: counts an abandoned sequence while it runs on.
    ///   - wake: called when a piece has arrived after `take` returned nil.
    init(_ pieces: AnyChunkIterator, _ leaked: LeakCount, _ wake: @escaping @Sendable () -> Void) {
        self.pieces = pieces
        self.leaked = leaked
        self.wake = wake
    }

    /// Returns the next piece, and asks for it if that was not done yet. Nil before it has arrived.
    func take() -> Piece? {
        let (piece, asks) = state.withLock { state -> (Piece?, Bool) in
            switch state {
            case .arrived(let piece):
                state = .idle
                return (piece, false)
            case .idle:
                state = .asking
                return (nil, true)
            case .asking, .awaited, .abandoned: return (nil, false)
            }
        }
        return asks ? ask() : piece
    }

    private func ask() -> Piece? {
        let task = Task.here {
            let piece: Piece
            do { piece = .success(try await self.pieces.next()) } catch { piece = .failure(error) }
            if self.arrives(piece) { self.wake() }
        }
        return state.withLock { state in
            if case .arrived(let piece) = state {
                state = .idle
                return piece
            }
            state = .awaited(task)
            return nil
        }
    }

    /// Stores the piece. Returns whether the sender must be woken for it.
    private func arrives(_ piece: Piece) -> Bool {
        let (wakes, isLate) = state.withLock { state in
            switch state {
            case .asking:
                state = .arrived(piece)
                return (false, false)
            case .awaited:
                state = .arrived(piece)
                return (true, false)
            case .idle, .arrived, .abandoned: return (false, true)
            }
        }
        if isLate { leaked.add(-1) }
        return wakes
    }

    /// Stops waiting for the sequence. If it runs, it is cancelled and counted until it ends.
    func abandon() {
        let running: Task<Void, Never>? = state.withLock { state in
            guard case .awaited(let task) = state else { return nil }
            state = .abandoned
            return task
        }
        guard let running else { return }
        leaked.add(1)
        running.cancel()
    }
}
