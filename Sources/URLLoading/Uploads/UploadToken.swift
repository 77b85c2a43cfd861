public import FoundationEssentials
import URLLoadingWire

/// With what an upload goes on where it was interrupted: in this session, in another, after a crash, on
/// another machine.
///
/// A token appears as ``UploadEvent/created(_:)`` as soon as the server has said where the upload lies, and
/// inside errors as ``LoadError/uploadToken``. It does not change while the upload makes progress, for how
/// far it came is asked of the server.
///
/// ```swift
/// let saved = try? UploadToken(String(contentsOf: state, encoding: .utf8))
/// let (_, response) = try await session.uploadResumably(request, from: .file(film), resuming: saved) { event in
///     if case .created(let token) = event { try token.text.write(to: state, atomically: true, encoding: .utf8) }
/// }
/// ```
/// It remembers what was being sent: of a file its size, the time of its last change and a digest of its
/// ends, of data a digest of all. If that has changed the upload is refused with
/// ``LoadError/Reason/uploadSourceChanged``, rather than one half of each put together. A copy of the file
/// that kept its time is the same file.
///
/// Whoever has the token can read the upload's state, add to it and end it, if the server asks for no
/// credentials: keep it like one. It contains none itself.
public struct UploadToken: Sendable, Hashable, CustomStringConvertible {
    /// Where the server keeps the upload.
    public let url: URL
    /// The number of bytes of the whole.
    public var length: Int64 { identity.length }
    /// The file it was made for; `nil` for data.
    public var file: URL? { identity.path.map { URL(filePath: $0) } }

    let identity: UploadIdentity
    /// A digest of what it was requested with: a token does not fit another request.
    let target: String

    init(url: URL, identity: UploadIdentity, target: String) {
        self.url = url
        self.identity = identity
        self.target = target
    }

    /// Without the URL, which is as good as a key: `upload of 1024 bytes at example.org`.
    public var description: String { "upload of \(length) bytes at \(url.hostInNormalForm ?? "")" }
}
