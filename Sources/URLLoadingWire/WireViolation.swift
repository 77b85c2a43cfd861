// SPDX-License-Identifier: Apache-2.0

// In this folder: the error of every parser: which rule was broken, by whom, where

/// A violation of a protocol rule by received bytes, or by a message that the caller asked to send.
///
/// It states the responsible party, the rule and, where helpful, the offset. It never contains the bytes themselves:
/// they may hold a credential or a cookie, and errors end up in logs.
///
/// ```swift
/// do { _ = try Origin.Host("exa mple") } catch { print(error) }
/// // local: invalidHost (RFC 3986 3.2.2)
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
    /// The offset in bytes from the start of the text or of the head, if known.
    public let offset: Int?
    /// The section that states the rule, as in `"RFC 9112 5.1"`.
    public let section: String

    /// Creates a violation; `section` is for the reader and does not affect decisions.
    public init(_ party: Party, _ code: Code, at offset: Int? = nil, section: String = "") {
        self.party = party
        self.code = code
        self.offset = offset
        self.section = section
    }

    /// One line without secrets: party, code, offset, section.
    public var description: String {
        var line = "\(party): \(code.rawValue)"
        if let offset { line += " at byte \(offset)" }
        if !section.isEmpty { line += " (\(section))" }
        return line
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
