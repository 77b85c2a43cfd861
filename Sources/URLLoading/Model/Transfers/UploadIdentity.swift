// SPDX-License-Identifier: Apache-2.0

// The identity of a file to upload.

/// The properties by which a token recognises a source.
struct UploadIdentity: Sendable, Hashable {
    let length: Int64
    /// The modification time of a file, in nanoseconds since 1970.
    var modified: Int64?
    /// The digest of all bytes, or of the beginning and the end of a file.
    let digest: String
    /// The path of a file when the upload began; the file may have been moved since.
    var path: String?

    /// Returns whether both denote the same bytes, whatever their paths.
    func matches(_ other: UploadIdentity) -> Bool {
        length == other.length && modified == other.modified && digest == other.digest
    }
}
