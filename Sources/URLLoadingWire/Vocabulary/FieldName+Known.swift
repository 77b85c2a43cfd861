// SPDX-License-Identifier: Apache-2.0

// Registered field names, spelled as in their specifications.

extension FieldName {
    /// Accept, RFC 9110 §12.5.1.
    public static let accept = FieldName("Accept")
    /// Accept-Charset, RFC 9110 §12.5.2.
    public static let acceptCharset = FieldName("Accept-Charset")
    /// Accept-Encoding, RFC 9110 §12.5.3.
    public static let acceptEncoding = FieldName("Accept-Encoding")
    /// Accept-Language, RFC 9110 §12.5.4.
    public static let acceptLanguage = FieldName("Accept-Language")
    /// Accept-Ranges, RFC 9110 §14.3.
    public static let acceptRanges = FieldName("Accept-Ranges")
    /// Age, RFC 9111 §5.1.
    public static let age = FieldName("Age")
    /// Allow, RFC 9110 §10.2.1.
    public static let allow = FieldName("Allow")
    /// Alt-Svc, RFC 7838 §3.
    public static let altSvc = FieldName("Alt-Svc")
    /// Authentication-Info, RFC 9110 §11.6.3.
    public static let authenticationInfo = FieldName("Authentication-Info")
    /// Authorization, RFC 9110 §11.6.2.
    public static let authorization = FieldName("Authorization")
    /// Cache-Control, RFC 9111 §5.2.
    public static let cacheControl = FieldName("Cache-Control")
    /// Connection, RFC 9110 §7.6.1.
    public static let connection = FieldName("Connection")
    /// Content-Disposition, RFC 6266 §4.
    public static let contentDisposition = FieldName("Content-Disposition")
    /// Content-Encoding, RFC 9110 §8.4.
    public static let contentEncoding = FieldName("Content-Encoding")
    /// Content-Language, RFC 9110 §8.5.
    public static let contentLanguage = FieldName("Content-Language")
    /// Content-Length, RFC 9110 §8.6.
    public static let contentLength = FieldName("Content-Length")
    /// Content-Location, RFC 9110 §8.7.
    public static let contentLocation = FieldName("Content-Location")
    /// Content-Range, RFC 9110 §14.4.
    public static let contentRange = FieldName("Content-Range")
    /// Content-Type, RFC 9110 §8.3.
    public static let contentType = FieldName("Content-Type")
    /// Cookie, RFC 6265 §5.4.
    public static let cookie = FieldName("Cookie")
    /// Date, RFC 9110 §6.6.1.
    public static let date = FieldName("Date")
    /// ETag, RFC 9110 §8.8.3.
    public static let etag = FieldName("ETag")
    /// Expect, RFC 9110 §10.1.1.
    public static let expect = FieldName("Expect")
    /// Expires, RFC 9111 §5.3.
    public static let expires = FieldName("Expires")
    /// Forwarded, RFC 7239 §4.
    public static let forwarded = FieldName("Forwarded")
    /// From, RFC 9110 §10.1.2.
    public static let from = FieldName("From")
    /// Host, RFC 9110 §7.2.
    public static let host = FieldName("Host")
    /// If-Match, RFC 9110 §13.1.1.
    public static let ifMatch = FieldName("If-Match")
    /// If-Modified-Since, RFC 9110 §13.1.3.
    public static let ifModifiedSince = FieldName("If-Modified-Since")
    /// If-None-Match, RFC 9110 §13.1.2.
    public static let ifNoneMatch = FieldName("If-None-Match")
    /// If-Range, RFC 9110 §13.1.5.
    public static let ifRange = FieldName("If-Range")
    /// If-Unmodified-Since, RFC 9110 §13.1.4.
    public static let ifUnmodifiedSince = FieldName("If-Unmodified-Since")
    /// Keep-Alive, RFC 2068 §19.7.1.1.
    public static let keepAlive = FieldName("Keep-Alive")
    /// Last-Modified, RFC 9110 §8.8.2.
    public static let lastModified = FieldName("Last-Modified")
    /// Link, RFC 8288 §3.
    public static let link = FieldName("Link")
    /// Location, RFC 9110 §10.2.2.
    public static let location = FieldName("Location")
    /// Max-Forwards, RFC 9110 §7.6.2.
    public static let maxForwards = FieldName("Max-Forwards")
    /// Origin, RFC 6454 §7.
    public static let origin = FieldName("Origin")
    /// Pragma, RFC 9111 §5.4.
    public static let pragma = FieldName("Pragma")
    /// Proxy-Authenticate, RFC 9110 §11.7.1.
    public static let proxyAuthenticate = FieldName("Proxy-Authenticate")
    /// Proxy-Authentication-Info, RFC 9110 §11.7.3.
    public static let proxyAuthenticationInfo = FieldName("Proxy-Authentication-Info")
    /// Proxy-Authorization, RFC 9110 §11.7.2.
    public static let proxyAuthorization = FieldName("Proxy-Authorization")
    /// Proxy-Connection, RFC 9112 C.2.2.
    public static let proxyConnection = FieldName("Proxy-Connection")
    /// Range, RFC 9110 §14.2.
    public static let range = FieldName("Range")
    /// Referer, RFC 9110 §10.1.3.
    public static let referer = FieldName("Referer")
    /// Retry-After, RFC 9110 §10.2.3.
    public static let retryAfter = FieldName("Retry-After")
    /// Sec-WebSocket-Accept, RFC 6455 §11.3.3.
    public static let secWebSocketAccept = FieldName("Sec-WebSocket-Accept")
    /// Sec-WebSocket-Extensions, RFC 6455 §11.3.2.
    public static let secWebSocketExtensions = FieldName("Sec-WebSocket-Extensions")
    /// Sec-WebSocket-Key, RFC 6455 §11.3.1.
    public static let secWebSocketKey = FieldName("Sec-WebSocket-Key")
    /// Sec-WebSocket-Protocol, RFC 6455 §11.3.4.
    public static let secWebSocketProtocol = FieldName("Sec-WebSocket-Protocol")
    /// Sec-WebSocket-Version, RFC 6455 §11.3.5.
    public static let secWebSocketVersion = FieldName("Sec-WebSocket-Version")
    /// Content-Digest, RFC 9530 §2.
    public static let contentDigest = FieldName("Content-Digest")
    /// Repr-Digest, RFC 9530 §3.
    public static let reprDigest = FieldName("Repr-Digest")
    /// Server, RFC 9110 §10.2.4.
    public static let server = FieldName("Server")
    /// Signature, RFC 9421 §4.2.
    public static let signature = FieldName("Signature")
    /// Signature-Input, RFC 9421 §4.1.
    public static let signatureInput = FieldName("Signature-Input")
    /// Set-Cookie, RFC 6265 §4.1.
    public static let setCookie = FieldName("Set-Cookie")
    /// Strict-Transport-Security, RFC 6797 §6.1.
    public static let strictTransportSecurity = FieldName("Strict-Transport-Security")
    /// TE, RFC 9110 §10.1.4.
    public static let te = FieldName("TE")
    /// Trailer, RFC 9110 §6.6.2.
    public static let trailer = FieldName("Trailer")
    /// Transfer-Encoding, RFC 9112 §6.1.
    public static let transferEncoding = FieldName("Transfer-Encoding")
    /// Upgrade, RFC 9110 §7.8.
    public static let upgrade = FieldName("Upgrade")
    /// User-Agent, RFC 9110 §10.1.5.
    public static let userAgent = FieldName("User-Agent")
    /// Vary, RFC 9110 §12.5.5.
    public static let vary = FieldName("Vary")
    /// Via, RFC 9110 §7.6.3.
    public static let via = FieldName("Via")
    /// Want-Repr-Digest, RFC 9530 §4.
    public static let wantReprDigest = FieldName("Want-Repr-Digest")
    /// Warning, RFC 9111 §5.5.
    public static let warning = FieldName("Warning")
    /// WWW-Authenticate, RFC 9110 §11.6.1.
    public static let wwwAuthenticate = FieldName("WWW-Authenticate")
}
