// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// A problem with the disk of a cache. Loads continue, and fewer responses are stored.
public struct CacheProblem: Error, Sendable, CustomStringConvertible {
    /// The kinds of problems.
    public enum Reason: Sendable, Hashable {
        /// The directory cannot be created or written to; nothing is stored there.
        case unwritable
        /// The directory belongs to another user, other users may write to it, or it is a link; nothing is stored
        /// there.
        case unsafeDirectory
        /// The disk is full, or the quota is used up. Later writes are attempted again.
        case full
        /// The store was damaged. Its readable entries were moved to a new one, and the old one is kept as
        /// `cache.sqlite.damaged` until ``ResponseCache/removeAll(since:)`` removes everything.
        case damaged
        /// A response belongs to one session, or to cookies that are in memory only, so it must not be written to a
        /// file; and the cache stores nothing in memory. A ``ResponseCache/memoryCapacity`` above 0 stores such
        /// responses; a ``CookieStore`` with a file allows those of its cookies on disk.
        case memoryOnly
        /// Any other problem.
        case other
    }
    /// The kind of the problem.
    public let reason: Reason
    /// A description for logs, with the system's message.
    public let detail: String

    static let memoryOnly = CacheProblem(
        .memoryOnly,
        "responses for one session or for cookies in memory are never written to disk, and memoryCapacity is 0")

    /// A flush has ended before a removal was on the disk.
    static let pending = CacheProblem(
        .other, "responses were not removed from the disk yet: another process holds the lock, or the disk is full")

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

    /// The kind and the detail, in one line.
    public var description: String { "\(reason): \(detail)" }
}
