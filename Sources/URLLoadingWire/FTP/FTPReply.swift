/// What a server says to a command (RFC 959 4.2).
package struct FTPReply: Sendable, Hashable, CustomStringConvertible {
    /// Three digits, the first from 1 to 5.
    package let code: Int
    /// The lines' texts, without codes and ends.
    package let lines: [String]

    package init(_ code: Int, _ lines: [String]) {
        self.code = code
        self.lines = lines
    }

    /// What the first digit says.
    package enum Kind: Int, Sendable {
        case preliminary = 1
        case completed, intermediate, transientFailure, permanentFailure
    }
    package var kind: Kind { Kind(rawValue: code / 100) ?? .permanentFailure }

    /// The text of the last line: the one that is meant for machines, if any is.
    package var text: String { lines.last ?? "" }

    /// Without the text: servers repeat names and passwords in it.
    package var description: String { "\(code) (\(lines.count) lines)" }
}

extension WireViolation.Code {
    /// A reply out of the grammar of RFC 959 4.2.
    public static let malformedFTPReply = Self(rawValue: "malformedFTPReply")
    /// A reply beyond the limit in bytes.
    public static let ftpReplyTooLarge = Self(rawValue: "ftpReplyTooLarge")
    /// A path, user, password or account that a command cannot carry: with a line break or NUL in it.
    public static let invalidFTPArgument = Self(rawValue: "invalidFTPArgument")
}
