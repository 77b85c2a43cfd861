// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The transactions of loads as an HTTP Archive (HAR 1.2), which browsers' developer tools and other viewers show as a
/// waterfall.
///
/// ```swift
/// var archive = HTTPArchive()
/// archive.add(try await task.metrics)
/// try archive.write(to: URL(filePath: "/tmp/load.har"))
/// ```
/// ``HTTPArchiver`` fills one from every load of a session.
///
/// Each transaction with an `http` or `https` URL is an entry; a failed one has the reason in `_error`, and
/// a response that breaks rules names them in `_violations`; `_tls` has what the handshake agreed on. A load that
/// ended before its first request has no entry. Bodies and pages are never included. The values of secret fields and of
/// secret query parameters, and the userinfo of URLs, are left out unless ``Contents/secrets`` is set; the guide on
/// metrics lists their names. Paths and all other parameters are included: check an archive for secrets before you pass
/// it on.
public struct HTTPArchive: Sendable {
    /// Optional contents of an archive.
    public struct Contents: OptionSet, Sendable, Hashable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The values of secret fields and query parameters, which are `(removed)` otherwise, parsed cookies, and the
        /// userinfo of URLs.
        public static let secrets = Contents(rawValue: 1)
    }

    private let contents: Contents
    private let creator: HAR.Tool
    private var entries: [HAR.Entry] = []

    /// Creates an empty archive.
    /// - Parameters:
    ///   - contents: optional contents.
    ///   - creator: the program's name, for readers of the file.
    ///   - version: the program's version.
    public init(contents: Contents = [], creator: String = "URLLoading", version: String = "0.2") {
        self.contents = contents
        self.creator = HAR.Tool(name: creator, version: version)
    }

    /// The number of entries.
    public var count: Int { entries.count }
    /// True if there are no entries.
    public var isEmpty: Bool { entries.isEmpty }

    /// Adds an entry for each transaction of a load.
    public mutating func add(_ metrics: LoadMetrics) { append(entries(of: metrics)) }

    func entries(of metrics: LoadMetrics) -> [HAR.Entry] {
        let writer = HAREntryWriter(showsSecrets: contents.contains(.secrets))
        return metrics.transactions.filter { ["http", "https"].contains($0.request.url.scheme?.lowercased()) }.map(
            writer.entry)
    }

    mutating func append(_ new: [HAR.Entry]) { entries += new }
    /// Adds the entries of another archive.
    package mutating func append(_ other: HTTPArchive) { entries += other.entries }
    mutating func removeOldest(beyond most: Int) {
        if entries.count > most { entries.removeFirst(entries.count - most) }
    }

    /// The archive as JSON in UTF-8, its entries in the order in which they began.
    public var json: Data {
        let log = HAR.Log(creator: creator, entries: entries.sorted { $0.began < $1.began })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Strings, integers and finite fractions only, so the encoding cannot fail.
        return (try? encoder.encode(HAR(log: log))) ?? Data()
    }

    /// Writes the archive to a file atomically. Blocks.
    /// - Parameter url: a `file` URL.
    /// - Throws: the error of the file system.
    public func write(to url: URL) throws { try json.write(to: url, options: .atomic) }
}
