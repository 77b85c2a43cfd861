// SPDX-License-Identifier: Apache-2.0

// The file name under which a response may be saved. The server's name is a suggestion and never a path:
// no folder, no control character, no hidden file, no name that reads as a command-line option.

package import FoundationEssentials
import URLLoadingWire

package enum SuggestedName {
    /// - Parameters:
    ///   - disposition: the value of Content-Disposition.
    ///   - url: the URL whose last component is used without a stated name.
    ///   - fallback: the name used without any other.
    package static func make(disposition: String?, _ url: URL?, fallback: String) -> String {
        let last = url?.path(percentEncoded: true).split(separator: "/").last.flatMap { decoded(String($0)) }
        for name in [disposition.flatMap { ContentDisposition($0)?.fileName }, last] {
            if let name = name.flatMap(safe) { return name }
        }
        return fallback
    }

    /// Returns the name of a response of the classic API: the stated name; or the last component of the URL or else its
    /// host, with the extension of the media type where it has none; or `Unknown`.
    package static func classic(disposition: String?, _ url: URL?, mediaType: String?) -> String {
        let stated = make(disposition: disposition, nil, fallback: "")
        guard stated.isEmpty else { return stated }
        let last = make(disposition: nil, url, fallback: "")
        if last.contains(".") { return last }
        let name = !last.isEmpty ? last : (url?.host(percentEncoded: false)).flatMap(safe) ?? "Unknown"
        guard let suffix = mediaType.flatMap(FileTypes.fileExtension) else { return name }
        let full = "\(name).\(suffix)"
        return full.utf8.count > 255 ? name : full
    }

    private static func decoded(_ text: String) -> String? {
        PercentCoding.decode(Array(text.utf8)).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// Returns the safe part of a name; `nil` if nothing is left.
    private static func safe(_ name: String) -> String? {
        // Only the last component of a Unix or Windows path is kept.
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last.map { Array($0) } ?? []
        let scalars = last.filter { isSafeInFileName($0) }.drop { $0 == "." || $0 == " " || $0 == "-" }
        let name = String(String.UnicodeScalarView(scalars)).prefix(utf8Count: 255)
        return name.isEmpty ? nil : name
    }

    private static func isSafeInFileName(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: false
        default: true
        }
    }
}

extension Response {
    /// A safe file name for the body: from Content-Disposition (RFC 6266), else the last component of the URL, else
    /// `download`. Never a path, whatever the server sends; at most 255 bytes of UTF-8.
    public var suggestedFileName: String {
        SuggestedName.make(disposition: http?.headers["Content-Disposition"], url, fallback: "download")
    }
}
