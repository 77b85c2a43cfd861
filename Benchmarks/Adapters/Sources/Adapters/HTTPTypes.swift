// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTypes
import URLLoading

extension Headers {
    init(_ fields: HTTPFields) {
        self.init()
        for field in fields { append(FieldName(field.name.rawName), field.value) }
    }
}

extension HTTPFields {
    /// Fields whose names are no tokens (RFC 9110 §5.1) are left out: they cannot be sent.
    init(_ headers: Headers) {
        self.init()
        for field in headers {
            guard let name = HTTPField.Name(field.name.description) else { continue }
            append(HTTPField(name: name, value: field.value))
        }
    }
}

extension Request {
    /// - Parameters:
    ///   - request: `nil` is returned if its pseudo-header fields are not those of a URL, and for a path without its
    ///     slash, such as `@other.example/`, which would lead to another server.
    ///   - body: swift-http-types has no bodies.
    init?(_ request: HTTPRequest, body: RequestBody? = nil) {
        guard let scheme = request.scheme, let authority = request.authority, let path = request.path,
            path.hasPrefix("/"), !authority.contains(where: { "/?#@".contains($0) }),
            let url = URL(string: "\(scheme)://\(authority)\(path)")
        else { return nil }
        self.init(url: url, method: Method(request.method.rawValue), headers: Headers(request.headerFields), body: body)
    }
}

extension HTTPRequest {
    /// - Parameter request: `nil` is returned for a method that is no token, and a URL without a host. Its userinfo and
    ///   its fragment are left out, as they are not sent.
    init?(_ request: Request) {
        guard let method = Method(request.method.rawValue), let scheme = request.url.scheme,
            let parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true), let host = parts.encodedHost,
            !host.isEmpty
        else { return nil }
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        self.init(
            method: method, scheme: scheme, authority: host + (parts.port.map { ":\($0)" } ?? ""),
            path: path + (parts.percentEncodedQuery.map { "?\($0)" } ?? ""), headerFields: HTTPFields(request.headers))
    }
}

extension HTTPResponse {
    init(_ head: HTTPHead) {
        self.init(status: Status(code: head.status.code), headerFields: HTTPFields(head.headers))
    }
}

extension HTTPHead {
    /// - Parameter response: `nil` is returned for a status below 100.
    init?(_ response: HTTPResponse) {
        guard let status = Status(response.status.code) else { return nil }
        self.init(status: status, headers: Headers(response.headerFields))
    }
}
