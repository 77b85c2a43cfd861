// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO

/// The content of a resumable upload: bytes that can be read again from any offset.
///
/// ```swift
/// try await session.uploadResumably(request, from: .file(URL(filePath: "/var/spool/film.mp4")))
/// ```
public struct UploadSource: Sendable {
    private enum Content: Sendable {
        case data(Data)
        case file(URL)
    }
    private let content: Content

    /// The given bytes.
    public static func data(_ data: Data) -> UploadSource { UploadSource(content: .data(data)) }

    /// A regular file, streamed at the server's pace and never held in memory. It must not change until the upload is
    /// complete: see ``UploadToken``.
    /// - Parameter url: a `file` URL.
    public static func file(_ url: URL) -> UploadSource { UploadSource(content: .file(url)) }

    /// True if the content may differ the next time it is read.
    var mayChange: Bool { if case .file = content { true } else { false } }

    /// The path of the file; nil for bytes.
    var path: String? { if case .file(let url) = content { url.path(percentEncoded: false) } else { nil } }

    /// Returns the bytes of a range, for one request. A range out of bounds fails when it is sent.
    func body(_ range: Range<Int64>) -> RequestBody {
        switch content {
        case .data(let data):
            let range = range.clamped(to: 0..<Int64(data.count))
            return .data(data.dropFirst(Int(range.lowerBound)).prefix(range.count))
        case .file(let url): return .file(url, range: range)
        }
    }

    /// Computes the identity of the source at this moment, for as long as the calling task is not cancelled and the
    /// session not invalidated.
    func identity(in core: Core, at url: URL) async throws(LoadError) -> UploadIdentity {
        let handle = LoadHandle(idle: nil, resource: nil, clock: core.configuration.clock)
        guard core.registry.enter(handle) else { throw .sessionInvalidated(url) }
        defer { core.registry.leave(handle) }
        let result: Result<UploadIdentity, LoadError> = await withTaskCancellationHandler {
            do throws(LoadError) { return .success(try await identity(handle)) } catch { return .failure(error) }
        } onCancel: {
            handle.stop(.cancelled)
        }
        return try result.get()
    }

    /// Computes the identity of the source at this moment.
    func identity(_ control: StopToken) async throws(LoadError) -> UploadIdentity {
        switch content {
        case .data(let data):
            let digest = Digest()
            // In pieces, because a stop ends the computation.
            for start in stride(from: 0, to: data.count, by: Self.pieceSize) {
                if let reason = control.stopReason { throw LoadError(reason, phase: .preparing) }
                data.dropFirst(start).prefix(Self.pieceSize).withUnsafeBytes { digest.update($0) }
            }
            return UploadIdentity(length: Int64(data.count), digest: digest.finish())
        case .file(let url):
            let path = url.path(percentEncoded: false)
            let (reader, _) = try await OutgoingBody.open(.file(path: path, range: nil), control)
            let read = await BlockingThreads.files.call(control) { () -> Result<FileIdentity, IOFailure> in
                Result { () throws(IOFailure) in try FileIdentity(reader) }
            }
            guard let read else { throw LoadError(control.stopReason ?? .cancelled, phase: .preparing) }
            do {
                let identity = try read.get()
                return UploadIdentity(
                    length: identity.size, modified: identity.modified, digest: identity.ends, path: path)
            } catch { throw LoadError(file: error, .preparing) }
        }
    }

    /// The number of bytes that are digested without a look at the stop token.
    private static let pieceSize = 1 << 20
}
