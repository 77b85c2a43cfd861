import URLLoadingIO

/// What went wrong with the disk of a cache: loads go on, and less is kept.
public struct CacheProblem: Error, Sendable, CustomStringConvertible {
    /// The kinds.
    public enum Reason: Sendable, Hashable {
        /// The directory cannot be made or written to; nothing is kept there.
        case unwritable
        /// The directory belongs to somebody else, others may write to it, or it is a link; nothing is kept there.
        case unsafeDirectory
        /// No room on the disk, or the quota is used up. It is tried again later.
        case full
        /// The store was damaged. What could still be read was taken over into a new one, and the old one kept as
        /// `cache.sqlite.damaged`.
        case damaged
        /// A response belongs to one session, or to cookies that are in memory alone, so it must not be in a file;
        /// and the cache holds nothing in memory. A ``ResponseCache/memoryCapacity`` keeps it, or a ``CookieStore``
        /// with a file.
        case memoryOnly
        /// Anything else.
        case other
    }
    /// What kind it is.
    public let reason: Reason
    /// For people: what the system said.
    public let detail: String

    static let memoryOnly = CacheProblem(
        .memoryOnly,
        "what belongs to one session or to cookies in memory is never written to disk, and memoryCapacity is 0")

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    init(_ failure: IOFailure) {
        let reason: Reason = failure.isFull ? .full : failure.isForeign ? .unsafeDirectory : .unwritable
        if case .system(let number) = failure.code {
            self.init(reason, SystemError.words(number))
        } else {
            self.init(.other, "\(failure)")
        }
    }

    init(_ failure: DatabaseFailure) {
        let reason: Reason =
            switch failure.kind {
            case .full: .full
            case .damaged: .damaged
            case .unwritable: .unwritable
            case .busy, .other: .other
            }
        self.init(reason, failure.description)
    }

    /// One line.
    public var description: String { "\(reason): \(detail)" }
}
