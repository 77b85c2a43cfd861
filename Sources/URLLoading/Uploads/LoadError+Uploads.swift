// Why an upload that can be resumed was not, and the token inside an error with which it still can.

extension LoadError {
    /// With what an interrupted upload goes on, in this process or another; `nil` if it cannot, or if the
    /// load was none of ``Session/uploadResumably(_:from:resuming:options:decisions:_:)``.
    ///
    /// ```swift
    /// do throws(LoadError) {
    ///     _ = try await session.uploadResumably(request, from: .file(film))
    /// } catch {
    ///     guard let token = error.uploadToken else { throw error }
    ///     try token.text.write(to: state, atomically: true, encoding: .utf8)
    /// }
    /// ```
    public var uploadToken: UploadToken? { (underlying as? UploadInterruption)?.token }

    /// The same error with a token inside, where going on makes sense.
    func carrying(_ token: UploadToken?) -> LoadError {
        guard let token, reason.leavesUploadUsable else { return self }
        return LoadError(
            reason, phase: phase, party: party, url: url, detail: detail,
            underlying: UploadInterruption(token: token, cause: underlying))
    }

    /// A lost connection, a silent server, no way to it: things that pass.
    var interruptsUpload: Bool { LoadError.Reason.interruptions.contains(reason) }
}

/// What ``LoadError/underlying`` is when an upload can go on: the token, and what would stand there
/// otherwise.
public struct UploadInterruption: Error, Sendable {
    /// With what the upload goes on.
    public let token: UploadToken
    /// The error of the caller's own code, if that ended it.
    public let cause: (any Error)?
}

extension LoadError.Reason {
    /// The text is no ``UploadToken``: damaged, cut short, or of a version this library does not know.
    public static let invalidUploadToken = Self("invalidUploadToken", -1000)
    /// The token is for another request: another URL or method.
    public static let uploadTokenMismatch = Self("uploadTokenMismatch", -1000)
    /// What is to be sent is no longer what the upload began with.
    public static let uploadSourceChanged = Self("uploadSourceChanged", -3001)
    /// The server does not know the upload (any more): begin anew.
    public static let uploadNotFound = Self("uploadNotFound", -1008)
    /// The server takes no representation of this size, or no part that could be sent.
    public static let uploadTooLarge = Self("uploadTooLarge", -1103)
    /// The upload resource, or a request for the first of several parts, was refused with this status.
    public static let uploadRefused = Self("uploadRefused", -1011)
    /// The server's account of the upload contradicts ours: another length, an offset beyond the end or
    /// before what it had acknowledged, two places for one upload.
    public static let uploadInconsistent = Self("uploadInconsistent", -1011)
    /// The server took the first of several parts for the whole: it cannot put parts together.
    public static let uploadNotSupported = Self("uploadNotSupported", -1011)

    fileprivate var leavesUploadUsable: Bool {
        switch self {
        case .uploadTokenMismatch, .uploadNotFound, .uploadTooLarge, .uploadInconsistent, .uploadNotSupported: false
        default: true
        }
    }

    /// After these the same request, or the next, may do better. Interim responses beyond the limit are
    /// among them: a server that tells its offset often is heard out in several requests.
    fileprivate static let interruptions: Set<Self> = [
        .connectionLost, .streamReset, .truncated, .idleTimeout, .connectTimeout, .connectionRefused, .unreachable,
        .cannotConnect, .lookupFailed, .tooManyInformational,
    ]
}
