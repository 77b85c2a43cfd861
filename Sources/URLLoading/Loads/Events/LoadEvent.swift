// SPDX-License-Identifier: Apache-2.0

/// An event of a load. ``LoadEventOrder`` defines the legal order.
///
/// ```swift
/// let task = session.dataTask(request)
/// let events = task.events
/// task.resume()
/// for await event in events {
///     if case .received(let bytes) = event { bar.update(bytes.total, of: bytes.expected) }
/// }
/// ```
public enum LoadEvent: Sendable {
    /// A handler brought the request into its canonical form (``ProtocolHandler/canonical(_:)``).
    indirect case canonicalized(Request)
    /// A piece of the request's body was handed to the system. The total restarts with each request sent.
    case bodySent(TransferProgress)
    /// An interim (1xx) response was received (RFC 9110 §15.2).
    indirect case informational(HTTPHead)
    /// An attempt failed, or was answered with a status that may be temporary, and is retried: ``RetryPolicy``. Not
    /// emitted when a request is sent again at once because the peer had closed an idle connection.
    indirect case retrying(Retry)
    /// A retry that the policy allows is beyond the session's budget (``Configuration/Retries/budget``) and is not
    /// made: the outcome of the attempt is that of the load.
    indirect case retryRefused(Retry)
    /// The load waits for a network that it may use: ``Configuration/Networks/waitsForConnectivity``. Emitted once for
    /// each wait.
    case waitingForConnectivity
    /// A server or proxy requires authentication, or presents its certificate, and a decision is called
    /// (``Decisions/challenge``): for a connection before a request is sent on it, for a request after its refusal.
    indirect case challenged(Challenge)
    /// A redirect is followed: the events that follow belong to its request.
    indirect case redirected(Redirect)
    /// The response is known, and the caller's decision has allowed it.
    indirect case responded(Response)
    /// The caller's decision turned the load into a download. It is the last event for the handle of the data task; the
    /// events that follow are those of the download task in this event.
    case becameDownload(LoadTask<DownloadedFile>)
    /// The caller's decision turned the load's connection into a stream. It is the last event for the handle of the
    /// data task.
    case becameStream(StreamTask)
    /// A download continues at this offset; 0 if the partial file could not be used and the whole file is loaded. After
    /// a download in several parts, the number of bytes that the file has.
    case resumed(offset: Int64, expected: Int64?)
    /// A piece of the body was received and decoded; for a download, it was written to the file. The total of a resumed
    /// download counts from the beginning of the file.
    case received(TransferProgress)
    /// The response is completely stored in the cache, and may be reused or revalidated. Not emitted for a response
    /// that was stored before. A ``ResponseStore`` was given it, and may be storing it still.
    case stored
    /// The response may be stored, but the cache cannot store it: ``ResponseCache/problem`` says so from now on, unless
    /// it named another problem already.
    indirect case notStored(ResponseCache.Problem)
    /// The durations and byte counts of the load: the last but one event of every load, exactly once.
    indirect case metrics(LoadMetrics)
    /// The load has ended; `nil` if it succeeded. The last event of every load, exactly once.
    case completed(LoadError?)
}

extension LoadEvent: CustomStringConvertible {
    /// The event on one line, without secrets: `responded HTTP/1.1 200 text/plain 5`.
    public var description: String {
        switch self {
        case .canonicalized: "canonicalized"
        case .bodySent(let bytes): "sent \(bytes)"
        case .informational(let head): "informational \(head.status.code)"
        case .retrying(let retry): "retrying \(retry)"
        case .retryRefused(let retry): "retryRefused \(retry)"
        case .waitingForConnectivity: "waitingForConnectivity"
        case .challenged(let challenge): "challenged \(challenge.protectionSpace)"
        case .redirected(let redirect): "redirected \(redirect.response.http.map { "\($0.status.code)" } ?? "-")"
        case .responded(let response): "responded \(response)"
        case .becameDownload: "becameDownload"
        case .becameStream: "becameStream"
        case .resumed(let offset, let expected): "resumed \(offset)/\(expected.map(String.init) ?? "?")"
        case .received(let bytes): "received \(bytes)"
        case .stored: "stored"
        case .notStored(let problem): "notStored \(problem.reason)"
        case .metrics(let metrics): "metrics \(metrics)"
        case .completed(nil): "completed"
        case .completed(let error?): "failed \(error)"
        }
    }
}
