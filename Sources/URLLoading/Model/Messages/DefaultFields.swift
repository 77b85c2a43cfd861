// SPDX-License-Identifier: Apache-2.0

// The fields that a session adds to its requests.

import URLLoadingWire

/// The fields of a request that is ready to be sent.
enum RequestFields: Sendable {
    /// Only the session's defaults, encoded once: the common case.
    case defaults(HTTP1PreparedFields)
    /// The caller's fields, and the defaults that the caller did not set.
    case own(Headers)

    var headers: Headers {
        switch self {
        case .defaults(let prepared): prepared.headers
        case .own(let headers): headers
        }
    }

    /// Adds the Cache-Control directives of the policy for intermediate caches (RFC 9111 §5.2.1, §5.4). The caller's
    /// own fields take precedence.
    func instructingCaches(_ policy: Request.CachePolicy) -> RequestFields {
        let directive: String
        switch policy {
        case .revalidate: directive = "max-age=0"
        case .reloadIgnoringCaches: directive = "no-cache"
        case .useProtocol, .reload, .cacheElseLoad, .onlyIfCached: return self
        }
        var headers = headers
        if !headers.contains(.cacheControl) { headers.append(.cacheControl, directive) }
        if policy == .reloadIgnoringCaches, !headers.contains(.pragma) { headers.append(.pragma, "no-cache") }
        return .own(headers)
    }
}

/// The fields that every request gets unless it sets them itself.
final class DefaultFields: Sendable {
    private let own: Set
    /// The defaults for another origin after a redirect, without the session-wide credentials.
    private let foreign: Set
    private let offersCoding: Bool
    /// The session's Proxy-Authorization field, which is sent only to its proxy.
    let proxyAuthorization: String?
    /// Parts of the cache key: the session's Host field, and the digest of its Cookie field.
    let host: String?
    let ownCookie: String?
    /// The directives of the session's Cache-Control field; nil without one.
    let cacheControl: CacheControl?

    private struct Set: Sendable {
        let headers: Headers
        let prepared: HTTP1PreparedFields?

        init(_ headers: Headers) {
            self.headers = headers
            prepared = HTTP1PreparedFields(headers)
        }
    }

    /// - Parameters:
    ///   - headers: the fields of a configuration.
    ///   - cookieDigest: returns the digest of their Cookie field; nil without one.
    init(
        _ headers: Headers, accept: String?, acceptEncoding: String?, userAgent: String?,
        cookieDigest: (Headers) -> String?
    ) {
        var fields = headers
        proxyAuthorization = fields.takeProxyFields()
        (host, ownCookie) = (fields[.host], cookieDigest(fields))
        cacheControl = fields.contains(.cacheControl) ? CacheControl(fields) : nil
        func add(_ name: FieldName, _ value: String?) {
            if let value, !fields.contains(name) { fields.append(name, value) }
        }
        offersCoding = acceptEncoding != nil && !fields.contains(.acceptEncoding)
        add(.accept, accept)
        add(.acceptEncoding, acceptEncoding)
        add(.userAgent, userAgent)
        own = Set(fields)
        // Referer is omitted as well, because it would tell another origin the URL of the previous page.
        for name in FieldName.personal + [.referer] { fields.remove(name) }
        foreign = Set(fields)
    }

    /// Returns whether the content coding of a complete response to `request` is decoded.
    func decodesContent(of request: Request) -> Bool {
        switch request.contentDecoding {
        case .ifOffered: offersCoding && (request.headers.isEmpty || !request.headers.choosesCoding)
        case .always: true
        case .never: false
        }
    }

    func completing(_ given: Headers, isForeign: Bool) -> RequestFields {
        let prepared = isForeign ? foreign.prepared : own.prepared
        if given.isEmpty, let prepared { return .defaults(prepared) }
        let defaults = isForeign ? foreign.headers : own.headers
        guard !given.isEmpty else { return .own(defaults) }
        var complete = given
        for field in defaults where !given.contains(field.name) {
            if field.name == .acceptEncoding, given.choosesCoding { continue }
            complete.append(field.name, field.value)
        }
        return .own(complete)
    }
}

extension FieldName {
    /// Fields with credentials for one server, and its name: they must not be sent to another.
    static let personal: [FieldName] = [
        .authorization, .cookie, .proxyAuthorization, .host, .signature, .signatureInput, "X-Amz-Security-Token",
    ]
}

extension Headers {
    /// Removes the fields that are meant for a proxy only, and returns the credentials among them.
    mutating func takeProxyFields() -> String? {
        guard !isEmpty else { return nil }
        let credentials = self[.proxyAuthorization]
        if credentials != nil { remove(.proxyAuthorization) }
        if contains(.proxyConnection) { remove(.proxyConnection) }
        return credentials
    }

    /// True if the caller's fields determine the content coding of the response. A range of a coded representation
    /// cannot be decoded (RFC 9110 §14.2).
    var choosesCoding: Bool { contains(.acceptEncoding) || contains(.range) }
}
