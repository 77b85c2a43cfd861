// What a file to upload is recognised by.

import FoundationEssentials
import URLLoadingIO

/// What a source is, as far as a token remembers it.
struct UploadIdentity: Sendable, Hashable {
    let length: Int64
    /// Nanoseconds since 1970; of files.
    var modified: Int64?
    /// Of all of it, or of the ends of a file.
    let digest: String
    /// Where a file was; it may be elsewhere by now.
    var path: String?

    /// Whether the same bytes are meant, wherever they lie.
    func matches(_ other: UploadIdentity) -> Bool {
        length == other.length && modified == other.modified && digest == other.digest
    }
}
