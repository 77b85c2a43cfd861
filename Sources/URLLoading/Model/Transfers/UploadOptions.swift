// SPDX-License-Identifier: Apache-2.0

/// The part size and the retries of a resumable upload.
///
/// ```swift
/// var options = UploadOptions()
/// options.maximumAttempts = 20
/// options.partSize = 8 << 20     // this server is known to take parts
/// ```
public struct UploadOptions: Sendable {
    /// The number of consecutive retries without progress before the error is thrown; 8 by default, at least 0.
    /// Progress, which is a greater offset at the server, resets the count.
    public var maximumAttempts = 8
    /// The delay before the first retry, at least zero; doubled for each further one. The actual delay is random,
    /// between half and all of it, so that the retries of many clients are spread.
    public var initialDelay: Duration = .seconds(1)
    /// The longest delay, also if the server asks for more (`Retry-After`).
    public var maximumDelay: Duration = .seconds(60)
    /// The maximum number of bytes per request; `nil` sends everything in one, unless the server's limit is lower. At
    /// least 1.
    ///
    /// With a part size the first request announces further ones (`Upload-Complete: ?0`). Use it only with servers
    /// known to support that: others take the first part for the whole, which is detected
    /// (``LoadError/Reason/uploadNotSupported``) but cannot be undone.
    public var partSize: Int64?

    /// Creates the default settings.
    public init() {}

    /// Returns the delay before a retry, in nanoseconds.
    /// - Parameters:
    ///   - attempt: the number of the retry, from 1.
    ///   - retryAfter: the delay that the server asks for, in seconds.
    ///   - share: a random factor, from 0.5 to 1.
    func delay(_ attempt: Int, retryAfter: Int64?, share: Double) -> Int64 {
        let longest = max(0, maximumDelay.nanoseconds)
        guard initialDelay > .zero else { return 0 }
        let doublings = min(max(0, attempt - 1), 30)
        let (grown, overflows) = initialDelay.nanoseconds.multipliedReportingOverflow(by: 1 << doublings)
        let wait = Int64(Double(min(overflows ? .max : grown, longest)) * share)
        let requested = retryAfter.map { min($0, longest / 1_000_000_000) * 1_000_000_000 } ?? 0
        return max(wait, requested)
    }
}

/// An event of a resumable upload.
public enum UploadEvent: Sendable {
    /// The server has sent the location of the upload: from now on it can be resumed. Emitted once for each upload.
    case created(UploadToken)
    /// The offset up to which bytes were handed to the system.
    case sent(Int64)
    /// The offset up to which the server has acknowledged the bytes: these are not sent again.
    case acknowledged(Int64)
    /// The upload was interrupted by this error, and will be retried.
    case interrupted(LoadError)
    /// The upload continues from this offset.
    case resumed(from: Int64)
}
