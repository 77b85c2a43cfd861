/// Something that happened to a load. In which order is legal, ``LoadEventOrder`` says.
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
    case canonicalized(Request)
    /// A piece of the request's body was handed to the system. Counted anew for each request sent.
    case bodySent(TransferProgress)
    /// An interim (1xx) response came (RFC 9110 §15.2).
    case informational(HTTPHead)
    /// A try of the request failed, or was answered with a status that may pass, and another follows:
    /// ``RetryPolicy``. Nothing is told of a request that is sent again at once because the peer had closed an
    /// idle connection.
    case retrying(Retry)
    /// There is no network the load may use, and it waits for one: ``Configuration/waitsForConnectivity``. Once
    /// for each wait.
    case waitingForConnectivity
    /// Somebody wants to know who we are, or shows who he is, and a decision is asked (``Decisions/challenge``): for a
    /// connection before anything is sent on it, for a request after its refusal.
    case challenged(Challenge)
    /// A redirect is followed: what comes next belongs to its request.
    case redirected(Redirect)
    /// The response is known, and the caller's decision has allowed it.
    case responded(Response)
    /// The caller's decision made a download of the load. Whoever held the data task hears nothing more;
    /// what follows, the task that this brings gives.
    case becameDownload(LoadTask<DownloadedFile>)
    /// The caller's decision made a stream of the load's connection. Whoever held the data task hears
    /// nothing more.
    case becameStream(StreamTask)
    /// A download goes on at this offset; at 0 if what was held could not be used, and all of it is loaded.
    case resumed(offset: Int64, expected: Int64?)
    /// A piece of the body was received, and decoded; of a download: was written to its file. The total of
    /// a resumed one counts from the beginning of the file.
    case received(TransferProgress)
    /// What was loaded is in the cache now, whole, and will answer again or be asked about. Not told of what was
    /// there before.
    case stored
    /// What was loaded may be stored, and the cache cannot keep it: ``ResponseCache/problem`` is this from now on,
    /// unless it was another before.
    case notStored(ResponseCache.Problem)
    /// What the load did with its time and bytes: the last but one event of every load, exactly once.
    case metrics(LoadMetrics)
    /// The load is over; `nil` if nothing went wrong. The last event of every load, exactly once.
    case completed(LoadError?)
}

extension LoadEvent: CustomStringConvertible {
    /// One line, without secrets: `responded HTTP/1.1 200 text/plain 5`.
    public var description: String {
        switch self {
        case .canonicalized: "canonicalized"
        case .bodySent(let bytes): "sent \(bytes)"
        case .informational(let head): "informational \(head.status.code)"
        case .retrying(let retry): "retrying \(retry)"
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
