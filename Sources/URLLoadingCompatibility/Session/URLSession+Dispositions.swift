extension URLSession {
    /// What becomes of a task when its response is known.
    public enum ResponseDisposition: Int, Sendable {
        /// It ends with `URLError.cancelled`.
        case cancel = 0
        /// Its body is loaded.
        case allow = 1
        /// Its body is loaded into a file, by a download task that takes its place: the delegate hears `didBecome
        /// downloadTask`, and nothing more of this one.
        case becomeDownload = 2
        /// Its connection becomes a stream: the delegate hears `didBecome streamTask`, and nothing more of this one. For
        /// HTTP/1.1, and requests with a field Upgrade; other tasks fail, for a part of the body may have been read by then.
        case becomeStream = 3
    }

    /// What becomes of a task whose ``URLSessionTask/earliestBeginDate`` has come.
    public enum DelayedRequestDisposition: Sendable {
        /// It ends with `URLError.cancelled`.
        case cancel
        /// Its request is sent.
        case continueLoading
        /// The request beside it is sent; if there is none, its own.
        case useNewRequest
    }

    /// What is to be done about a challenge.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// The credential beside it is used; `nil` goes on without one.
        case useCredential = 0
        /// As if nobody had been asked.
        case performDefaultHandling = 1
        /// The load ends with `URLError.cancelled`.
        case cancelAuthenticationChallenge = 2
        /// Another of the methods that the server offers is asked for next; if there is none, its response is the result.
        case rejectProtectionSpace = 3
    }
}
