public import FoundationEssentials
import URLLoadingWire

/// What loads did, as an HTTP Archive (HAR 1.2): the file that browsers' developer tools and other viewers
/// open as a waterfall.
///
/// ```swift
/// var archive = HTTPArchive()
/// archive.add(try await task.metrics)
/// try archive.write(to: URL(filePath: "/tmp/load.har"))
/// ```
/// ``HTTPArchiver`` fills one from every load of a session.
///
/// Each transaction with an `http` or `https` URL is an entry, those that failed too, with the reason as
/// `_error`; a load that ended before it made a request has none. Bodies are never included, nor pages. Values
/// of secret fields and of secret query parameters, and the userinfo of URLs, are left out unless ``Contents/secrets`` asks
/// for them; their names are in the guide on metrics. What stands in paths is there, and so are parameters of other names:
/// look at an archive before you pass it on.
public struct HTTPArchive: Sendable {
    /// What goes into an archive besides the usual.
    public struct Contents: OptionSet, Sendable, Hashable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The values of secret fields and query parameters, which otherwise are `(removed)`, cookies taken apart, and the
        /// userinfo of URLs.
        public static let secrets = Contents(rawValue: 1)
    }

    private let contents: Contents
    private let creator: HAR.Tool
    private var entries: [HAR.Entry] = []

    /// An empty archive.
    /// - Parameters:
    ///   - contents: what goes into it besides the usual.
    ///   - creator: the program's name, for whoever reads the file.
    ///   - version: the program's version.
    public init(contents: Contents = [], creator: String = "URLLoading", version: String = "0.1") {
        self.contents = contents
        self.creator = HAR.Tool(name: creator, version: version)
    }

    /// How many entries there are.
    public var count: Int { entries.count }
    /// Whether there are none.
    public var isEmpty: Bool { entries.isEmpty }

    /// Adds an entry for each transaction of a load.
    public mutating func add(_ metrics: LoadMetrics) { append(entries(of: metrics)) }

    func entries(of metrics: LoadMetrics) -> [HAR.Entry] {
        let writer = HAREntryWriter(showsSecrets: contents.contains(.secrets))
        return metrics.transactions.filter { ["http", "https"].contains($0.request.url.scheme?.lowercased()) }.map(
            writer.entry)
    }

    mutating func append(_ new: [HAR.Entry]) { entries += new }
    mutating func removeOldest(beyond most: Int) {
        if entries.count > most { entries.removeFirst(entries.count - most) }
    }

    /// The archive as JSON in UTF-8, its entries in the order in which they began.
    public var json: Data {
        let log = HAR.Log(creator: creator, entries: entries.sorted { $0.began < $1.began })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Of strings, whole numbers and finite fractions: there is nothing that JSON has no form for.
        return (try? encoder.encode(HAR(log: log))) ?? Data()
    }

    /// Writes the archive to a file, which appears, or is replaced, when it is complete. Blocks.
    /// - Parameter url: of a file.
    /// - Throws: what the file system says against it.
    public func write(to url: URL) throws { try json.write(to: url, options: .atomic) }
}
