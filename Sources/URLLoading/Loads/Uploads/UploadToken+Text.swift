// SPDX-License-Identifier: Apache-2.0

// A token as text: a version, the content, and a digest of both, in the alphabet of base64url (RFC 4648 §5), which
// needs no escaping in files, databases and URLs.

import FoundationEssentials
import URLLoadingIO

extension UploadToken {
    /// The token as one line of letters, digits, `-`, `_` and `.`, for ``init(_:)``.
    public var text: String {
        let content = Content(
            url: url.absoluteString, target: target, length: length, modified: identity.modified,
            digest: identity.digest, path: identity.path)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // The content has strings and numbers only, so its encoding cannot fail.
        let body = Self.version + Base64URL.encoded((try? encoder.encode(content)) ?? Data())
        return body + "." + Self.check(body)
    }

    /// Parses the text of a token. White space is ignored, because mails wrap lines.
    /// - Throws: ``LoadError/Reason/invalidUploadToken`` for text that does not come from ``text`` of this or an
    ///   earlier version of the library.
    public init(_ text: String) throws(LoadError) {
        guard text.utf8.count <= Self.longest * 2 else { throw Self.invalid("this is not the text of an upload token") }
        let text = text.filter { !$0.isWhitespace }
        guard text.utf8.count <= Self.longest, text.hasPrefix(Self.version), let dot = text.lastIndex(of: ".") else {
            throw Self.invalid("this is not the text of an upload token")
        }
        let body = String(text[..<dot])
        guard text[text.index(after: dot)...] == Self.check(body) else { throw Self.invalid("the token is damaged") }
        guard let data = Base64URL.decoded(String(body.dropFirst(Self.version.count))),
            let content = try? JSONDecoder().decode(Content.self, from: data), let url = URL(string: content.url),
            case .success = Request(url: url).destination, content.length >= 0, !content.digest.isEmpty
        else { throw Self.invalid("the content of the token is invalid") }
        self.init(
            url: url,
            identity: UploadIdentity(
                length: content.length, modified: content.modified, digest: content.digest, path: content.path),
            target: content.target)
    }

    /// Returns the digest by which a token recognises its request: method and URL without the fragment, which is never
    /// sent.
    static func target(of request: Request) -> String {
        let url = request.url.absoluteString.prefix { $0 != "#" }
        return String(Digest.hex("\(request.method) \(url)".utf8).prefix(32))
    }

    private static let version = "urlupload1."
    private static let longest = 64 * 1024

    private struct Content: Codable {
        let url: String
        let target: String
        let length: Int64
        let modified: Int64?
        let digest: String
        let path: String?
    }

    /// Returns the checksum, half of SHA-256, which detects damage, not forgery. A forged token can harm only its own
    /// bearer, because it must lead to the origin of the request.
    private static func check(_ body: String) -> String {
        String(Digest.hex(body.utf8).prefix(32))
    }

    private static func invalid(_ words: String) -> LoadError {
        LoadError(.invalidUploadToken, phase: .preparing, party: .local, detail: words)
    }
}

/// RFC 4648 §5, without padding.
enum Base64URL {
    static func encoded(_ data: Data) -> String {
        String(
            data.base64EncodedString().compactMap { character -> Character? in
                switch character {
                case "+": "-"
                case "/": "_"
                case "=": nil
                default: character
                }
            })
    }

    static func decoded(_ text: String) -> Data? {
        var standard = text.replacing("-", with: "+").replacing("_", with: "/")
        standard += String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4)
        return Data(base64Encoded: standard)
    }
}

extension UploadToken: CustomReflectable {
    /// The description, without the URL of the upload, which alone may permit writing to it.
    public var customMirror: Mirror { Mirror(self, children: ["token": description]) }
}
