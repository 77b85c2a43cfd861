// SPDX-License-Identifier: Apache-2.0

// The waits of tests, besides those of URLLoadingTesting. None asserts a duration: each has a limit of minutes, which
// exists to end a hang with a sentence.

package import URLLoading
import URLLoadingIO

/// The longest wait, shorter than the time limits of the suites.
package let waitLimit = Duration.seconds(180)

/// A condition that did not become true.
package struct WaitFailure: Error, CustomStringConvertible {
    package let description: String

    init(_ limit: Duration, _ place: String, seen: String) {
        description = "waited \(limit) at \(place), and saw: \(seen)"
    }
}

/// The sources of state whose changes are not notified, so that a test must check them repeatedly.
package enum UnnotifiedSource: Sendable {
    /// Files and output of another process.
    case anotherProcess
    /// Files, sockets and networks, and events that the poller has not read yet.
    case kernel
    /// The library's own state and the lifetime of its objects: a notification would be code for tests alone.
    case library
}

/// Evaluates a value repeatedly until it fulfils a condition, and returns it.
///
/// ```swift
/// try await eventually(session.connectionsDescription, of: .library) { $0.hasSuffix("1 waiting") }
/// ```
/// Prefer an event: ``Watched``, the waits of servers, recorders and clocks, or those of tasks below.
/// - Parameter source: the reason why there is no event.
/// - Throws: ``WaitFailure`` with the last value; `CancellationError`.
@discardableResult
package nonisolated(nonsending) func eventually<Value>(
    _ current: @autoclosure () throws -> Value, of source: UnnotifiedSource, file: StaticString = #fileID,
    line: UInt = #line, _ isSo: (Value) throws -> Bool
) async throws -> Value {
    let deadline = ContinuousClock.now + waitLimit
    while true {
        let value = try current()
        if try isSo(value) { return value }
        guard ContinuousClock.now < deadline else {
            throw WaitFailure(waitLimit, "\(file):\(line) for the state of \(source)", seen: "\(value)")
        }
        try await Task.sleep(for: .milliseconds(1))
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
