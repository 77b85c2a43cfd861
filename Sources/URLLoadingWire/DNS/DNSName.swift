// SPDX-License-Identifier: Apache-2.0

// In this folder: questions to name servers about HTTPS records, and what the answers say

/// A domain name as it is sent (RFC 1035 §3.1): labels behind their lengths, in lower case, and the empty label of the
/// root.
package struct DNSName: Sendable, Hashable, CustomStringConvertible {
    package let bytes: [UInt8]

    private static let mostBytes = 255
    private static let mostBytesOfLabel = 63
    static let root = DNSName(checked: [0])

    private init(checked bytes: [UInt8]) { self.bytes = bytes }

    /// Creates a name from text in ASCII, with or without the final dot; `nil` if it cannot be sent.
    package init?(_ text: String) {
        var rest = Substring(text).utf8
        if rest.last == UInt8(ascii: ".") { rest.removeLast() }
        self.init(labels: rest.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init))
    }

    /// Returns `nil` if a label is empty or too long, or the name is.
    init?(labels: [[UInt8]]) {
        var bytes: [UInt8] = []
        for label in labels {
            guard (1...Self.mostBytesOfLabel).contains(label.count) else { return nil }
            bytes.append(UInt8(label.count))
            bytes += label.map(\.lowered)
        }
        bytes.append(0)
        guard bytes.count <= Self.mostBytes else { return nil }
        self.bytes = bytes
    }

    package var labels: [[UInt8]] {
        var labels: [[UInt8]] = []
        var rest = bytes[...]
        while let length = rest.popFirst(), length > 0 {
            labels.append(Array(rest.prefix(Int(length))))
            rest = rest.dropFirst(Int(length))
        }
        return labels
    }

    /// The name as the text of a host; `nil` for the root, and for bytes that no host has.
    package var host: String? {
        let labels = labels
        guard !labels.isEmpty, labels.allSatisfy({ $0.allSatisfy(Self.isOfHost) }) else { return nil }
        return labels.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".")
    }

    private static func isOfHost(_ byte: UInt8) -> Bool {
        byte.isDigit || byte.isAlpha || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    package var description: String { host ?? (self == .root ? "." : "(\(bytes.count) bytes)") }
}
