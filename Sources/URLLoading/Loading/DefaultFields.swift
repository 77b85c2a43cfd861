// The fields that a session adds to its requests.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The fields of a request that is ready to be sent.
enum RequestFields: Sendable {
    /// The session's defaults and nothing else: the common case, written out once.
    case defaults(HTTP1PreparedFields)
    /// The caller's fields, and the defaults that the caller did not set.
    case own(Headers)
}

/// The fields that every request gets unless it sets them itself.
final class DefaultFields: Sendable {
    private let own: Set
    /// For origins that a redirect led to: session-wide credentials are not theirs either.
    private let foreign: Set
    private let offersCoding: Bool
    /// Of the session, for its proxy.
    let proxyAuthorization: String?
    /// What stored responses are told apart by: a Host of the session's, and its Cookie as a digest.
    let host: String?
    let ownCookie: String?

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
    ///   - cookieDigest: makes the digest of their Cookie field; nil without one.
    init(
        _ headers: Headers, acceptEncoding: String?, userAgent: String?, cookieDigest: (Headers) -> String?
    ) {
        var fields = headers
        proxyAuthorization = fields.takeProxyFields()
        (host, ownCookie) = (fields[.host], cookieDigest(fields))
        func add(_ name: FieldName, _ value: String?) {
            if let value, !fields.contains(name) { fields.append(name, value) }
        }
        offersCoding = acceptEncoding != nil && !fields.contains(.acceptEncoding)
        add(.accept, "*/*")
        add(.acceptEncoding, acceptEncoding)
        add(.userAgent, userAgent)
        own = Set(fields)
        // Nor is another origin told where the caller came from.
        for name in FieldName.personal + [.referer] { fields.remove(name) }
        foreign = Set(fields)
    }

    /// Whether the content coding of a whole response to a request is undone.
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
    /// What proves to one server who we are, and its name: never for another.
    static let personal: [FieldName] = [.authorization, .cookie, .proxyAuthorization, .host]
}

extension Headers {
    /// Takes out what is meant for a proxy and for nobody behind it, and returns the credentials among it.
    mutating func takeProxyFields() -> String? {
        guard !isEmpty else { return nil }
        let credentials = self[.proxyAuthorization]
        if credentials != nil { remove(.proxyAuthorization) }
        if contains(.proxyConnection) { remove(.proxyConnection) }
        return credentials
    }

    /// Whether the coding of the answer is no longer ours to choose. A range of a coded
    /// representation could not be decoded (RFC 9110 §14.2).
    var choosesCoding: Bool { contains(.acceptEncoding) || contains(.range) }
}
