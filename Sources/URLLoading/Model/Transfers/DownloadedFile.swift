// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// The destination, the permissions and the durability of a download's file.
///
/// ```swift
/// var options = DownloadOptions(destination: place)
/// options.requiresSuccess = true
/// options.permissions = 0o640
/// let task = session.downloadTask(request, options: options)
/// ```
public struct DownloadOptions: Sendable {
    /// The `file` URL to which the complete file is moved atomically. Until then it is in the same folder under another
    /// name. `nil`, the default: it stays in ``Configuration/temporaryDirectory``, and is removed with the last
    /// reference to its ``DownloadedFile``.
    public var destination: URL?
    /// Whether an existing file is replaced; true by default. Otherwise the load ends with
    /// ``LoadError/Reason/cannotMoveFile``.
    public var overwrites = true
    /// Whether content and name are on disk when the load completes (`fsync`), so that they survive a power failure;
    /// false by default.
    public var synchronizes = false
    /// The permissions of the complete file (POSIX mode bits, such as `0o640`; those beyond `0o777` are ignored).
    /// `nil`, the default: those of the file it replaces, or those of other new files: `0o666` without the bits of the
    /// process's umask. File systems without permissions ignore them.
    ///
    /// Until it is at its ``destination``, only the file's owner can read it.
    /// ``DownloadedFile/move(to:overwriting:permissions:synchronizing:)`` has a parameter of its own.
    public var permissions: UInt16?
    /// Whether the load ends with ``LoadError/Reason/unacceptableStatus`` unless the status is 2xx; false by default.
    /// The error carries the response (``LoadError/response``). Otherwise the body of an error response is saved as any
    /// other. A resumed download never takes an error page for content.
    public var requiresSuccess = false
    /// A digest that the file's content must have. `nil`, the default: none but those that the server states.
    ///
    /// It is computed while the file is written. Another content ends the load with
    /// ``LoadError/Reason/digestMismatch``, and a status other than 2xx with ``LoadError/Reason/unacceptableStatus``:
    /// no file appears, and no token resumes it. A HEAD has no body: nothing is compared.
    public var expectedDigest: BodyDigest?
    /// The `file` URL at which the download keeps its ``ResumeToken`` while it runs, so that the same call continues it
    /// after a failure, a cancellation, or the end of the process. `nil`, the default: no token is kept.
    ///
    /// ```swift
    /// var options = DownloadOptions(destination: place)
    /// options.resumeFile = place.appendingPathExtension("resume")
    /// let task = session.downloadTask(request, options: options)
    /// task.resume()
    /// let file = try await task.value
    /// ```
    /// The token is renewed as bytes reach the disk, and removed once the file is complete. One that does not fit any
    /// more (another URL, changed content on either side) is replaced by a new download:
    /// ``LoadEvent/resumed(offset:expected:)`` says at which byte the download continues. If the token or its partial
    /// file cannot be read for now, for example with too many open files, the download fails and leaves both as they
    /// are. Without a strong validator of the server (RFC 9110 §13.1.5) there is no token. Two downloads at once need
    /// two files; the second ends with ``LoadError/Reason/invalidResumeToken``. In a background session the agent keeps
    /// such a token itself, and the option is refused.
    public var resumeFile: URL?
    /// How many parts of the file are loaded at once. `nil`, the default: it is loaded as a whole.
    ///
    /// ```swift
    /// options.parallelRanges = .automatic
    /// ```
    /// The first request is the same as without. If its response has a strong validator (RFC 9110 §8.8.1), a known
    /// length and no content coding, further requests ask for ranges of the same version (§13.1.5, §14.2), and a part
    /// that is still long when another has ended is divided again. A response that is not exactly the requested range
    /// of that version is never written. A server that does not send ranges, or not so many, is read over fewer
    /// connections, or one. If what is missing is refused to all of them, the load ends with
    /// ``LoadError/Reason/resumeMismatch``, because the content has changed, or with
    /// ``LoadError/Reason/unacceptableStatus``.
    ///
    /// A part whose connection fails is requested again as the ``RetryPolicy`` says, or else left to the others: the
    /// load fails with the last of them. Digests are computed at the end. Without any effect for ftp.
    public var parallelRanges: ParallelRanges?
    /// The `file` URL, in the folder of ``destination``, for the partial content of a download that cannot be resumed
    /// (no strong validator) and ends early. `nil`, the default: it is removed.
    package var leftover: URL?
    /// Whether the room for a body of known length is allocated on the disk before the body is read, so that a full
    /// disk shows at once. Off by default, because it costs a call of the system.
    package var reservesSpace = false
    /// The number of bytes beyond which the load ends with ``LoadError/Reason/bodyTooLarge``, and the partial file is
    /// removed; `nil`, the default, for no limit.
    package var maximumSize: Int64?
    /// Whether a request without an Accept-Encoding gets `identity`; true by default.
    package var sendsAcceptEncoding = true

