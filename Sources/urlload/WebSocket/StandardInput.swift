// SPDX-License-Identifier: Apache-2.0

// In this folder: `urlload ws`

// Standard input, read on a thread of its own, because reading from a terminal blocks. It is read only on request.

import Glibc
import Synchronization
import URLLoadingIO

final class StandardInput: Sendable {
    private struct State: Sendable {
        var isStarted = false
        var waiting: CheckedContinuation<[UInt8]?, Never>?
        var isCancelled = false
    }
    private let state = Lock(State())
    private nonisolated(unsafe) let wanted = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private let lines: Bool

    /// - Parameter lines: true for lines without their ends; false for pieces as they are read.
    init(lines: Bool) {
        self.lines = lines
        sem_init(wanted, 0, 0)
    }

    deinit {
        sem_destroy(wanted)
        wanted.deallocate()
    }

    /// Returns the next line or piece; `nil` at the end, or when the calling task is cancelled.
    func next() async -> [UInt8]? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (isCancelled, starts) = state.withLock { state in
                    guard !state.isCancelled else { return (true, false) }
                    state.waiting = continuation
                    defer { state.isStarted = true }
                    return (false, !state.isStarted)
                }
                if isCancelled { return continuation.resume(returning: nil) }
                if starts, !start() { return give(nil) }
                sem_post(wanted)
            }
        } onCancel: {
            state.withLock { $0.isCancelled = true }
            give(nil)
        }
    }

    private func give(_ bytes: [UInt8]?) {
        let waiting = state.withLock { state in
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: bytes)
    }

    private func start() -> Bool {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self)
        let failure = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<StandardInput>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, context.toOpaque())
        guard failure == 0 else {
            context.release()
            return false
        }
        // A blocking read of a terminal cannot be interrupted, so the thread is detached and never waited for.
        pthread_detach(thread)
        return true
    }

    private func run() {
        var held: [UInt8] = []
        var hasEnded = false
        while true {
            while sem_wait(wanted) != 0 {}
            while !hasEnded, lines ? !held.contains(0x0A) : held.isEmpty { hasEnded = !Self.read(into: &held) }
            if lines, let end = held.firstIndex(of: 0x0A) {
                give(Array(held[..<end]))
                held.removeSubrange(...end)
            } else if held.isEmpty {
                return give(nil)
            } else {
                give(held)
                held = []
            }
        }
    }

    private static func read(into held: inout [UInt8]) -> Bool {
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(STDIN_FILENO, &piece, piece.count)
            if count > 0 {
                held += piece[..<count]
                return true
            }
            if count == 0 || errno != EINTR { return false }
        }
    }
}
