// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The token that resumes an interrupted upload: in this session, in another, after a crash, on another machine.
///
/// A token is delivered by ``UploadEvent/created(_:)`` as soon as the server has sent the location of the upload, and
/// inside errors as ``LoadError/uploadToken``. It does not change while the upload progresses, because the offset is
/// queried from the server.
///
/// ```swift
/// let saved = try? UploadToken(String(contentsOf: state, encoding: .utf8))
/// let (_, response) = try await session.uploadResumably(request, from: .file(film), resuming: saved) { event in
///     if case .created(let token) = event { try token.text.write(to: state, atomically: true, encoding: .utf8) }
/// }
/// ```
/// It identifies the content: a file by its size, modification time and a digest of its beginning and end, data by a
/// digest of all bytes. If the content has changed, the upload fails with ``LoadError/Reason/uploadSourceChanged``
/// instead of mixing two versions. A copy of a file with the same modification time counts as the same file.
///
/// The token contains no credentials. Yet if the server requires none, its bearer can query, extend and cancel the
/// upload: store it like a credential.
public struct UploadToken: Sendable, Hashable, CustomStringConvertible {
    /// The URL of the upload on the server.
    public let url: URL
    /// The length of the whole content in bytes.
    public var length: Int64 { identity.length }
    /// The file that the token was made for; `nil` for data.
    public var file: URL? { identity.path.map { URL(filePath: $0) } }

    let identity: UploadIdentity
    /// A digest of the request: a token does not fit another request.
    let target: String

    /// The token without its URL, which may work like a key: `upload of 1024 bytes at example.org`.
    public var description: String { "upload of \(length) bytes at \(url.hostInNormalForm ?? "")" }
}
