// What a server may call a file of ours. Its words are those of a stranger: they name a file, never a
// place (RFC 6266 §4.3).

import Foundation
import URLLoadingWire

enum SuggestedFilename {
    /// - Parameter stated: the value of Content-Disposition.
    static func make(stated: String?, _ url: URL?) -> String {
        let last = url?.path(percentEncoded: true).split(separator: "/").last.flatMap { String($0).removingPercentEncoding }
        for name in [stated.flatMap(name(in:)), last] {
            if let name = name.flatMap(safe) { return name }
        }
        return "Unknown"
    }

    /// The extended parameter goes before the plain one (RFC 6266 §4.3).
    private static func name(in disposition: String) -> String? {
        // A disposition is written as the part of a media type behind its slash: a token, then parameters.
        guard let parsed = MediaType("disposition/" + disposition) else { return nil }
        return parsed["filename*"].flatMap(decoded) ?? parsed["filename"]
    }

    /// `UTF-8'en'na%C3%AFve.txt` (RFC 8187 §3.2).
    private static func decoded(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
        return String(parts[2]).removingPercentEncoding
    }

    /// `nil` if nothing is left of it.
    private static func safe(_ name: String) -> String? {
        // A path of either kind stands for its last part.
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last.map { Array($0) } ?? []
        let scalars = last.filter { isHarmless($0) }.drop { $0 == "." || $0 == " " || $0 == "-" }
        var name = String(String.UnicodeScalarView(scalars))
        while name.utf8.count > 255 { name.removeLast() }
        return name.isEmpty ? nil : name
    }

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: false
        default: true
        }
    }
}
