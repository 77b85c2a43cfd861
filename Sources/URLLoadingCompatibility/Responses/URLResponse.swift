// Responses of the classic shape. Those that a load gave keep what the core knows, and say it when asked.

public import Foundation
import URLLoading
import URLLoadingWire

/// What was answered, before its body.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private enum Source: Sendable {
        case loaded(Response)
        case stated(url: URL?, mimeType: String?, length: Int64, encoding: String?)
    }
    private let source: Source

    /// For responses that were not loaded: stubs, tests.
    /// - Parameter length: -1 if nobody knows.
    public init(url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?) {
        source = .stated(url: url, mimeType: mimeType, length: Int64(length), encoding: name)
    }

    init(loaded response: Response) { source = .loaded(response) }

    /// As the core has it, if it comes from there.
    final var loaded: Response? { if case .loaded(let response) = source { response } else { nil } }

    /// Where it came from: after redirects, the last URL.
    open var url: URL? {
        switch source {
        case .loaded(let response): response.url
        case .stated(let url, _, _, _): url
        }
    }

    /// Type and subtype of the body, such as `text/html`; `nil` if none was stated.
    open var mimeType: String? {
        switch source {
        case .loaded(let response): response.mediaType?.essence
        case .stated(_, let mimeType, _, _): mimeType
        }
    }

    /// How many bytes of body there will be; -1 if nobody knows, as for chunked and compressed bodies.
    open var expectedContentLength: Int64 {
        switch source {
        case .loaded(let response): response.expectedLength ?? -1
        case .stated(_, _, let length, _): length
        }
    }

    /// The charset of the media type, in lower case; `nil` if none was stated.
    open var textEncodingName: String? {
        switch source {
        case .loaded(let response): response.textEncodingName
        case .stated(_, _, _, let encoding): encoding
        }
    }

    /// A name for a file with the body: the one the server states, or the last part of the URL's path, or
    /// `Unknown`. Never a path: nothing in it leads to another folder, hides the file, or is a control
    /// character.
    open var suggestedFilename: String? { SuggestedName.make(disposition: nil, url, fallback: "Unknown") }

    // MARK: Copying, comparing, archiving

    /// The same object: a response does not change.
    open override func copy() -> Any { self }
    /// The same object: a response does not change.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    open override func isEqual(_ value: Any?) -> Bool {
        guard let other = value as? URLResponse, type(of: other) == type(of: self) else { return false }
        return url == other.url && mimeType == other.mimeType
            && expectedContentLength == other.expectedContentLength && textEncodingName == other.textEncodingName
    }

    open override var hash: Int { url.hashValue }

    public static var supportsSecureCoding: Bool { true }

    public required init?(coder aDecoder: NSCoder) {
        source = .stated(
            url: aDecoder.decodeObject(of: NSURL.self, forKey: Key.url).flatMap { URL(string: $0.absoluteString) },
            mimeType: aDecoder.decodeObject(of: NSString.self, forKey: Key.mimeType).map { "\($0)" },
            length: aDecoder.decodeInt64(forKey: Key.length),
            encoding: aDecoder.decodeObject(of: NSString.self, forKey: Key.encoding).map { "\($0)" })
    }

    open func encode(with aCoder: NSCoder) {
        aCoder.encode(url.map { $0 as NSURL }, forKey: Key.url)
        aCoder.encode(mimeType.map { $0 as NSString }, forKey: Key.mimeType)
        aCoder.encode(expectedContentLength, forKey: Key.length)
        aCoder.encode(textEncodingName.map { $0 as NSString }, forKey: Key.encoding)
    }

    private enum Key {
        static let url = "url", mimeType = "mimeType", length = "length", encoding = "encoding"
    }
}
