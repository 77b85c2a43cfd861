/// What was wrong with bytes that were received, or with a message we were asked to send.
///
/// It names the guilty party, the rule and, where it helps, the offset. It never carries the
/// bytes themselves: they may hold a credential or a cookie, and errors end up in logs.
///
/// ```swift
/// do { _ = try Origin.Host("exa mple") } catch { print(error) }
/// // local: invalidHost (RFC 3986 3.2.2)
/// ```
public struct WireViolation: Error, Sendable, Hashable, CustomStringConvertible {
    /// Who broke the rule.
    public enum Party: Sendable, Hashable {
        /// The caller asked us to send, or gave us, something that is not allowed.
        case local
        /// The peer sent it.
        case remote
    }

    /// Who broke the rule.
    public let party: Party
    /// Which rule.
    public let code: Code
    /// Bytes from the start of the text or of the head, where known.
    public let offset: Int?
    /// The section that states the rule, as in `"RFC 9112 5.1"`.
    public let section: String

    /// Makes a violation; `section` is for the reader and takes no part in decisions.
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
