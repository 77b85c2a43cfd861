import URLLoadingWire

/// How a resumable upload is sent, and how long it is insisted on.
///
/// ```swift
/// var options = UploadOptions()
/// options.maximumAttempts = 20
/// options.partSize = 8 << 20     // this server is known to take parts
/// ```
public struct UploadOptions: Sendable {
    /// How many times in a row it is tried again without any progress before the error is thrown. Whenever
    /// the server has got further, counting begins anew. At least 0.
    public var maximumAttempts = 8
    /// How long to wait before the first of these, at least zero; each further one waits twice as long. The
    /// true wait is a random part, from half to the whole, so that many clients do not come back as one.
    public var initialDelay: Duration = .seconds(1)
    /// The longest wait, also where the server asks for more (`Retry-After`).
    public var maximumDelay: Duration = .seconds(60)
    /// The most bytes in one request; `nil` sends all in one, unless the server says that it takes less.
    /// At least 1.
    ///
    /// With it the first request announces that others follow (`Upload-Complete: ?0`). That is for servers
    /// known to understand: others take the first part for the whole, which is noticed
    /// (``LoadError/Reason/uploadNotSupported``) but cannot be undone.
    public var partSize: Int64?

    public init() {}

    /// How long to wait before an attempt, in nanoseconds.
    /// - Parameters:
    ///   - attempt: from 1.
    ///   - wish: what the server asks for, in seconds.
    ///   - share: from 0.5 to 1.
    func delay(_ attempt: Int, wish: Int64?, share: Double) -> Int64 {
        let longest = max(0, maximumDelay.nanoseconds)
        guard initialDelay > .zero else { return 0 }
        let doublings = min(max(0, attempt - 1), 30)
        let (grown, overflows) = initialDelay.nanoseconds.multipliedReportingOverflow(by: 1 << doublings)
        let wait = Int64(Double(min(overflows ? .max : grown, longest)) * share)
        let wished = wish.map { min($0, longest / 1_000_000_000) * 1_000_000_000 } ?? 0
        return max(wait, wished)
    }
}

/// Something that happened to a resumable upload.
public enum UploadEvent: Sendable {
    /// The server has told where the upload lies: from now on it can be resumed. Once for each upload.
    case created(UploadToken)
    /// So many bytes, counted from the beginning of the whole, were handed to the system.
    case sent(Int64)
    /// So many bytes, counted from the beginning, are the server's: they are not sent again.
    case acknowledged(Int64)
    /// It will be tried again after this.
    case interrupted(LoadError)
    /// It goes on from this offset.
    case resumed(from: Int64)
}
