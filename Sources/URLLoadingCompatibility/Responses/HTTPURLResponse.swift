// SPDX-License-Identifier: Apache-2.0

// In this folder: responses of the classic API

public import Foundation
import URLLoading
import URLLoadingWire

/// The head of an HTTP response.
///
/// ```swift
/// if let http = response as? HTTPURLResponse, http.statusCode == 200 {
///     print(http.value(forHTTPHeaderField: "content-type") ?? "")
/// }
/// ```
open class HTTPURLResponse: URLResponse, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// The status code, such as 404.
    public let statusCode: Int
    final let fields: Headers
    /// The Content-Length of a response to HEAD.
    private let statedLength: Int64?

    /// Creates a response for stubs and tests. Media type and length are taken from the fields.
    public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) {
        self.statusCode = statusCode
        fields = Headers(headerFields ?? [:])
        statedLength = nil
        let type = fields[.contentType].flatMap { MediaType($0) }
        let length = fields.contentLength.map { Int($0) } ?? -1
        super.init(url: url, mimeType: type?.essence, expectedContentLength: length, textEncodingName: type?.charset)
    }

    init(_ response: Response, _ head: HTTPHead, toHead: Bool = false) {
        statusCode = head.status.code
        fields = head.headers
        statedLength = toHead ? head.headers.contentLength : nil
        super.init(loaded: response)
    }

    /// The fields by name; several values of one name are joined with commas. Names are spelled as Apple spells them,
    /// whatever the server sent (HTTP/2 names are lower-case): `Content-Type`, `Etag`, `WWW-Authenticate`; names
    /// beginning with `X-` are spelled as the server first sent them. ``value(forHTTPHeaderField:)`` is
    /// case-insensitive.
    public var allHeaderFields: [AnyHashable: Any] {
        var all: [AnyHashable: Any] = [:]
        for name in fields.distinctNames { all[Self.canonical(name.description)] = fields.joined(name) }
        return all
    }

    private static func canonical(_ name: String) -> String {
        let lower = name.lowercased()
        if lower.hasPrefix("x-") { return name }
        if lower == "www-authenticate" { return "WWW-Authenticate" }
        let words = lower.split(separator: "-", omittingEmptySubsequences: false)
        return words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: "-")
    }

    /// Returns the value of a field; the name is case-insensitive. Several values are joined with commas.
    public func value(forHTTPHeaderField field: String) -> String? {
        let name = FieldName(field)
        return fields.contains(name) ? fields.joined(name) : nil
    }

    /// Returns a human-readable phrase for a status code, such as `not found`.
    open class func localizedString(forStatusCode statusCode: Int) -> String {
        guard statusCode != 200 else { return "no error" }
        guard let status = Status(statusCode) else { return "server error" }
        guard status.reasonPhrase.isEmpty else { return status.reasonPhrase.lowercased() }
        return switch status.kind {
        case .informational: "informational"
        case .successful: "success"
        case .redirection: "redirected"
        case .clientError: "client error"
        case .serverError: "server error"
        }
    }

    /// The expected length of the body; for a response to HEAD, the length that a GET would return.
    open override var expectedContentLength: Int64 { statedLength ?? super.expectedContentLength }

    open override var suggestedFilename: String? {
        SuggestedName.classic(
            disposition: fields.values(of: "Content-Disposition").first, url, mediaType: mimeType)
    }

    /// One line: `<HTTPURLResponse 404 text/html http://example.org/>`.
    open override var description: String {
        "<HTTPURLResponse \(statusCode) \(mimeType ?? "-") \(url?.redactedText ?? "-")>"
    }

    // MARK: Comparing, archiving

    open override func isEqual(_ value: Any?) -> Bool {
        guard super.isEqual(value), let other = value as? HTTPURLResponse else { return false }
        return statusCode == other.statusCode && fields == other.fields
    }

    public required init?(coder aDecoder: NSCoder) {
        statusCode = aDecoder.decodeInteger(forKey: "statusCode")
        let names = aDecoder.decodeObject(of: [NSArray.self, NSString.self], forKey: "names") as? [String] ?? []
        let values = aDecoder.decodeObject(of: [NSArray.self, NSString.self], forKey: "values") as? [String] ?? []
        var fields = Headers()
        for (name, value) in zip(names, values) { fields.append(FieldName(name), value) }
        self.fields = fields
        statedLength = nil
        super.init(coder: aDecoder)
    }

    open override func encode(with aCoder: NSCoder) {
        super.encode(with: aCoder)
        aCoder.encode(statusCode, forKey: "statusCode")
        aCoder.encode(fields.map(\.name.description) as NSArray, forKey: "names")
        aCoder.encode(fields.map(\.value) as NSArray, forKey: "values")
    }
}

extension Headers {
    /// Creates the fields of a configuration. Of names that differ only in case, the first in alphabetical order
    /// counts. Content-Length and Transfer-Encoding are left out, because they belong to the body of a single request.
    init(_ additional: [AnyHashable: Any]) {
        self.init()
        let texts = additional.map { (name: "\($0.key.base)", value: "\($0.value)") }
        for (text, value) in texts.sorted(by: { $0.name < $1.name }) {
            let name = FieldName(text)
            guard ![.contentLength, .transferEncoding].contains(name), !contains(name) else { continue }
            append(name, value)
        }
    }

    /// Creates the fields in an order that does not depend on hashing.
    init(_ fields: [String: String]) {
        self.init()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { append(FieldName(name), value) }
    }

    /// The names without those that differ from an earlier one only in case.
    var distinctNames: [FieldName] {
        var known: Set<FieldName> = []
        return map(\.name).filter { known.insert($0).inserted }
    }

    /// Returns the joined values of a field. Set-Cookie is joined as well, although commas within its values make that
    /// ambiguous: the classic API has only a dictionary.
    fileprivate func joined(_ name: FieldName) -> String { values(of: name).joined(separator: ", ") }
}
