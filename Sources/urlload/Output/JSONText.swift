// SPDX-License-Identifier: Apache-2.0

// The part of JSON that reports need, with fields in a fixed order (RFC 8259).

enum JSONText: Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    /// A time in seconds.
    case seconds(Double)
    case text(String)
    case list([JSONText])
    case object([(String, JSONText)])

    static func optional(_ text: String?) -> JSONText { text.map { .text($0) } ?? .null }
    static func optional(_ seconds: Double?) -> JSONText { seconds.map { .seconds($0) } ?? .null }

    var description: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): "\(value)"
        case .seconds(let value): Self.microseconds(value)
        case .text(let value): Self.quoted(value)
        case .list(let values): "[" + values.map(\.description).joined(separator: ",") + "]"
        case .object(let fields):
            "{" + fields.map { Self.quoted($0) + ":" + $1.description }.joined(separator: ",") + "}"
        }
    }

    /// Formats seconds with six decimals, never with an exponent.
    private static func microseconds(_ seconds: Double) -> String {
        let count = Int64((max(0, seconds) * 1e6).rounded())
        let fraction = String(count % 1_000_000)
        return "\(count / 1_000_000)." + String(repeating: "0", count: 6 - fraction.count) + fraction
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
