// SPDX-License-Identifier: Apache-2.0

// The file name of `-O`. It comes from the given URL, never from the target of a redirect: a server must not choose
// which local file is overwritten.

import FoundationEssentials
import URLLoading
import URLLoadingWire

enum FileName {
    /// Returns the last component of the path, decoded, without characters that lead out of the folder, hide the file
    /// or reach a terminal as a control sequence; `index.html` for a path without one.
    /// - Parameter hasQuery: true to include the query, as in wget.
    static func make(for url: URL, hasQuery: Bool = false) -> String {
        let path = url.path(percentEncoded: true)
        var last = path.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) ?? ""
        if hasQuery, let query = url.query(percentEncoded: true) {
            last = (last.isEmpty ? "index.html" : last) + "?" + query
        }
        return safe(last)
    }

    /// Returns a component of a path, decoded and without what could lead elsewhere; `index.html` for an empty one.
    static func safe(_ component: String) -> String {
        let decoded = decoding(component) ?? component
        var name = String(String.UnicodeScalarView(decoded.unicodeScalars.map { isSafe($0) ? $0 : "_" }))
        if name.hasPrefix(".") || name.hasPrefix("-") { name = "_" + name.dropFirst() }
        name = name.prefix(utf8Count: 255)
        return name.isEmpty ? "index.html" : name
    }

    /// Makes the names distinct: each repeated name gets a suffix, `.1` upwards.
    /// - Parameters:
    ///   - names: in the order of the URLs; `nil` for a URL without one.
    ///   - isTaken: returns true for a name that must not be used.
    static func distinct(
        _ names: [String?], isTaken: (String) -> Bool = { _ in false }
    ) -> [(wanted: String, own: String)?] {
        let wanted = Set(names.compactMap { $0 })
        var given: Set<String> = []
        return names.map { name in
            guard let name else { return nil }
            var own = name
            var number = 0
            while given.contains(own) || number > 0 && wanted.contains(own) || isTaken(own) {
                number += 1
                own = numbered(name, number)
            }
            given.insert(own)
            return (name, own)
        }
    }

    /// Returns the name that a Content-Disposition field suggests, made safe like one from a URL; `nil` without a
    /// suggestion.
    static func suggested(_ disposition: String) -> String? {
        let name = SuggestedName.make(disposition: disposition, nil, fallback: "")
        return name.isEmpty ? nil : name
    }

    /// Returns the path, with the first numeric suffix that makes it unused if the file exists.
    /// - Parameter isTaken: returns true for a path that must not be used, although there is no file.
    static func free(_ path: String, isTaken: (String) -> Bool = { _ in false }) -> String {
        var own = path
        var number = 0
        while isTaken(own) || FileCheck.exists(own) {
            number += 1
            own = numbered(path, number)
        }
        return own
    }

    /// Keeps the name within 255 bytes, the limit of file systems.
    private static func numbered(_ name: String, _ number: Int) -> String {
        var name = name
        // The limit applies to the last component of the path.
        func size(_ name: String) -> Int { name.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.count }
        while size(name) + ".\(number)".utf8.count > 255 { name.removeLast() }
        return "\(name).\(number)"
    }

    /// Decodes percent escapes. Returns `nil` if the decoded bytes are not UTF-8.
    private static func decoding(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(Substring(rest.prefix(2)), radix: 16) else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: false
        default: scalar != "/" && scalar != "\\"
        }
    }
}

/// The folders of wget's `-x`, `-nH`, `--cut-dirs` and `--protocol-directories`: `http/host:port/a/b/`.
struct URLFolders: Sendable, Hashable {
    /// True for `-x`; the other options alone name no folders.
    var isForced = false
    var hasScheme = false
    var hasHost = true
    /// The number of folders of the path that are left out.
    var cut = 0

    /// Returns the folders with a slash after each.
    func path(for url: URL) -> String {
        guard isForced else { return "" }
        var folders: [String] = []
        if hasScheme, let scheme = url.scheme { folders.append(scheme.lowercased()) }
        if hasHost, let host = url.host() { folders.append(host.lowercased() + (url.port.map { ":\($0)" } ?? "")) }
        folders += url.path(percentEncoded: true).split(separator: "/", omittingEmptySubsequences: false).dropLast()
            .filter { !$0.isEmpty }.dropFirst(cut).map { String($0) }
        return folders.map { FileName.safe($0) + "/" }.joined()
    }
}
