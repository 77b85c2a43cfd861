// SPDX-License-Identifier: Apache-2.0

/// A server's reply to a command (RFC 959 §4.2).
package struct FTPReply: Sendable, Hashable, CustomStringConvertible {
    /// The reply code: three digits, the first from 1 to 5.
    package let code: Int
    /// The text of the lines, without codes and line ends.
    package let lines: [String]

    package init(_ code: Int, _ lines: [String]) {
        self.code = code
        self.lines = lines
    }

    /// The class of reply, given by the first digit.
    package enum Kind: Int, Sendable {
        case preliminary = 1
        case completed, intermediate, transientFailure, permanentFailure
    }
    package var kind: Kind { Kind(rawValue: code / 100) ?? .permanentFailure }

    /// The text of the last line, the one meant for machines, if any is.
    package var text: String { lines.last ?? "" }

    /// The code only: servers repeat names and passwords in the text.
    package var description: String { "\(code) (\(lines.count) lines)" }
}

extension WireViolation.Code {
    /// A reply that violates the grammar of RFC 959 §4.2.
    public static let malformedFTPReply = Self(rawValue: "malformedFTPReply")
    /// A reply larger than the limit in bytes.
    public static let ftpReplyTooLarge = Self(rawValue: "ftpReplyTooLarge")
    /// A path, user, password or account with a line break or NUL, which a command cannot carry.
    public static let invalidFTPArgument = Self(rawValue: "invalidFTPArgument")
}
