// SPDX-License-Identifier: Apache-2.0

// Failures of resumable uploads, and the token inside an error that resumes the upload.

package import FoundationEssentials

extension LoadError {
    /// The token that resumes an interrupted upload, in this process or another; `nil` if it cannot be resumed, or if
    /// the load was not started by ``Session/uploadResumably(_:from:resuming:options:decisions:_:)``.
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

    /// Returns the error with the token inside, if the upload can be resumed after it.
    func carrying(_ token: UploadToken?) -> LoadError {
        guard let token, reason.leavesUploadUsable else { return self }
        return with(underlying: UploadInterruption(token: token, cause: underlying))
    }

    /// True for failures that may be temporary, such as a lost connection, a silent server, an unreachable network.
    var interruptsUpload: Bool { LoadError.Reason.interruptions.contains(reason) }
}

/// The ``LoadError/underlying`` error of an upload that can be resumed: the token, and the original underlying error.
public struct UploadInterruption: Error, Sendable {
    /// The token that resumes the upload.
    public let token: UploadToken
    /// The error of the caller's own code, if that ended it.
    public let cause: (any Error)?
}

extension UploadInterruption: ErrorCarrier {}

extension LoadError.Reason {
    /// The text is not a valid ``UploadToken``: damaged, truncated, or of an unknown version.
    public static let invalidUploadToken = Self("invalidUploadToken", -1000)
    /// The token is for another request: another URL or method.
    public static let uploadTokenMismatch = Self("uploadTokenMismatch", -1000)
    /// The source has changed since the upload began.
    public static let uploadSourceChanged = Self("uploadSourceChanged", -3001)
    /// The server does not know the upload (any more): start a new one.
    public static let uploadNotFound = Self("uploadNotFound", -1008)
    /// The server does not accept a representation of this size, or any part size that could be sent.
    public static let uploadTooLarge = Self("uploadTooLarge", -1103)
    /// The server refused the upload resource, or the request with the first of several parts, with this status.
    public static let uploadRefused = Self("uploadRefused", -1011)
    /// The server's state of the upload contradicts the client's: another length, an offset beyond the end or before an
    /// acknowledged one, two locations for one upload.
    public static let uploadInconsistent = Self("uploadInconsistent", -1011)
    /// The server took the first of several parts for the whole: it does not support uploads in parts.
    public static let uploadNotSupported = Self("uploadNotSupported", -1011)

    fileprivate var leavesUploadUsable: Bool {
        switch self {
        case .uploadTokenMismatch, .uploadNotFound, .uploadTooLarge, .uploadInconsistent, .uploadNotSupported: false
        default: true
        }
    }

    /// The failures after which a repetition may succeed. They include too many interim responses, because a server
    /// that reports its offset often is served by several requests.
    fileprivate static let interruptions: Set<Self> = [
        .connectionLost, .streamReset, .truncated, .idleTimeout, .connectTimeout, .connectionRefused, .unreachable,
        .cannotConnect, .lookupFailed, .tooManyInformational,
    ]
}

extension LoadError {
    /// - Parameter path: the file that was changed; nil for another source.
    package static func sourceChanged(_ path: String?, _ url: URL) -> LoadError {
        LoadError(
            .uploadSourceChanged, phase: .preparing, party: .local, url: url,
            detail: "\(path ?? "the source") is not what it was when the upload began")
    }
}
