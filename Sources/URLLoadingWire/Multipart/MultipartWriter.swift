// SPDX-License-Identifier: Apache-2.0

/// One part of a form (RFC 7578 §4).
package struct MultipartFormPart: Sendable, Hashable {
    /// The name of the form field, any text.
    package var name: String
    /// The file name; with one, servers treat the part as a file.
    package var fileName: String?
    /// The media type. Without one, servers assume text/plain (RFC 7578 §4.4).
    package var contentType: String?

    package init(name: String, fileName: String? = nil, contentType: String? = nil) {
        self.name = name
        self.fileName = fileName
        self.contentType = contentType
    }
}

/// Writes the framing around the parts of a multipart/form-data body (RFC 7578).
///
/// ```swift
/// var writer = MultipartWriter(boundary: boundary)
/// try writer.begin(MultipartFormPart(name: "file", fileName: "a.txt", contentType: "text/plain"), into: &output)
/// // …the content, as many bytes as was said…
/// writer.end(into: &output)
/// ```
///
/// The content is not searched for the boundary: an unguessable boundary does not occur in it.
package struct MultipartWriter: Sendable {
    package let boundary: MultipartBoundary
    private var isFirst = true

    package init(boundary: MultipartBoundary) { self.boundary = boundary }

    /// The value of Content-Type for the whole body.
    package var contentType: String { "multipart/form-data; boundary=\(boundary.description.quotedUnlessToken)" }

    /// Ends the previous part, if any, and writes everything of this part except its content.
    ///
    /// Throws `malformedFieldValue`, and writes nothing, if the content type is not a media type, or a name contains a
    /// control character for which there is no escape.
    package mutating func begin(_ part: MultipartFormPart, into output: inout [UInt8]) throws(WireViolation) {
        let head = try Self.head(of: part)
        output += delimiter
        output += head
        isFirst = false
    }

    /// Ends the last part and the body.
    package mutating func end(into output: inout [UInt8]) {
        output += delimiter
        output += "--\r\n".utf8
        isFirst = false
    }

    private var delimiter: [UInt8] { Array((isFirst ? "--" : "\r\n--").utf8) + boundary.bytes }

    private static func head(of part: MultipartFormPart) throws(WireViolation) -> [UInt8] {
        var head = Array("\r\nContent-Disposition: form-data; name=\"".utf8)
        try appendEscaped(normalized(part.name), to: &head)
        if let fileName = part.fileName {
            head += "\"; filename=\"".utf8
            try appendEscaped(Array(fileName.utf8), to: &head)
        }
        head += "\"\r\n".utf8
        if let type = part.contentType {
            // A line break would let the sender inject a field or content.
            guard MediaType(strict: type) != nil else { throw .local(.malformedFieldValue, "RFC 7578 4.4") }
            head += "Content-Type: \(type)\r\n".utf8
        }
        return head + "\r\n".utf8
    }

    /// Returns a name with its line breaks as CRLF, as the rules demand for field names; file names keep theirs (WHATWG
    /// HTML, multipart/form-data encoding algorithm).
    private static func normalized(_ name: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var previous: UInt8 = 0
        for byte in name.utf8 {
            if byte == .lf, previous == .cr {
                // The preceding CR was already written as CRLF.
            } else if byte == .lf || byte == .cr {
                bytes += [.cr, .lf]
            } else {
                bytes.append(byte)
            }
            previous = byte
        }
        return bytes
    }

    /// Appends a name with the three escapes of the WHATWG rules. "%" is not escaped: servers do not decode these
    /// names.
    private static func appendEscaped(_ text: [UInt8], to head: inout [UInt8]) throws(WireViolation) {
        for byte in text {
            if byte == UInt8(ascii: "\"") || byte == .cr || byte == .lf {
                PercentCoding.append(byte, to: &head)
            } else if byte.isForbiddenInValue {
                // The rules allow these characters, but servers disagree about their meaning.
                throw .local(.malformedFieldValue, "RFC 7578 4.2")
            } else {
                head.append(byte)
            }
        }
    }
}
