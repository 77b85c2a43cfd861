// SPDX-License-Identifier: Apache-2.0

extension URLSession {
    /// How a task continues when its response is known.
    public enum ResponseDisposition: Int, Sendable {
        /// The task ends with `URLError.cancelled`.
        case cancel = 0
        /// The body is loaded.
        case allow = 1
        /// The body is loaded into a file by a download task that replaces this task: `didBecome downloadTask` is the
        /// last call about this one.
        case becomeDownload = 2
        /// The connection becomes a stream task that replaces this task: `didBecome streamTask` is the last call about
        /// this one. Supported for HTTP/1.1 requests with an Upgrade field; other tasks fail, because a part of their
        /// body may already have been read.
        case becomeStream = 3
    }

    /// How a task continues when its ``URLSessionTask/earliestBeginDate`` has come.
    public enum DelayedRequestDisposition: Sendable {
        /// The task ends with `URLError.cancelled`.
        case cancel
        /// The task sends its request.
        case continueLoading
        /// The task sends the request passed with this disposition; without one, its own.
        case useNewRequest
    }

    /// How a challenge is answered.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// Uses the credential passed with this disposition; `nil` continues without a credential.
        case useCredential = 0
        /// Answers as a session without a delegate would.
        case performDefaultHandling = 1
        /// Ends the load with `URLError.cancelled`.
        case cancelAuthenticationChallenge = 2
        /// Rejects this protection space: the next authentication scheme that the server offers is tried; if there is
        /// none, its response is the result.
        case rejectProtectionSpace = 3
    }
}
