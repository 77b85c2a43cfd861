// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import URLLoadingIO

/// A programming error in the use of the classic API, which would otherwise appear only as a load that fails
/// unexpectedly.
public struct URLSessionMisuse: Sendable, CustomStringConvertible {
    /// The kinds of mistakes.
    public enum Kind: String, Sendable {
        /// The delegate dropped a completion handler without calling it. The task was cancelled.
        case completionHandlerDropped = "was dropped without being called; the task is cancelled"
        /// The delegate called a completion handler again. Only the first call counts.
        case completionHandlerCalledAgain = "was called again, without effect"
        /// A task of a background session was given a completion handler, or is awaited. The task fails.
        case completionHandlerInBackground =
            "has a completion handler, which a background session does not call; the task fails"
        /// A task of a background session is neither a download nor an upload of a file. The task fails.
        case notPossibleInBackground =
            "is not possible in a background session, which has downloads and uploads of files; the task fails"
        /// A task of a background session resumes an upload. The task fails.
        case resumesInBackground = "resumes an upload, which a background session does not; the task fails"
        /// A task belongs to a background session without a delegate. The task fails.
        case noDelegateInBackground = "belongs to a background session without a delegate; the task fails"
    }
    /// The mistake.
    public let kind: Kind
    /// The delegate method whose completion handler was misused; for a task of a background session, the method that
    /// created it.
    public let method: String
    /// The task whose delegate, or whose creator, made the mistake.
    public let task: URLSessionTask

    /// One line: `task 3: the completion handler of willPerformHTTPRedirection was called again, without effect`.
    public var description: String {
        switch kind {
        case .completionHandlerDropped, .completionHandlerCalledAgain:
            "task \(task.taskIdentifier): the completion handler of \(method) \(kind.rawValue)"
        case .completionHandlerInBackground, .notPossibleInBackground, .resumesInBackground, .noDelegateInBackground:
            "task \(task.taskIdentifier): \(method) \(kind.rawValue)"
        }
    }
}

extension URLSession {
    private static let misuseState = Lock<@Sendable (URLSessionMisuse) -> Void>({ misuse in
        let line = "URLLoading: \(misuse)\n"
        _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    })

    /// Called for every misuse in the process, on the thread where it happened. By default each is a line on standard
    /// error.
    ///
    /// ```swift
    /// URLSession.misuseHandler = { misuse in logger.error("\(misuse)") }
    /// ```
    public static var misuseHandler: @Sendable (URLSessionMisuse) -> Void {
        get { misuseState.withLock { $0 } }
        set { misuseState.withLock { $0 = newValue } }
    }
}
