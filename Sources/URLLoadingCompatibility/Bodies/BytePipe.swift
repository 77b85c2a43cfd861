// SPDX-License-Identifier: Apache-2.0

// Connects a load and the reader of `AsyncBytes`. The load waits while the buffer is full; the reader waits while it is
// empty. Neither side uses the delegate queue.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

final class BytePipe: Sendable {
    private struct State: Sendable {
        var response: URLResponse?
        var pieces: [[UInt8]] = []
        var size = 0
        /// Set when the load has ended; the inner value is its error, `nil` on success.
        var outcome: (any Error)??
        /// Set when the load was stopped: further pieces are dropped.
        var isReleased = false
        var headReader: UnsafeContinuation<URLResponse, any Error>?
        /// Several, if several tasks iterate the bytes.
        var readers: [UnsafeContinuation<Void, Never>] = []
        var writer: UnsafeContinuation<Void, Never>?

        mutating func takeReaders() -> [UnsafeContinuation<Void, Never>] {
            defer { readers = [] }
            return readers
        }
    }
    private let state = Lock(State())
    /// Bytes buffered before the load waits.
    private static let capacity = 256 * 1024
    /// Consecutive pieces are merged up to this size, which bounds their number.
    private static let joined = 8 * 1024

    // MARK: From the load

    func respond(_ response: URLResponse) {
        let reader = state.withLock { state in
            state.response = response
            return state.headReader.take()
        }
        reader?.resume(returning: response)
    }

    func put(_ chunk: Chunk) async {
        let piece = [UInt8](chunk)
        let (readers, isFull) = state.withLock { state -> ([UnsafeContinuation<Void, Never>], Bool) in
            guard !state.isReleased else { return ([], false) }
            if let last = state.pieces.last, last.count + piece.count <= Self.joined {
                state.pieces[state.pieces.count - 1] += piece
            } else {
                state.pieces.append(piece)
            }
            state.size += piece.count
            return (state.takeReaders(), state.size >= Self.capacity)
        }
        for reader in readers { reader.resume() }
        guard isFull else { return }
        await withUnsafeContinuation { continuation in
            let waits = state.withLock { state in
                guard !state.isReleased, state.size >= Self.capacity else { return false }
                state.writer = continuation
                return true
            }
            if !waits { continuation.resume() }
        }
    }

    /// Stops the load's side: the load does not wait any more, and buffered pieces are dropped.
    func release() {
        let writer = state.withLock { state in
            (state.isReleased, state.pieces, state.size) = (true, [], 0)
            return state.writer.take()
        }
        writer?.resume()
    }

    func finish(_ error: (any Error)?) {
        let (head, readers, writer) = state.withLock { state in
            if state.outcome == nil { state.outcome = .some(error) }
            return (state.headReader.take(), state.takeReaders(), state.writer.take())
        }
        head?.resume(throwing: error ?? URLError.described(.badServerResponse))
        for reader in readers { reader.resume() }
        writer?.resume()
    }

    // MARK: For the reader

    func response(_ begin: () -> Void) async throws -> URLResponse {
        try await withUnsafeThrowingContinuation { continuation in
            // A task that was resumed or cancelled during its creation may already have a response, or have ended.
            let known = state.withLock { state -> Result<URLResponse, any Error>? in
                if let response = state.response { return .success(response) }
                if let outcome = state.outcome { return .failure(outcome ?? URLError.described(.badServerResponse)) }
                state.headReader = continuation
                return nil
            }
            if let known { continuation.resume(with: known) } else { begin() }
        }
    }

    /// Returns the next piece of the body; `nil` at the end.
    func next() async throws -> [UInt8]? {
        while true {
            let (piece, outcome, writer) = state.withLock {
                state -> ([UInt8]?, (any Error)??, UnsafeContinuation<Void, Never>?) in
                guard !state.pieces.isEmpty else { return (nil, state.outcome, nil) }
                let piece = state.pieces.removeFirst()
                state.size -= piece.count
                return (piece, nil, state.size < Self.capacity / 2 ? state.writer.take() : nil)
            }
            writer?.resume()
            if let piece { return piece }
            if let outcome {
                if let error = outcome { throw error }
                return nil
            }
            await withUnsafeContinuation { continuation in
                let waits = state.withLock { state in
                    guard state.pieces.isEmpty, state.outcome == nil else { return false }
                    state.readers.append(continuation)
                    return true
                }
                if !waits { continuation.resume() }
            }
        }
    }
}
