// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
public import URLLoadingWire

/// A request that is about to be sent, as ``Decisions/sign`` sees it: every field is known.
///
/// ```swift
/// decisions.sign = Decision { request in
///     let digest = try await request.bodyDigest(.sha256)
///     return RequestSignature(headers: ["X-Proof": vault.proof(of: request.target, digest.bytes)])
/// }
/// ```
/// It has what the server will receive, the same over HTTP/1.1 and HTTP/2, with these exceptions:
/// - Fields of one connection (RFC 9110 §7.6.1) are not in ``headers``: Connection and the fields it names, Keep-Alive,
///   TE, Trailer, Transfer-Encoding, Upgrade, and everything for a proxy (Proxy-Authorization, the absolute form of the
///   target). Host is ``authority``.
/// - Added later, and not seen: Sec-WebSocket-Key, the Priority field of a task with another priority than the default
///   over HTTP/2, and trailers.
/// - In HTTP/2 names are sent in lower case and Cookie is split (RFC 9113 §8.2). Signers must not depend on either.
/// - What a proxy or a server's gateway changes on the way.
public struct SigningRequest: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method as sent. CONNECT for a WebSocket over HTTP/2 (RFC 8441 §4).
    public let method: Method
    /// The URL of the request, without a fragment.
    public let url: URL
    /// The value of Host or `:authority`: host and port as sent, which the caller's Host field may have changed.
    public let authority: String
    /// Path and query as sent, in origin form (RFC 9112 §3.2.1), also if a proxy gets the absolute form.
    public let target: String
    /// The fields, in the order in which they are sent; Content-Length is last.
    public let headers: Headers
    /// The reason for which the request is sent: for the first time, or again.
    public let cause: BodyProviderContext.Cause
    /// Whether a redirect has led away from the origin of the caller's request, and for good: it stays true if another
    /// redirect leads back.
    public let isForeign: Bool
    /// The origins that redirects have left (`Hop.left`).
    let left: [Origin?]
    /// The time of day, by the clock of the session.
    public let date: Date
    /// The length of the body in bytes; 0 without a body, `nil` if it is not known.
    public var bodyLength: Int64? { body.length }
    let body: Body
    /// Whether there is a body that is read only while it is sent.
    package var hasUnreadableBody: Bool { !body.isRepeatable && body.length != 0 }

    /// The body of a request, as signers may ask about it.
    struct Body: Sendable {
        let length: Int64?
        /// Whether there is a body that can be read before it is sent.
        let isRepeatable: Bool
        /// Returns the digest in hexadecimal digits; nil if the body cannot be read.
        let digest: @Sendable (DigestHash) async throws(LoadError) -> String?

        static let none = Body(length: 0, isRepeatable: false) { $0.hex([]) }
    }

    init(
        _ line: Line, headers: Headers, cause: BodyProviderContext.Cause = .first, left: [Origin?] = [],
        body: Body = .none, date: Date
    ) {
        (method, url, authority, target) = (line.method, line.url, line.authority, line.target)
        self.headers = headers
        self.cause = cause
        (self.left, isForeign) = (left, !left.isEmpty)
        self.body = body
        self.date = date
    }

    /// What identifies the resource.
    struct Line: Sendable {
        let method: Method
        let url: URL
        let authority: String
        let target: String
    }

    /// Returns the digest of the body as it is sent, before any transfer coding. Without a body it is the digest of no
    /// bytes. Files are read a second time, on a thread that may block.
    /// - Throws: ``LoadError/Reason/cannotSign`` for a sequence of pieces, which is read once, while it is sent;
    ///   ``LoadError/Reason/requestBodyFailed`` if a file cannot be read or has changed; an error of the load if it has
    ///   ended.
    public func bodyDigest(_ algorithm: BodyDigest.Algorithm) async throws(LoadError) -> BodyDigest {
        guard let digits = try await body.digest(algorithm == .sha256 ? .sha256 : .sha512) else {
            throw LoadError(.requestBodyFailed, phase: .preparing, party: .local, url: url, detail: "no digest")
        }
        return try BodyDigest("\(algorithm.rawValue)=\(digits)")
    }

    /// The origin that the request goes to.
    var origin: Origin? { try? Target(url.absoluteString).origin }

    /// Returns the request with the fields of a signature, as the server receives it: what a signed response may refer
    /// to with ``SignatureComponent/ofRequest``.
    public func with(_ signature: RequestSignature) -> SigningRequest {
        var headers = headers
        for field in signature.headers { headers.append(field.name, field.value) }
        let line = Line(
            method: method, url: url, authority: authority, target: QueryItems.append(signature.queryItems, to: target))
        return SigningRequest(line, headers: headers, cause: cause, left: left, body: body, date: date)
    }

    /// Method and URL, without userinfo and query: `POST https://example.org/a`.
    public var description: String { "\(method) \(url.withoutSecrets)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["request": description]) }

    /// The request for a signature base (RFC 9421).
    var components: SignatureMessage.Request {
        var headers = headers
        // A verifier sees the field Host; over HTTP/2 it is made of `:authority`.
        headers[.host] = authority
        return SignatureMessage.Request(
            method: method.rawValue, scheme: url.scheme?.lowercased() ?? "https", authority: authority, target: target,
            headers: headers)
    }
}

/// What a signature adds to a request.
///
/// ```swift
/// RequestSignature(headers: ["Signature-Input": input, "Signature": signature])
/// ```
/// Neither its description nor its reflection shows a value.
public struct RequestSignature: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Fields that are appended. A field that the request has already is refused with
    /// ``LoadError/Reason/cannotSign``, except for Signature and Signature-Input, which several signatures share; so
    /// are fields that frame or route the message, or belong to a connection.
    public var headers: Headers
    /// Query items that are appended to the target, with all bytes but the unreserved ones escaped. The URL of the
    /// response does not have them.
    public var queryItems: [URLQueryItem]

    /// No signature: the request is sent as it is.
    public static let none = RequestSignature()

    /// Creates a signature.
    public init(headers: Headers = Headers(), queryItems: [URLQueryItem] = []) {
        self.headers = headers
        self.queryItems = queryItems
    }

    var isEmpty: Bool { headers.isEmpty && queryItems.isEmpty }

    /// The names of fields and query items: `Signature-Input, Signature`.
    public var description: String {
        isEmpty ? "no signature" : (headers.map { "\($0.name)" } + queryItems.map(\.name)).joined(separator: ", ")
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["names": description]) }
}

extension LoadError.Reason {
    /// A request cannot be signed as its signer demands: the detail says why.
    public static let cannotSign = Self("cannotSign", -1000)
    /// The signature of a response is missing, expired or wrong (``MessageVerifier``).
    public static let badSignature = Self("badSignature", -1011)
}

extension LoadError {
    static func cannotSign(_ words: String) -> LoadError {
        LoadError(.cannotSign, phase: .preparing, party: .local, detail: words)
    }
}
