// SPDX-License-Identifier: Apache-2.0

/// The path of an ftp URL (RFC 1738 §3.2.2) as bytes for a command. Never contains a line break, which would inject
/// another command.
package struct FTPPath: Sendable, Hashable {
    /// The path relative to the user's initial folder, unless it begins with "/". Empty for that folder itself.
    package let bytes: [UInt8]
    package let isDirectory: Bool
    /// True for `;type=a`: a text file, converted to local line ends.
    package let isText: Bool

    /// - Parameter path: the URL's path, percent-encoded, with its leading "/".
    /// - Throws: `local` if the decoded path contains CR, LF or NUL, or the type is unknown.
    package init(_ path: String) throws(WireViolation) {
        var path = Substring(path)
        if path.utf8.first == UInt8(ascii: "/") { path = path.dropFirst() }
        var type: Substring?
        if let mark = path.utf8.lastIndex(of: UInt8(ascii: ";")), path[mark...].lowercased().hasPrefix(";type=") {
            type = path[mark...].dropFirst(6)
            path = path[..<mark]
        }
        switch type?.lowercased() {
        case nil, "i": (isText, isDirectory) = (false, path.isEmpty || path.hasSuffix("/"))
        case "a": (isText, isDirectory) = (true, false)
        case "d": (isText, isDirectory) = (false, true)
        default: throw .local(.invalidFTPArgument, "RFC 1738 3.2.2")
        }
        guard let decoded = PercentCoding.decode(Array(path.utf8)) else { throw .local(.invalidURL, "RFC 3986 2.1") }
        try FTPCommand.check(decoded)
        bytes = decoded
    }
}

/// Encodes commands.
enum FTPCommand {
    /// Returns a command line (RFC 959 §4.1), in UTF-8 (RFC 2640).
    static func line(_ verb: String, _ argument: [UInt8] = []) throws(WireViolation) -> [UInt8] {
        try check(argument)
        var line = Array(verb.utf8)
        if !argument.isEmpty { line += [UInt8(ascii: " ")] + argument }
        return line + [.cr, .lf]
    }

    static func check(_ argument: [UInt8]) throws(WireViolation) {
        guard !argument.contains(where: { $0 == .cr || $0 == .lf || $0 == 0 }) else {
            throw .local(.invalidFTPArgument, "RFC 959 5.3.2")
        }
    }
}
