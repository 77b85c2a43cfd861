// SPDX-License-Identifier: Apache-2.0

/// The file of credentials that AWS tools share: sections with settings.
///
/// ```
/// [default]
/// aws_access_key_id = AKIDEXAMPLE
/// aws_secret_access_key = …
/// ```
package struct AWSProfileFile: Sendable {
    private var sections: [String: [String: String]] = [:]

    /// Reads the text. Lines that begin with `#` or `;`, lines without an equals sign, and indented lines (the parts of
    /// nested settings) are skipped. The last of equal settings counts.
    package init(_ text: String) {
        var section: String?
        for line in text.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline) {
            guard let first = line.first, !"#; \t".contains(first) else { continue }
            if first == "[" {
                let name = line.dropFirst().prefix { $0 != "]" }
                section = String(Self.trimmed(name))
                continue
            }
            guard let section, let sign = line.firstIndex(of: "=") else { continue }
            let name = Self.trimmed(line[..<sign]).lowercased()
            sections[section, default: [:]][name] = String(Self.trimmed(line[line.index(after: sign)...]))
        }
    }

    /// Returns a setting of a profile; `nil` if it is missing or empty.
    package func value(_ name: String, of profile: String) -> String? {
        sections[profile]?[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the names of a profile's settings, in order.
    package func settings(of profile: String) -> [String] { (sections[profile] ?? [:]).keys.sorted() }

    package func contains(_ profile: String) -> Bool { sections[profile] != nil }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
