// A token as text: a version, what it says, and a digest of both, in the alphabet of base64url
// (RFC 4648 §5), so that it passes through files, databases and URLs as it is.

import FoundationEssentials
import URLLoadingIO

extension UploadToken {
    /// One line of letters, digits, `-`, `_` and `.`, for ``init(_:)``.
    public var text: String {
        let content = Content(
            url: url.absoluteString, target: target, length: length, modified: identity.modified,
            digest: identity.digest, path: identity.path)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings and numbers alone: nothing that could not be encoded.
        let body = Self.version + Base64URL.encoded((try? encoder.encode(content)) ?? Data())
        return body + "." + Self.check(body)
    }

    /// Reads a token back. White space does not matter: mails wrap lines.
    /// - Throws: ``LoadError/Reason/invalidUploadToken`` for what ``text`` did not give, of this or an
    ///   earlier version of the library.
    public init(_ text: String) throws(LoadError) {
        guard text.utf8.count <= Self.longest * 2 else { throw Self.invalid("it has another form") }
        let text = text.filter { !$0.isWhitespace }
        guard text.utf8.count <= Self.longest, text.hasPrefix(Self.version), let dot = text.lastIndex(of: ".") else {
            throw Self.invalid("it has another form")
        }
        let body = String(text[..<dot])
        guard text[text.index(after: dot)...] == Self.check(body) else { throw Self.invalid("it is damaged") }
        guard let data = Base64URL.decoded(String(body.dropFirst(Self.version.count))),
            let content = try? JSONDecoder().decode(Content.self, from: data), let url = URL(string: content.url),
            case .success = Request(url: url).destination, content.length >= 0, !content.digest.isEmpty
        else { throw Self.invalid("its content makes no sense") }
        self.init(
            url: url,
            identity: UploadIdentity(
                length: content.length, modified: content.modified, digest: content.digest, path: content.path),
            target: content.target)
    }

    /// What a request is to a token: method and URL without the fragment, which is never sent.
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

    /// Half of SHA-256: against accidents, not against forgers. A forged token can harm only its own bearer,
    /// for it must lead to the origin that the request names.
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
    /// Without the URL of the upload, which lets those who know it write there.
    public var customMirror: Mirror { Mirror(self, children: ["token": description]) }
}
