// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The fields of a form and its files, to be sent as `multipart/form-data` (RFC 7578).
///
/// ```swift
/// var form = MultipartForm()
/// form.append(name: "title", value: "Notes")
/// form.append(name: "picture", file: URL(filePath: "/home/ada/engine.png"))
/// let request = Request(url: url, method: .post, body: try .multipart(form))
/// ```
/// A value: appending opens and checks nothing. ``RequestBody/multipart(_:)`` throws for fields that cannot be sent.
public struct MultipartForm: Sendable {
    struct Field: Sendable {
        var name: String
        var fileName: String?
        var contentType: String?
        var content: RequestBody.Part
    }
    private(set) var fields: [Field] = []

    /// A form without fields.
    public init() {}

    /// The number of fields, files among them.
    public var count: Int { fields.count }

    /// Adds a text field, which is sent as UTF-8.
    /// - Parameters:
    ///   - name: any text without control characters other than line breaks. Several fields may have one name.
    ///   - value: any text.
    public mutating func append(name: String, value: String) {
        fields.append(Field(name: name, content: .data(Data(value.utf8))))
    }

    /// Adds bytes, as a file if they have a file name.
    /// - Parameters:
    ///   - name: the name of the field; see ``append(name:value:)``.
    ///   - data: the bytes.
    ///   - fileName: the file name that the server is given; `nil` makes it a plain field.
    ///   - contentType: a media type; `nil` derives it from the file name, and without one uses
    ///     `application/octet-stream`.
    public mutating func append(name: String, data: Data, fileName: String? = nil, contentType: String? = nil) {
        fields.append(
            Field(
                name: name, fileName: fileName, contentType: contentType ?? Self.type(ofName: fileName ?? ""),
                content: .data(data)))
    }

    /// Adds a file, which is streamed at the peer's pace and never held in memory.
    ///
    /// It is opened and measured when the request is sent; see ``RequestBody/file(_:range:)`` for the conditions.
    /// - Parameters:
    ///   - name: the name of the field; see ``append(name:value:)``.
    ///   - file: a `file` URL of a regular file.
    ///   - fileName: the file name that the server is given; `nil` uses the last path component.
    ///   - contentType: a media type; `nil` derives it from the file name.
    public mutating func append(name: String, file: URL, fileName: String? = nil, contentType: String? = nil) {
        let fileName = fileName ?? file.lastPathComponent
        fields.append(
            Field(
                name: name, fileName: fileName, contentType: contentType ?? Self.type(ofName: fileName),
                content: .file(path: file.path(percentEncoded: false), range: nil)))
    }

    private static func type(ofName name: String) -> String {
        FileTypes.mediaType(ofName: name).map { "\($0)" } ?? "application/octet-stream"
    }
}

extension RequestBody {
    /// A form with files, as `multipart/form-data` (RFC 7578). Its length is known, so it is not sent chunked.
    ///
    /// The boundary is 128 bits of the system's randomness, generated anew by each call. The author of a value or a
    /// file cannot predict it, and so cannot inject fields. Line breaks and quotes in names are escaped as browsers do
    /// it.
    ///
    /// ```swift
    /// request.body = try .multipart(form)
    /// ```
    /// - Throws: ``LoadError/Reason/malformedFieldValue`` if a content type is invalid, or a name holds a control
    ///   character; ``LoadError/Reason/badRequest`` if the system provides no randomness.
    public static func multipart(_ form: MultipartForm) throws(LoadError) -> RequestBody {
        guard let random = secureRandomBytes(16) else {
            throw LoadError(.badRequest, phase: .preparing, party: .system, detail: "no random bytes for a boundary")
        }
        do throws(WireViolation) {
            var writer = MultipartWriter(boundary: try MultipartBoundary(random: random))
            let parts = try parts(of: form, &writer)
            return RequestBody(.parts(parts), contentType: writer.contentType)
        } catch {
            throw LoadError(error, .preparing)
        }
    }

    /// Joins the framing and the small values between two files into one piece. Large values stay separate and are not
    /// copied.
    private static func parts(of form: MultipartForm, _ writer: inout MultipartWriter) throws(WireViolation) -> [Part] {
        var parts: [Part] = []
        var framing: [UInt8] = []
        for field in form.fields {
            try writer.begin(
                MultipartFormPart(name: field.name, fileName: field.fileName, contentType: field.contentType),
                into: &framing)
            if case .data(let data) = field.content, data.count <= 64 * 1024 {
                framing += data
            } else {
                parts += [.data(Data(framing)), field.content]
                framing = []
            }
        }
        writer.end(into: &framing)
        return parts + [.data(Data(framing))]
    }
}
