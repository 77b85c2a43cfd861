// SPDX-License-Identifier: Apache-2.0

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
/// A load is added to the archive when it has ended, completed or failed.
public final class HTTPArchiver: LoadObserver {
    private let state: Lock<HTTPArchive>
    /// An empty archive with the options of the archiver, which makes the entries.
    private let form: HTTPArchive
    private let most: Int

    /// Creates an archiver without entries.
    /// - Parameters:
    ///   - contents: optional contents.
    ///   - maximumEntries: the maximum number of entries, at least 1; beyond it the oldest are dropped.
    ///   - creator: the program's name, for readers of the file.
    ///   - version: the program's version.
    public init(
        contents: HTTPArchive.Contents = [], maximumEntries: Int = 10_000, creator: String = "URLLoading",
        version: String = "0.2"
    ) {
        form = HTTPArchive(contents: contents, creator: creator, version: version)
        state = Lock(HTTPArchive(contents: contents, creator: creator, version: version))
        most = max(1, maximumEntries)
    }

    /// The archive of all loads that have ended so far.
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
