// SPDX-License-Identifier: Apache-2.0

// A prepared request as signers see it, and what a signature changes in it.

import FoundationEssentials
import URLLoadingWire

extension PreparedRequest {
    /// What identifies the resource, as it will be sent.
    /// - Parameter isTunnel: true for a WebSocket over HTTP/2, whose method is CONNECT (RFC 8441 §4).
    func signedLine(isTunnel: Bool) -> SigningRequest.Line {
        let host = fields.headers[.host] ?? String(decoding: destination.target.hostField, as: UTF8.self)
        let text = request.url.absoluteString.prefix { $0 != "#" }
        return SigningRequest.Line(
            method: isTunnel ? .connect : request.method, url: URL(string: String(text)) ?? request.url,
            authority: host,
            target: String(decoding: destination.target.originForm, as: UTF8.self))
    }

    /// The fields that the server will receive, whatever the version of HTTP: without those of the connection, and with
    /// Content-Length if the length is known.
    var signedFields: Headers {
        let sent = fields.headers
        let named = sent.connectionOptions
        var headers = Headers()
        for field in sent where !Self.ofConnection.contains(field.name) && !named.contains(field.name) {
            headers.append(field.name, field.value)
        }
        if case .length(let length) = framing {
            headers.append(.contentLength, "\(length)")
        } else if body == nil, request.method.anticipatesContent {
            headers.append(.contentLength, "0")
        }
        return headers
    }

    /// Adds a signature.
    /// - Throws: ``LoadError/Reason/cannotSign`` for a field that a signature must not change, or that the request has
    ///   already.
    mutating func add(_ signature: RequestSignature) throws(LoadError) {
        var headers = fields.headers
        for field in signature.headers {
            let name = field.name
            guard !"\(name)".hasPrefix(":"), !Self.ofConnection.contains(name), !Self.ofMessage.contains(name) else {
                throw .cannotSign("a signature cannot set the field \(name), which frames or routes the message")
            }
            guard Self.shared.contains(name) || !self.fields.headers.contains(name) else {
                throw .cannotSign("the request has the field \(name) already")
            }
            headers.append(name, field.value)
        }
        if !signature.headers.isEmpty { fields = .own(headers) }
        if !signature.isEmpty {
            self.signature = signature.headers.contains(.authorization) ? .authorization : .other
        }
        guard !signature.queryItems.isEmpty else { return }
        guard login?.digestChallenge == nil else {
            throw .cannotSign("a signature in the query changes the target that Digest has covered")
        }
        do throws(WireViolation) {
            try setTarget(Target(QueryItems.append(signature.queryItems, to: request.url.absoluteString)))
        } catch {
            throw LoadError(error, .preparing)
        }
    }

    /// The fields of one connection, and those that make its messages (RFC 9110 §7.6.1, RFC 9112 §6).
    private static let ofConnection: Set<FieldName> = [
        .host, .contentLength, .transferEncoding, .connection, "Keep-Alive", .proxyConnection, .proxyAuthorization,
        .te, .trailer, .upgrade, "HTTP2-Settings", .secWebSocketKey,
    ]

    /// The fields that the load has acted upon before it is signed.
    private static let ofMessage: Set<FieldName> = [
        .acceptEncoding, .cookie, .expect, .range, "If-Range", .contentEncoding, .contentType,
    ]

    /// The fields that several signatures share (RFC 9421 §4.3).
    private static let shared: Set<FieldName> = [.signature, .signatureInput]
}
