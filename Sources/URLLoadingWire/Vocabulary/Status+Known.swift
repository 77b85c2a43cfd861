// SPDX-License-Identifier: Apache-2.0

// The registered status codes (RFC 9110 §15, RFC 6585, 7725, 8297, 8470) and their reason phrases.

extension Status {
    /// 100 Continue.
    public static let `continue` = Status(known: 100)
    /// 101 Switching Protocols.
    public static let switchingProtocols = Status(known: 101)
    /// 102 Processing.
    public static let processing = Status(known: 102)
    /// 103 Early Hints.
    public static let earlyHints = Status(known: 103)
    /// 200 OK.
    public static let ok = Status(known: 200)
    /// 201 Created.
    public static let created = Status(known: 201)
    /// 202 Accepted.
    public static let accepted = Status(known: 202)
    /// 203 Non-Authoritative Information.
    public static let nonAuthoritativeInformation = Status(known: 203)
    /// 204 No Content.
    public static let noContent = Status(known: 204)
    /// 205 Reset Content.
    public static let resetContent = Status(known: 205)
    /// 206 Partial Content.
    public static let partialContent = Status(known: 206)
    /// 207 Multi-Status.
    public static let multiStatus = Status(known: 207)
    /// 300 Multiple Choices.
    public static let multipleChoices = Status(known: 300)
    /// 301 Moved Permanently.
    public static let movedPermanently = Status(known: 301)
    /// 302 Found.
    public static let found = Status(known: 302)
    /// 303 See Other.
    public static let seeOther = Status(known: 303)
    /// 304 Not Modified.
    public static let notModified = Status(known: 304)
    /// 307 Temporary Redirect.
    public static let temporaryRedirect = Status(known: 307)
    /// 308 Permanent Redirect.
    public static let permanentRedirect = Status(known: 308)
    /// 400 Bad Request.
    public static let badRequest = Status(known: 400)
    /// 401 Unauthorized.
    public static let unauthorized = Status(known: 401)
    /// 402 Payment Required.
    public static let paymentRequired = Status(known: 402)
    /// 403 Forbidden.
    public static let forbidden = Status(known: 403)
    /// 404 Not Found.
    public static let notFound = Status(known: 404)
    /// 405 Method Not Allowed.
    public static let methodNotAllowed = Status(known: 405)
    /// 406 Not Acceptable.
    public static let notAcceptable = Status(known: 406)
    /// 407 Proxy Authentication Required.
    public static let proxyAuthenticationRequired = Status(known: 407)
    /// 408 Request Timeout.
    public static let requestTimeout = Status(known: 408)
    /// 409 Conflict.
    public static let conflict = Status(known: 409)
    /// 410 Gone.
    public static let gone = Status(known: 410)
    /// 411 Length Required.
    public static let lengthRequired = Status(known: 411)
    /// 412 Precondition Failed.
    public static let preconditionFailed = Status(known: 412)
    /// 413 Content Too Large.
    public static let contentTooLarge = Status(known: 413)
    /// 414 URI Too Long.
    public static let uriTooLong = Status(known: 414)
    /// 415 Unsupported Media Type.
    public static let unsupportedMediaType = Status(known: 415)
    /// 416 Range Not Satisfiable.
    public static let rangeNotSatisfiable = Status(known: 416)
    /// 417 Expectation Failed.
    public static let expectationFailed = Status(known: 417)
    /// 421 Misdirected Request.
    public static let misdirectedRequest = Status(known: 421)
    /// 422 Unprocessable Content.
    public static let unprocessableContent = Status(known: 422)
    /// 425 Too Early.
    public static let tooEarly = Status(known: 425)
    /// 426 Upgrade Required.
    public static let upgradeRequired = Status(known: 426)
    /// 428 Precondition Required.
    public static let preconditionRequired = Status(known: 428)
    /// 429 Too Many Requests.
    public static let tooManyRequests = Status(known: 429)
    /// 431 Request Header Fields Too Large.
    public static let requestHeaderFieldsTooLarge = Status(known: 431)
    /// 451 Unavailable For Legal Reasons.
    public static let unavailableForLegalReasons = Status(known: 451)
    /// 500 Internal Server Error.
    public static let internalServerError = Status(known: 500)
    /// 501 Not Implemented.
    public static let notImplemented = Status(known: 501)
    /// 502 Bad Gateway.
    public static let badGateway = Status(known: 502)
    /// 503 Service Unavailable.
    public static let serviceUnavailable = Status(known: 503)
    /// 504 Gateway Timeout.
    public static let gatewayTimeout = Status(known: 504)
    /// 505 HTTP Version Not Supported.
    public static let httpVersionNotSupported = Status(known: 505)
    /// 511 Network Authentication Required.
    public static let networkAuthenticationRequired = Status(known: 511)

    /// The registered reason phrase; empty for other codes. Never compared with a peer's phrase.
    public var reasonPhrase: String {
        switch code {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 102: "Processing"
        case 103: "Early Hints"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 203: "Non-Authoritative Information"
        case 204: "No Content"
        case 205: "Reset Content"
        case 206: "Partial Content"
        case 207: "Multi-Status"
        case 300: "Multiple Choices"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 402: "Payment Required"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 425: "Too Early"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 451: "Unavailable For Legal Reasons"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        case 511: "Network Authentication Required"
        default: ""
        }
    }
}
