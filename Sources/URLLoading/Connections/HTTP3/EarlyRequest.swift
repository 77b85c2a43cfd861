// SPDX-License-Identifier: Apache-2.0

// Early data: a request that is sent with the first datagrams of a connection, before the server has proved anything or
// agreed to anything anew (RFC 9001 §4.6). An attacker can replay it (RFC 8446 §8), so `EarlyDataPlan` decides, as a
// value, which requests may be sent so.
//
//     load      holds the `EarlyRequest` while it waits for a connection
//     opening   hands it to its only attempt so far, whose TLS says whether the server is remembered
//     state     sends it, gathers its response, and gives both to the stream of the load once the connection is open
//
// The connection is given to loads only when its handshake is over, as any other. So a server that takes no early data
// costs nothing: the load finds no stream of its own, and begins one.

#if HTTP3

import URLLoadingWire

/// A request that may be sent as early data. A connection that has sent it gives its stream up when this is released:
/// the load is over, or has another connection.
final class EarlyRequest: Sendable {
    let message: HTTP2Request

    init(_ message: HTTP2Request) { self.message = message }
}

/// What decides whether a request may be sent as early data (RFC 8470 §3).
struct EarlyDataPlan: Equatable {
    /// Whether the request was not sent before.
    var isFirst = true
    var method = Method.get
    var hasBody = false
    var opensWebSocket = false
    /// Whether a login, a proxy's credentials, a field or a parameter of the query shows what its sender may do.
    var hasCredential = false
    /// Whether the caller has a decision about signatures, or about the server's trust.
    var asksCaller = false

    /// Why a request is not sent as early data.
    enum Obstacle: Equatable, CaseIterable {
        case repeated, method, body, webSocket, credential, decision
    }

    /// The first obstacle; `nil` if the request may be sent.
    var obstacle: Obstacle? {
        if !isFirst { return .repeated }
        if method != .get, method != .head { return .method }
        if hasBody { return .body }
        if opensWebSocket { return .webSocket }
        if hasCredential { return .credential }
        return asksCaller ? .decision : nil
    }
}

extension EarlyDataPlan {
    init(_ request: PreparedRequest, asksCaller: Bool) {
        (isFirst, method) = (request.isFirst, request.request.method)
        (hasBody, opensWebSocket) = (request.body != nil, request.webSocket != nil)
        (hasCredential, self.asksCaller) = (request.hasCredential, asksCaller)
    }
}

extension PreparedRequest {
    /// Whether the request carries what its sender alone may know: a login of any kind, cookies, or a field or
    /// parameter of which logs hide the value.
    fileprivate var hasCredential: Bool {
        let query = destination.target.originForm
        return login != nil || identity != nil || authenticationHandshake != nil || proxyCredentials != nil
            || proxyAuthorization != nil || fields.headers.contains { $0.name.isSecret }
            || query.withoutSecrets != query
    }
}

#endif
