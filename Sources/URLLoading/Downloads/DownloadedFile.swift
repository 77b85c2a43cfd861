public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// Where a download goes, for whom, and how safely.
///
/// ```swift
/// var options = DownloadOptions(destination: place)
/// options.requiresSuccess = true
/// options.permissions = 0o640
/// let task = session.downloadTask(request, options: options)
/// ```
public struct DownloadOptions: Sendable {
    /// The `file` URL the complete file gets, in one step. Until then it is in the same folder under another
    /// name. `nil`: it stays in ``Configuration/temporaryDirectory``, and goes with the last reference to
    /// its ``DownloadedFile``.
    public var destination: URL?
    /// Whether a file that is there already is replaced; otherwise the load ends with
    /// ``LoadError/Reason/cannotMoveFile``.
    public var overwrites = true
    /// Whether content and name are on the disk when the load completes (`fsync`): for what must survive a
    /// loss of power.
    public var synchronizes = false
    /// The permissions of the complete file (POSIX mode bits, such as `0o640`; those beyond `0o777` are ignored). `nil`:
    /// those of the file it replaces, or those of other new files: `0o666` without the bits of the process's umask. File
    /// systems without permissions ignore them.
    ///
    /// Until it is at its ``destination``, the file is readable by its owner alone. ``DownloadedFile/move(to:overwriting:permissions:synchronizing:)``
    /// has a parameter of its own.
    public var permissions: UInt16?
    /// Whether the load ends with ``LoadError/Reason/unacceptableStatus`` unless the status is 2xx; the error carries the
    /// response (``LoadError/response``). Otherwise the page that comes with an error status is what is saved, as any
    /// response is. A download that is resumed never takes a page for content.
    public var requiresSuccess = false
    /// The `file` URL, in the folder of ``destination``, that takes what was received of a content which no token can
    /// be made for (no strong validator), if the load ends early. `nil`, the default: it is removed.
    package var leftover: URL?

    /// Options; what is not named here is set afterwards.
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
/// While it is temporary, only its owner may read it, and it is removed with the last reference to this
/// object. Moved, or downloaded to a destination, it stays.
public final class DownloadedFile: Sendable, CustomStringConvertible {
    /// What was answered.
    public let response: Response
    /// The number of bytes.
    public let size: Int64
    private let file: FileWriter
    private let place: Lock<URL>

    /// Where it is now.
    public var url: URL { place.withLock { $0 } }

    init(_ response: Response, _ file: FileWriter, _ size: Int64) {
        self.response = response
        self.size = size
        self.file = file
        place = Lock(URL(filePath: file.path))
    }

    /// Gives it its name, in one step. On another file system it is copied first, and what is copied gets the
    /// name in one step. Blocks as long as the file system does.
    ///
    /// A link is replaced itself, and not what it leads to. Of a file that is replaced only the permissions stay: another
    /// name of it (a hard link) keeps the old content, and owner, access lists and extended attributes are those of a new
    /// file.
    /// - Parameters:
    ///   - destination: a `file` URL; its folder must exist.
    ///   - overwriting: whether a file that is there already is replaced.
    ///   - permissions: see ``DownloadOptions/permissions``. With `nil`, a file that was moved before keeps its own, unless it
    ///     replaces another.
    ///   - synchronizing: whether content and name are on the disk when this returns.
    /// - Throws: ``LoadError/Reason/cannotMoveFile``; the file is still where it was.
    public func move(
        to destination: URL, overwriting: Bool = true, permissions: UInt16? = nil, synchronizing: Bool = false
    ) throws(LoadError) {
        let path = destination.path(percentEncoded: false)
        let permissions = permissions.map(FileWriter.Permissions.exactly) ?? .usual
        do throws(IOFailure) {
            let current = url.path(percentEncoded: false)
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
            throw LoadError(.cannotMoveFile, phase: .receiving, party: .system, detail: error.words).at(response.url)
        }
        place.withLock { $0 = destination }
    }

    /// Reads it. Blocks.
    /// - Parameter limit: the most bytes; ``LoadError/Reason/bodyTooLarge`` beyond.
    public func content(upTo limit: Int) throws(LoadError) -> Data {
        guard size <= limit else { throw .tooLarge(limit) }
        do throws(IOFailure) { return Data(try file.content(upTo: Int(size))) } catch {
            throw LoadError(file: error, .receiving)
        }
    }

    /// One line: `file /tmp/x 1024`.
    public var description: String { "file \(url.path(percentEncoded: false)) \(size)" }
}

extension IOFailure {
    /// What went wrong, in words.
    var words: String {
        if case .system(let number) = code { SystemError.words(number) } else { "\(code)" }
    }
}

extension String {
    /// The folder of the file at this path.
    var folder: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
