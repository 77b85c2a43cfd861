// SPDX-License-Identifier: Apache-2.0

// In this folder: the error of every parser: which rule was broken, by whom, where

/// A violation of a protocol rule by received bytes, or by a message that the caller asked to send.
///
/// It states the responsible party, the rule and, where helpful, the offset. It never contains the bytes themselves:
/// they may hold a credential or a cookie, and errors end up in logs.
///
/// ```swift
/// do { _ = try Origin.Host("exa mple") } catch { print(error) }
/// // invalidHost: the host is neither a name nor an address (RFC 3986 3.2.2)
/// ```
public struct WireViolation: Error, Sendable, Hashable, CustomStringConvertible {
    /// The party that broke the rule.
    public enum Party: Sendable, Hashable {
        /// The caller passed something that is not allowed.
        case local
        /// The peer sent it.
        case remote
    }

    /// The party that broke the rule.
    public let party: Party
    /// The rule that was broken.
    public let code: Code
    /// The offset in bytes from the start of the text, of the head or of the body, if known. A body is counted as it is
    /// on the connection, with the sizes of its chunks.
    public let offset: Int?
    /// True if the offset counts from the start of the body.
    package private(set) var isInBody = false
    /// The section that states the rule, as in `"RFC 9112 5.1"`.
    public let section: String

    /// Creates a violation; `section` is for the reader and does not affect decisions.
    public init(_ party: Party, _ code: Code, at offset: Int? = nil, section: String = "") {
        self.party = party
        self.code = code
        self.offset = offset
        self.section = section
    }

    /// One line without secrets: the code, the rule that was broken as a sentence, the offset, the section.
    public var description: String { "\(code.rawValue): \(explanation)" }

    /// Returns this violation with its offset counted from the start of the body.
    /// - Parameter start: the number of bytes of the body before the place that the offset counts from.
    func inBody(after start: Int64) -> WireViolation {
        var violation = WireViolation(party, code, at: Int(clamping: start) &+ (offset ?? 0), section: section)
        violation.isInBody = true
        return violation
    }
}

extension WireViolation {
    static func remote(_ code: Code, at offset: Int? = nil, _ section: String) -> WireViolation {
        WireViolation(.remote, code, at: offset, section: section)
    }

    static func local(_ code: Code, at offset: Int? = nil, _ section: String) -> WireViolation {
        WireViolation(.local, code, at: offset, section: section)
    }
}

/// The violations of one response, which are distinct. A reference that is null for almost all responses: a head is
/// copied several times in each load, and a null reference is not counted.
package struct WireViolations: Sendable, Equatable {
    private final class List: Sendable {
        let all: [WireViolation]
        init(_ all: [WireViolation]) { self.all = all }
    }
    private var list: List?

    package init(_ all: [WireViolation] = []) { list = all.isEmpty ? nil : List(all) }

    package var all: [WireViolation] { list?.all ?? [] }
    package var isEmpty: Bool { list == nil }

    /// These and those of `others` that are not among them.
    func adding(_ others: WireViolations) -> WireViolations {
        guard !others.isEmpty else { return self }
        let all = all
        return WireViolations(all + others.all.filter { !all.contains($0) })
    }

    package static func == (a: WireViolations, b: WireViolations) -> Bool { a.all == b.all }
}
