// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// A value that the closures of a test change, and whose changes wake the tasks and threads that wait for them.
///
/// ```swift
/// let names = Watched<[String]>([])
/// let resolver = NameResolver { name in names.change { $0.append(name) } … }
/// try await names.wait { $0.count == 2 }
/// ```
package final class Watched<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var value: Value
        var watchers: [Int: @Sendable () -> Void] = [:]
        var lastWatcher = 0
    }
    private let state: Lock<State>

    package init(_ value: Value) { state = Lock(State(value: value)) }

    package var value: Value { state.withLock { $0.value } }

    @discardableResult
    package func change<R: Sendable>(_ change: (inout Value) -> R) -> R {
        let (result, watchers) = state.withLock { state in (change(&state.value), Array(state.watchers.values)) }
        for notify in watchers { notify() }
        return result
    }

    /// Waits until the value fulfils a condition, and returns it.
    /// - Throws: ``WaitFailure`` with the last value; `CancellationError`.
    @discardableResult
    package nonisolated(nonsending) func wait(
        file: StaticString = #fileID, line: UInt = #line, until isSo: (Value) -> Bool
    ) async throws -> Value {
        let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let watcher = watch { change.yield() }
        let alarm = Task {
            try await Task.sleep(for: waitLimit)
            change.finish()
        }
        defer {
            alarm.cancel()
            forget(watcher)
        }
        change.yield()
        for await _ in changes {
            let value = value
            if isSo(value) { return value }
        }
        try Task.checkCancellation()
        throw WaitFailure(waitLimit, "\(file):\(line)", seen: "\(value)")
    }

    /// Blocks the calling thread until the value fulfils a condition.
    package func waitBlocking(until isSo: (Value) -> Bool) {
        let signal = ThreadSignal()
        let watcher = watch { signal.raise() }
        defer { forget(watcher) }
        while !isSo(value) { _ = signal.wait(nanoseconds: 1_000_000_000) }
    }

    private func watch(_ notify: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.lastWatcher += 1
            state.watchers[state.lastWatcher] = notify
            return state.lastWatcher
        }
    }

    private func forget(_ watcher: Int) { state.withLock { $0.watchers[watcher] = nil } }
}

/// Something that happens once.
package typealias Flag = Watched<Bool>

extension Watched where Value == Bool {
    package convenience init() { self.init(false) }

    package func raise() { change { $0 = true } }

    package nonisolated(nonsending) func wait(file: StaticString = #fileID, line: UInt = #line) async throws {
        try await wait(file: file, line: line) { $0 }
    }

    /// For closures that end neither by their own cancellation nor with an error of their own.
    package func waitIgnoringCancellation() async { await Task { try? await wait() }.value }

    package func waitBlocking() { waitBlocking { $0 } }
}

extension Watched {
    package func append<Element>(_ element: Element) where Value == [Element] { change { $0.append(element) } }
}

extension Watched where Value == Int {
    /// Returns the number after the increment.
    @discardableResult
    package func add(_ count: Int = 1) -> Int {
        change { value in
            value += count
            return value
        }
    }
}
