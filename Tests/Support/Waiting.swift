// SPDX-License-Identifier: Apache-2.0

// The waits of tests, besides those of URLLoadingTesting. None asserts a duration: each has a limit of minutes, which
// exists to end a hang with a sentence.

import Glibc
package import URLLoading
package import URLLoadingIO

/// The longest wait, shorter than the time limits of the suites.
package let waitLimit = Duration.seconds(180)

/// A condition that did not become true.
package struct WaitFailure: Error, CustomStringConvertible {
    package let description: String

    init(_ limit: Duration, _ place: String, seen: String) {
        description = "waited \(limit) at \(place), and saw: \(seen)"
    }
}

/// Evaluates a value repeatedly until it fulfils a condition, and returns it.
///
/// The last resort, where nothing notifies of a change. A test calls one of the functions that are named after the
/// state they wait for; each says why there is no event:
///
/// | State | Function |
/// |---|---|
/// | files | ``eventuallyFile(_:file:line:)``, ``eventuallyFiles(_:file:line:until:)`` |
/// | another process | ``eventuallyProcess(file:line:until:)`` |
/// | closures that ignore their cancellation | ``eventuallyNoLeaks(_:file:line:)`` |
/// | connections, loads, timers, waiting tasks of the library | `eventually…` of `Session`, `ManualTime`, `PollSlot` |
/// | input on a socket | `eventuallyHasInput` of `Transport` |
///
/// A weak reference becomes `nil` without notice, too, at a moment that depends on the tasks that still hold the
/// object: `eventually(object == nil) { $0 }`. Where a test waits for other state, a comment says why there is no
/// event.
///
/// Everything else has one: ``Watched``, the waits of servers, recorders and clocks, and those of tasks below.
/// - Throws: ``WaitFailure`` with the last value; `CancellationError`.
@discardableResult
package nonisolated(nonsending) func eventually<Value>(
    _ current: @autoclosure () throws -> Value, file: StaticString = #fileID, line: UInt = #line,
    until isSo: (Value) throws -> Bool
) async throws -> Value {
    let deadline = ContinuousClock.now + waitLimit
    while true {
        let value = try current()
        if try isSo(value) { return value }
        guard ContinuousClock.now < deadline else {
            throw WaitFailure(waitLimit, "\(file):\(line)", seen: "\(value)")
        }
        try await Task.sleep(for: .milliseconds(1))
    }
}

/// Waits until the names of files fulfil a condition. Another process, or a thread of the library that the load does
/// not wait for, creates and removes them.
@discardableResult
package nonisolated(nonsending) func eventuallyFiles(
    _ names: @autoclosure () throws -> [String], file: StaticString = #fileID, line: UInt = #line,
    until isSo: ([String]) -> Bool
) async throws -> [String] {
    try await eventually(try names(), file: file, line: line, until: isSo)
}

/// Waits until a file exists. Another process creates it.
package nonisolated(nonsending) func eventuallyFile(
    _ path: String, file: StaticString = #fileID, line: UInt = #line
) async throws {
    try await eventuallyProcess(file: file, line: line) { access(path, F_OK) == 0 }
}

/// Waits until another process is in a state, which it is asked for, or which is seen in its files. It does not know
/// that a test waits.
package nonisolated(nonsending) func eventuallyProcess(
    file: StaticString = #fileID, line: UInt = #line, until isSo: nonisolated(nonsending) () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + waitLimit
    while try await !isSo() {
        guard ContinuousClock.now < deadline else {
            throw WaitFailure(waitLimit, "\(file):\(line)", seen: "another state of the process")
        }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// Waits until a count of closures that ignored their cancellation is 0. The library does not wait for such a closure,
/// so nothing happens at its end.
package nonisolated(nonsending) func eventuallyNoLeaks(
    _ count: @autoclosure () -> Int, file: StaticString = #fileID, line: UInt = #line
) async throws {
    try await eventually(count(), file: file, line: line) { $0 == 0 }
}

extension Session {
    /// Waits until the description of the connections fulfils a condition. The pool wakes the loads that wait for a
    /// connection; to notify others as well would be code for tests alone.
    package nonisolated(nonsending) func eventuallyConnections(
        file: StaticString = #fileID, line: UInt = #line, until isSo: (String) -> Bool
    ) async throws {
        try await eventually(connectionsDescription, file: file, line: line, until: isSo)
    }
}

extension ManualTime {
    /// Waits until the number of timers fulfils a condition. Timers are set on the library's hot path, which notifies
    /// of none.
    package nonisolated(nonsending) func eventuallyTimers(
        file: StaticString = #fileID, line: UInt = #line, until isSo: (Int) -> Bool
    ) async throws {
        try await eventually(scheduled, file: file, line: line, until: isSo)
    }

    /// Waits until the number of tasks inside a sleep fulfils a condition: a task that was woken leaves it when it
    /// runs.
    package nonisolated(nonsending) func eventuallySleeping(
        file: StaticString = #fileID, line: UInt = #line, until isSo: (Int) -> Bool
    ) async throws {
        try await eventually(sleeping, file: file, line: line, until: isSo)
    }
}

extension PollSlot {
    /// Waits until a task is parked. It parks with its last step, after which it notifies of nothing.
    package nonisolated(nonsending) func eventuallyParked(
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await eventually(hasWaiter, file: file, line: line) { $0 }
    }
}

extension Transport {
    /// Waits until the poller knows of input, or of the end: the kernel reports it a moment after it has arrived.
    package nonisolated(nonsending) func eventuallyHasInput(
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await eventually(hasPendingInput(askingKernel: false), file: file, line: line) { $0 }
    }
}

extension LoadTask {
    /// Waits until the byte counts of the task fulfil a condition. The task's events notify of their changes.
    /// - Throws: ``WaitFailure`` if the task ends before; `CancellationError`.
    package nonisolated(nonsending) func wait(
        file: StaticString = #fileID, line: UInt = #line, until isSo: (LoadSnapshot) -> Bool
    ) async throws {
        let events = events
        if isSo(snapshot) { return }
        for await _ in events where isSo(snapshot) { return }
        try Task.checkCancellation()
        // The last event may have been the one that was waited for.
        guard isSo(snapshot) else { throw WaitFailure(.zero, "\(file):\(line) for a task that ended", seen: "\(self)") }
    }

    /// Waits until the task has received this many bytes of the body.
    package nonisolated(nonsending) func received(
        _ count: Int = 1, file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await wait(file: file, line: line) { $0.received >= count }
    }
}
