// SPDX-License-Identifier: Apache-2.0

// Early data: a request that is sent with the first datagrams of a connection, before the server has proved anything or
// agreed to anything anew (RFC 9001 §4.6). An attacker can replay it (RFC 8446 §8).
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

extension PreparedRequest {
    /// Whether the request may be sent as early data (RFC 8470 §3): it was not sent before, has a safe method and no
    /// body, and carries nothing that its sender alone may know: a login, cookies, or another field or parameter whose
    /// value logs hide.
    var mayBeEarly: Bool {
        guard isFirst, request.method == .get || request.method == .head, body == nil, webSocket == nil, login == nil
        else { return false }
        let target = destination.target.originForm
        return target.withoutSecrets == target && !fields.headers.contains { $0.name.isSecret }
    }
}

#endif
