import Synchronization
import URLLoadingIO

/// Collects every load of a session in an ``HTTPArchive``.
///
/// ```swift
/// let archiver = HTTPArchiver()
/// configuration.observers = [archiver]
/// …
/// try archiver.archive.write(to: URL(filePath: "/tmp/session.har"))
/// ```
/// A load is in the archive when it is over, completed or failed.
public final class HTTPArchiver: LoadObserver {
    private let state: Lock<HTTPArchive>
    /// For what goes into an archive, not for its entries.
    private let form: HTTPArchive
    private let most: Int

    /// - Parameters:
    ///   - contents: what goes into the archive besides the usual.
    ///   - maximumEntries: the oldest beyond it are dropped; at least 1.
    ///   - creator: the program's name, for whoever reads the file.
    ///   - version: the program's version.
    public init(
        contents: HTTPArchive.Contents = [], maximumEntries: Int = 10_000, creator: String = "URLLoading",
        version: String = "0.1"
    ) {
        form = HTTPArchive(contents: contents, creator: creator, version: version)
        state = Lock(HTTPArchive(contents: contents, creator: creator, version: version))
        most = max(1, maximumEntries)
    }

    /// What was collected up to now.
    public var archive: HTTPArchive { state.withLock { $0 } }

    public func observe(_ event: LoadEvent, of load: LoadIdentity) {
        guard case .metrics(let metrics) = event else { return }
        let entries = form.entries(of: metrics)
        state.withLock { archive in
            archive.append(entries)
            archive.removeOldest(beyond: most)
        }
    }
}
