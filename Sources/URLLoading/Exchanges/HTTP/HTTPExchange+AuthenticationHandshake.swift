// SPDX-License-Identifier: Apache-2.0

// Authentication of a connection before the request is sent: NTLM (MS-NTHT), and Negotiate if it needs several messages
// (RFC 4559 §5). All messages use the connection that this exchange leases, so that no other request comes between
// them.

import URLLoadingWire

extension HTTPExchange {
    /// The maximum size in bytes of a refusal's body that is read. The scheme requires this connection, so a new one is
    /// no alternative.
    private static var maximumDrained: Int { 4 << 20 }

    /// Authenticates the connection and sends the request.
    func open(_ request: PreparedRequest) async throws(LoadError) {
        let limit = owner.core.configuration.authentication.kerberosTimeout
        // A connection is authenticated either to the origin or to the proxy that forwards its requests, never to both.
        // A connection without an identity in its route stays anonymous at the origin.
        let own = connection.route.identity == nil ? nil : request.authenticationHandshake
        guard
            let authenticationHandshake = own
                ?? connection.forwarder?.login.flatMap({ AuthenticationHandshake($0, timeout: limit) })
        else {
            return try await send(request)
        }
        let binding = binding(toProxy: authenticationHandshake.isProxy)
        if authenticationHandshake.login.isMultiRound {
            try await open(with: authenticationHandshake, binding, request)
        } else {
            try await sendOne(authenticationHandshake, binding, request)
        }
    }

    /// Sends a single token with the request itself. A proxy remembers the identity of an authenticated connection, so
    /// the token is sent once; an origin gets one with every request.
    private func sendOne(
        _ authenticationHandshake: AuthenticationHandshake, _ binding: [UInt8]?, _ request: PreparedRequest
    ) async throws(LoadError) {
        var request = request
        if !authenticationHandshake.isProxy || connection.state.use != .authenticated {
            request.setAuthorization(
                try await authenticationHandshake.first(binding, owner.handle)?.value,
                toProxy: authenticationHandshake.isProxy)
        }
        let wasOpened = connection.state.use == .authenticated
        try await send(request)
        guard authenticationHandshake.isProxy, let head else { return }
        guard head.status == authenticationHandshake.refusal else {
            connection.state.authenticated()
            _ = try await authenticationHandshake.process(head, owner.handle)
            return
        }
        if wasOpened { return forgetProof() }
        connection.state.endUse()
        hasLostAuthentication = try await authenticationHandshake.process(head, owner.handle)
    }

    private func open(
        with authenticationHandshake: AuthenticationHandshake, _ binding: [UInt8]?, _ request: PreparedRequest
    ) async throws(LoadError) {
        guard connection.state.use != .authenticated else {
            authenticationHandshake.noteSent()
            try await send(request)
            if head?.status == authenticationHandshake.refusal { forgetProof() }
            return
        }
        guard var message = try await authenticationHandshake.first(binding, owner.handle) else {
            return try await send(request)
        }
        while !message.isLast {
            guard
                let answer = try await send(
                    request.handshakeRequest(authorization: message.value, toProxy: authenticationHandshake.isProxy),
                    authenticationHandshake,
                    request)
            else { return }
            guard let token = answer.token else {
                // The server requires no authentication. Its response is the result, unless the request has a body that
                // is still to be sent.
                return try await send(request)
            }
            message = try await authenticationHandshake.next(token, binding, owner.handle)
        }
        var request = request
        request.setAuthorization(message.value, toProxy: authenticationHandshake.isProxy)
        try await send(request)
        guard let head else { return }
        // A refused login is not followed by another one on this connection.
        if head.status == authenticationHandshake.refusal {
            connection.state.endUse()
        } else if !head.isRefusal {
            connection.state.authenticated()
        }
        if authenticationHandshake.isProxy { _ = try await authenticationHandshake.process(head, owner.handle) }
    }

    private func forgetProof() {
        hasLostAuthentication = true
        connection.state.endUse()
    }

    private struct Answer {
        /// The server's reply to the last message; `nil` if it does not ask for another.
        var token: [UInt8]?
    }

    /// Sends one message without a body and returns the server's reply; `nil` if its response is the result.
    private func send(
        _ message: PreparedRequest, _ authenticationHandshake: AuthenticationHandshake, _ request: PreparedRequest
    ) async throws(LoadError)
        -> Answer?
    {
        let record = record
        (self.record, connection.record) = (nil, nil)
        defer { (self.record, connection.record) = (record, record) }
        if try !connection.begin(message, owner) { try await connection.send(owner) }
        var found: HTTP1ResponseHead?
        while found == nil {
            found = try connection.bufferedResponse(owner, acceptsUpgrade: false)
            if found == nil { try await connection.fill(owner) }
        }
        guard let head = found else { return nil }
        let token =
            head.status == authenticationHandshake.refusal ? authenticationHandshake.token(in: head.headers) : nil
        let isOver = HTTPHead(head).isRefusal || request.body == nil
        guard token != nil || !isOver else {
            try receive(head, request)
            return nil
        }
        try await drain()
        // The connection of a response with faults carries nothing after it.
        if let violation = head.violations.all.first { throw LoadError(violation, .waiting) }
        guard connection.isReusable else {
            throw .handshakeFailed("the server closed the connection during the authentication handshake")
        }
        return Answer(token: token)
    }

    private func drain() async throws(LoadError) {
        var count = 0
        while count <= Self.maximumDrained {
            switch try connection.bufferedData() {
            case .chunk(let chunk)?: count += chunk.count
            case .end?: return
            case nil: try await connection.fill(owner)
            }
        }
        throw .handshakeFailed("the body of the 401 or 407 is too large to be read")
    }
}

extension HTTPHead {
    fileprivate var isRefusal: Bool { status == .unauthorized || status == .proxyAuthenticationRequired }
}
