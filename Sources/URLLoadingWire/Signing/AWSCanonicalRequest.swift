// SPDX-License-Identifier: Apache-2.0

/// The texts of AWS Signature Version 4: the canonical request, and the parts of its URL and its fields.
package enum AWSCanonicalRequest {
    /// How the path of a URL becomes the canonical one.
    package enum PathRule: Sendable, Hashable {
        /// As S3 does: dot segments and repeated slashes stay, each byte is escaped once.
        case asSent
        /// As all other services do: dot segments and repeated slashes are removed, and what the URL has escaped is
        /// escaped again.
        case normalized
    }

    /// Returns the canonical request.
    /// - Parameters:
    ///   - target: path and query as they are sent.
    ///   - fields: the signed fields; names in any case.
    ///   - payload: the hexadecimal SHA-256 of the body, or a word in its place.
    package static func text(
        method: String, target: String, fields: [(name: String, value: String)], payload: String, rule: PathRule
    ) -> String {
        let fields = canonical(fields)
        return [
            method, path(target, rule), query(target), fields.map { "\($0.name):\($0.value)\n" }.joined(),
            fields.map(\.name).joined(separator: ";"), payload,
        ].joined(separator: "\n")
    }

    /// Returns the names of the signed fields, in lower case and in order.
    package static func names(_ fields: [(name: String, value: String)]) -> String {
        canonical(fields).map(\.name).joined(separator: ";")
    }

    static func path(_ target: String, _ rule: PathRule) -> String {
        let slash = UInt8(ascii: "/")
        let sent = Array(target.utf8.prefix { $0 != UInt8(ascii: "?") })
        switch rule {
        case .asSent:
            // An escaped slash is no separator.
            return sent.split(separator: slash, omittingEmptySubsequences: false)
                .map { PercentCoding.encode(PercentCoding.decode($0) ?? Array($0)) }.joined(separator: "/")
        case .normalized:
            var segments: [ArraySlice<UInt8>] = []
            for segment in sent.split(separator: slash) where !segment.elementsEqual(".".utf8) {
                if segment.elementsEqual("..".utf8) { _ = segments.popLast() } else { segments.append(segment) }
            }
            let path = segments.map { "/" + PercentCoding.encode($0) }.joined()
            // Unlike RFC 3986 §5.2.4, AWS keeps no slash for a last segment of dots.
            return path.isEmpty ? "/" : path + (sent.last == slash ? "/" : "")
        }
    }

    static func query(_ target: String) -> String {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return "" }
        var pairs: [(name: String, value: String)] = []
        for pair in target.utf8[target.utf8.index(after: mark)...].split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            pairs.append((coded(parts[0]), parts.count > 1 ? coded(parts[1]) : ""))
        }
        let sorted = pairs.sorted { ($0.name.bytes, $0.value.bytes) < ($1.name.bytes, $1.value.bytes) }
        return sorted.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    /// Decodes a part of the query, where a plus sign is a space, and escapes it again.
    private static func coded(_ part: Substring.UTF8View) -> String {
        let spaced = part.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        return PercentCoding.encode(PercentCoding.decode(spaced) ?? spaced)
    }

    /// Returns the fields in order of their names, one for each name; runs of blanks in values are single spaces.
    private static func canonical(_ fields: [(name: String, value: String)]) -> [(name: String, value: String)] {
        var values: [String: [String]] = [:]
        for field in fields {
            let words = field.value.split { $0 == " " || $0 == "\t" }
            values[field.name.lowercasedASCII, default: []].append(words.joined(separator: " "))
        }
        return values.map { ($0.key, $0.value.joined(separator: ",")) }.sorted { $0.0.bytes < $1.0.bytes }
    }
}

extension String {
    fileprivate var bytes: Bytes { Bytes(text: self) }
}

/// A text that is ordered by its bytes.
private struct Bytes: Comparable {
    let text: String
    static func < (a: Bytes, b: Bytes) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }
}
