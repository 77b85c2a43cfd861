// What a challenge costs: apart from `HTTPHandler`, for a load that meets none does not pay for it.

import URLLoadingIO
import URLLoadingWire

extension HTTPHandler {
    /// For a session that knows somebody to whom it says who it is.
    @inline(never)
    static func talk(_ hop: Hop, for load: LoadContext, _ request: PreparedRequest) async throws(LoadError)
        -> AuthenticationTalk
    {
        let talk = AuthenticationTalk(hop, load, request.destination)
        try await talk.begin()
        return talk
    }

    /// Whether a request is to be sent again because of how it was answered.
    @inline(never)
    static func answers(
        _ exchange: any NetworkExchange, _ request: PreparedRequest, _ hop: Hop, for load: LoadContext,
        _ talk: inout AuthenticationTalk?
    ) async throws(LoadError) -> Bool {
        guard let head = exchange.head else { return false }
        let heard = talk ?? AuthenticationTalk(hop, load, request.destination)
        talk = heard
        do throws(LoadError) {
            guard try await heard.hear(exchange, head, request) else { return false }
        } catch {
            exchange.release()
            throw error
        }
        await exchange.drain()
        return true
    }

    /// Whether a tunnel that a proxy refused is to be asked for again.
    @inline(never)
    static func answers(
        _ refusal: ProxyRefusal, _ request: PreparedRequest, _ hop: Hop, for load: LoadContext,
        _ talk: inout AuthenticationTalk?
    ) async throws(LoadError) -> Bool {
        guard refusal.error.reason == .proxyAuthenticationRequired else { return false }
        let heard = talk ?? AuthenticationTalk(hop, load, request.destination)
        talk = heard
        return try await heard.hear(refusal)
    }
}

extension NetworkExchange {
    var isChallenge: Bool { head?.status == .unauthorized || head?.status == .proxyAuthenticationRequired }

    /// More of a refusal than this costs more to read than a new connection.
    private static var mostDrained: Int { 64 * 1024 }

    /// Reads a short body that nobody wants, so that its connection can be used again.
    func drain() async {
        guard !isSending, expectedLength ?? 0 <= Int64(Self.mostDrained) else { return }
        var count = 0
        while count <= Self.mostDrained {
            do throws(LoadError) {
                switch try buffered(atMost: .max) {
                case .chunk(let chunk)?: count += chunk.count
                case .end?: return
                case nil: try await fill(atMost: Self.mostDrained)
                }
            } catch { return }
        }
    }
}
