// SPDX-License-Identifier: Apache-2.0

/// A media type with its parameters (RFC 9110 §8.3.1).
///
/// ```swift
/// let type = MediaType("Text/HTML; Charset=\"utf-8\"")
/// type?.essence   // "text/html"
/// type?.charset   // "utf-8"
/// ```
public struct MediaType: Sendable, Hashable, CustomStringConvertible {
    /// One parameter: the name in lower case, the value unquoted.
    public struct Parameter: Sendable, Hashable {
        /// The name, in lower case.
        public let name: String
        /// The value.
        public let value: String
    }

    /// The type, in lower case.
    public let type: String
    /// The subtype, in lower case.
    public let subtype: String
    /// The parameters in order; the first of equal names counts.
    public let parameters: [Parameter]

    /// Parses a Content-Type field as browsers do (WHATWG MIME Sniffing, "parse a MIME type"): a parameter that
    /// violates the grammar is skipped. `nil` if type or subtype violates it.
    public init?(_ text: String) {
        var scanner = ParameterScanner(text)
        guard let (type, subtype) = scanner.essence() else { return nil }
        var parameters: [Parameter] = []
        while scanner.take(";") {
            if let (name, value) = scanner.lenientParameter() {
                parameters.append(Parameter(name: name.lowercasedASCII, value: value))
            }
        }
        guard scanner.isAtEnd else { return nil }
        self.init(type, subtype, parameters)
    }

    /// Parses a value that is to be sent; `nil` unless all of it conforms to the grammar (RFC 9110 §8.3.1).
    package init?(strict text: String) {
        var scanner = ParameterScanner(text)
        guard let (type, subtype) = scanner.essence() else { return nil }
        var parameters: [Parameter] = []
        while !scanner.isAtEnd {
            guard scanner.take(";") else { return nil }
            scanner.skipBlanks()
            // RFC 9110 §5.6.6 permits an empty parameter between two semicolons.
            guard let name = scanner.token() else { continue }
            guard scanner.take("="), let value = scanner.tokenOrQuoted() else { return nil }
            parameters.append(Parameter(name: name.lowercasedASCII, value: value))
            scanner.skipBlanks()
        }
        self.init(type, subtype, parameters)
    }

    private init(_ type: String, _ subtype: String, _ parameters: [Parameter]) {
        self.type = type.lowercasedASCII
        self.subtype = subtype.lowercasedASCII
        self.parameters = parameters
    }

    /// Type and subtype: `text/html`.
    public var essence: String { "\(type)/\(subtype)" }

    /// The `charset` parameter in lower case; it is case-insensitive (RFC 9110 §8.3.2).
    public var charset: String? { self["charset"]?.lowercasedASCII }

    /// The value of the first parameter of that name, ignoring letter case.
    public subscript(_ name: String) -> String? {
        let wanted = name.lowercasedASCII
        return parameters.first { $0.name == wanted }?.value
    }

    /// The media type as sent, with values quoted unless they are tokens.
    public var description: String {
        parameters.reduce(into: essence) { text, parameter in
            text += "; \(parameter.name)=\(parameter.value.quotedUnlessToken)"
        }
    }
}

extension ParameterScanner {
    /// Reads type and subtype, and skips the blanks after them.
    fileprivate mutating func essence() -> (type: String, subtype: String)? {
        guard let type = token(), take("/"), let subtype = token() else { return nil }
        skipBlanks()
        return (type, subtype)
    }

    /// Reads the parameter up to the next semicolon; `nil` if it violates the grammar. The semicolon before it has been
    /// consumed.
    fileprivate mutating func lenientParameter() -> (name: String, value: String)? {
        skipBlanks()
        let name = token()
        guard take("=") else {
            skip(to: ";")
            return nil
        }
        let value = take("\"") ? openQuoted() : text(to: ";")
        skip(to: ";")
        guard let name, let value else { return nil }
        return (name, value)
    }
}

extension String {
    /// Returns the longest beginning of whole characters that has at most `limit` bytes of UTF-8.
    package func prefix(utf8Count limit: Int) -> String {
        guard utf8.count > limit else { return self }
        // Forwards: to remove the last flag of a row of flags, the whole row is read.
        var end = startIndex
        while end < endIndex {
            let next = index(after: end)
            guard utf8.distance(from: startIndex, to: next) <= limit else { break }
            end = next
        }
        return String(self[..<end])
    }

    /// The text with A-Z mapped to a-z and nothing else changed.
    var lowercasedASCII: String {
        guard utf8.contains(where: { $0 != $0.lowered }) else { return self }
        return String(decoding: utf8.map(\.lowered), as: UTF8.self)
    }

    /// The text as a token if possible, otherwise as a quoted string (RFC 9110 §5.6.4).
    var quotedUnlessToken: String {
        if !isEmpty, utf8.allSatisfy({ ByteSet.token.contains($0) }) { return self }
        let escaped = unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }
        return "\"\(escaped.joined())\""
    }
}
