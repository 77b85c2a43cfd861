// SPDX-License-Identifier: Apache-2.0

// Responses of the classic API. A response from a load wraps the core's response and derives its properties on access.

public import Foundation
import URLLoading
import URLLoadingWire

/// The metadata of a response, without its body.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private enum Source: Sendable {
        case loaded(Response)
        case stated(url: URL?, mimeType: String?, length: Int64, encoding: String?)
    }
    private let source: Source

    /// Creates a response for stubs and tests.
    /// - Parameter length: the expected length of the body; -1 if unknown.
    public init(url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?) {
        source = .stated(url: url, mimeType: mimeType, length: Int64(length), encoding: name)
    }

    init(loaded response: Response) { source = .loaded(response) }

    /// The core's response, if this response came from a load.
    final var loaded: Response? { if case .loaded(let response) = source { response } else { nil } }

    /// The URL of the response: after redirects, the last one.
    open var url: URL? {
        switch source {
        case .loaded(let response): response.url
        case .stated(let url, _, _, _): url
        }
    }

    /// The media type of the body, such as `text/html`; `nil` if none was stated.
    open var mimeType: String? {
        switch source {
        case .loaded(let response): response.mediaType?.essence
        case .stated(_, let mimeType, _, _): mimeType
        }
    }

    /// The expected length of the body in bytes; -1 if unknown, as for chunked and content-coded bodies.
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

    /// A file name for the body: the name that the server states; or the last component of the URL's path, or else its
    /// host, with the usual extension of the media type where it has none; or `Unknown`. It is never a path: it cannot
    /// lead to another folder, hide the file, or contain control characters.
    open var suggestedFilename: String? { SuggestedName.classic(disposition: nil, url, mediaType: mimeType) }

    // MARK: Copying, comparing, archiving

    /// Returns the same object: a response is immutable.
    open override func copy() -> Any { self }
    /// Returns the same object: a response is immutable.
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