    /// Creates options; the properties without a parameter are set afterwards.
    public init(destination: URL? = nil, overwrites: Bool = true, synchronizes: Bool = false) {
        self.destination = destination
        self.overwrites = overwrites
        self.synchronizes = synchronizes
    }
}

/// A complete download.
///
/// ```swift
/// try await session.download(request) { file in
///     try file.move(to: folder.appending(path: file.response.suggestedFileName))
/// }
/// ```
/// While it is temporary, only its owner may read the file, and it is removed with the last reference to this object.
/// Once it is moved, or downloaded to a destination, it stays.
public final class DownloadedFile: Sendable, CustomStringConvertible {
    /// The response without its body.
    public let response: Response
    /// The size in bytes.
    public let size: Int64
    private let file: FileWriter
    private let place: Lock<URL>

    /// The current location of the file.
    public var url: URL { place.withLock { $0 } }

    init(_ response: Response, _ file: FileWriter, _ size: Int64) {
        self.response = response
        self.size = size
        self.file = file
        place = Lock(URL(filePath: file.path))
    }

    /// Moves the file to its final name atomically. To another file system it is copied first, and the copy is renamed
    /// atomically. Blocks on the file system.
    ///
    /// A symbolic link at the destination is replaced itself, not its target. Only the permissions of a replaced file
    /// are kept: its other hard links keep the old content, and owner, access lists and extended attributes are those
    /// of a new file. A device, a pipe or a socket is not replaced.
    /// - Parameters:
    ///   - destination: a `file` URL; its folder must exist.
    ///   - overwriting: whether an existing file is replaced.
    ///   - permissions: see ``DownloadOptions/permissions``. With `nil`, a file that was moved before keeps its own,
    ///     unless it replaces another.
    ///   - synchronizing: whether content and name are on disk when this returns.
    /// - Throws: ``LoadError/Reason/cannotMoveFile``; the file is then unmoved.
    public func move(
        to destination: URL, overwriting: Bool = true, permissions: UInt16? = nil, synchronizing: Bool = false
    ) throws(LoadError) {
        let permissions = permissions.map(FileWriter.Permissions.exactly) ?? .usual
        do throws(LoadError) {
            try Self.move(
                file, from: url, to: destination, overwriting: overwriting, permissions: permissions,
                synchronizing: synchronizing)
        } catch { throw error.at(response.url) }
        place.withLock { $0 = destination }
    }

    /// Moves a complete file that this user owns as ``move(to:overwriting:permissions:synchronizing:)`` moves that of a
    /// download. Blocks.
    package static func move(_ other: URL, to destination: URL, overwriting: Bool) throws(LoadError) {
        let file: FileWriter
        do throws(IOFailure) { file = try FileWriter.adopt(other.path(percentEncoded: false)) } catch {
            throw LoadError(.cannotMoveFile, phase: .receiving, party: .system, detail: error.words)
        }
        try move(
            file, from: other, to: destination, overwriting: overwriting, permissions: .usual, synchronizing: false)
    }

    private static func move(
        _ file: FileWriter, from current: URL, to destination: URL, overwriting: Bool,
        permissions: FileWriter.Permissions, synchronizing: Bool
    ) throws(LoadError) {
        guard destination.namesFile else {
            throw LoadError(
                .cannotMoveFile, phase: .receiving, party: .local, detail: "the destination is not a file URL")
        }
        let path = destination.path(percentEncoded: false)
        do throws(IOFailure) {
            let current = current.path(percentEncoded: false)
            do throws(IOFailure) {
                try file.move(
                    from: current, to: path, replacing: overwriting, permissions: permissions,
                    synchronizes: synchronizing
                )
            } catch {
                guard error.isAcrossFileSystems else { throw error }
                let copy = try file.copy(to: path.folder, prefix: ResumeToken.prefix)
                try copy.move(
                    from: copy.path, to: path, replacing: overwriting, permissions: permissions,
                    synchronizes: synchronizing)
                file.remove(at: current)
            }
        } catch {
            throw LoadError(.cannotMoveFile, phase: .receiving, party: .system, detail: error.words)
        }
    }

    /// Reads the content of the file. Blocks.
    /// - Parameter limit: the maximum number of bytes.
    /// - Throws: ``LoadError/Reason/bodyTooLarge`` for a larger file; ``LoadError/Reason/cannotReadFile``.
    public func content(upTo limit: Int) throws(LoadError) -> Data {
        guard size <= limit else { throw .tooLarge(limit) }
        do throws(IOFailure) { return Data(try file.content(upTo: Int(size))) } catch {
            throw LoadError(file: error, .receiving)
        }
    }

    /// The file on one line: `file /tmp/x 1024`.
    public var description: String { "file \(url.path(percentEncoded: false)) \(size)" }
}

extension URL {
    /// Whether the URL has a path on this machine: a `file` URL, or a path without a scheme.
    var namesFile: Bool { isFileURL || scheme == nil }
}

extension String {
    /// The path of the folder that contains this path.
    var folder: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
