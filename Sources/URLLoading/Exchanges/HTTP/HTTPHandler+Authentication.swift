// SPDX-License-Identifier: Apache-2.0

// Authentication of requests: apart from `HTTPHandler`, so that loads without challenges do not pay for it.

import URLLoadingWire

extension HTTPHandler {
    /// Creates the authentication of a request, in a session that has credentials or a challenge decision.
    @inline(never)
    static func authentication(_ hop: Hop, for load: LoadContext, _ request: PreparedRequest) async throws(LoadError)
        -> RequestAuthentication
    {
        let authentication = RequestAuthentication(hop, load, request.destination)
        try await authentication.begin()
        return authentication
    }

    /// Handles a challenge in a response. Returns whether the request is to be sent again.
    @inline(never)
    static func answers(
        _ exchange: any NetworkExchange, _ request: PreparedRequest, _ hop: Hop, for load: LoadContext,
        _ authentication: inout RequestAuthentication?
    ) async throws(LoadError) -> Bool {
        guard let head = exchange.head else { return false }
        let current = authentication ?? RequestAuthentication(hop, load, request.destination)
        authentication = current
        do throws(LoadError) {
            guard try await current.process(exchange, head, request) else { return false }
        } catch {
            exchange.release()
            throw error
        }
        await exchange.drain()
        return true
    }

    /// Handles a proxy's challenge to a CONNECT. Returns whether the tunnel is to be requested again.
    @inline(never)
    static func answers(
        _ refusal: ProxyRefusal, _ request: PreparedRequest, _ hop: Hop, for load: LoadContext,
        _ authentication: inout RequestAuthentication?
    ) async throws(LoadError) -> Bool {
        guard refusal.error.reason == .proxyAuthenticationRequired else { return false }
        let current = authentication ?? RequestAuthentication(hop, load, request.destination)
        authentication = current
        return try await current.process(refusal)
    }
}

extension NetworkExchange {
    var isChallenge: Bool { status == .unauthorized || status == .proxyAuthenticationRequired }

    /// The maximum size in bytes of a refusal's body that is read; beyond it, a new connection is cheaper.
    private static var maximumDrained: Int { 64 * 1024 }

    /// Reads and drops a short body, so that its connection can be reused.
    func drain() async {
        guard !isSending, !isLastOnConnection, expectedLength ?? 0 <= Int64(Self.maximumDrained) else { return }
        var count = 0
        while count <= Self.maximumDrained {
            do throws(LoadError) {
                switch try buffered(atMost: .max) {
                case .chunk(let chunk)?: count += chunk.count
                case .end?: return
                case nil: try await fill(atMost: Self.maximumDrained)
                }
            } catch { return }
        }
    }
}
