// SPDX-License-Identifier: Apache-2.0

// Passes a request through the handlers of a session.

import URLLoadingIO
import URLLoadingWire

extension HandlerChain {
    /// Answers a request with the first handler that can handle it.
    static func answer(_ hop: inout Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        let line = load.core.handlers.inOrder
        if let canonical = line.first(where: { $0.canHandle(hop.request) })?.canonical(hop.request) {
            load.events?.canonicalized(canonical)
            hop.request = canonical
        }
        load.events?.beginLocal(hop.request)
        let gathered = CollectedMarks()
        do throws(LoadError) {
            let exchange = try await answer(hop, for: load, from: line, after: -1, gathered)
            (exchange as? HandlerExchange)?.isOutermost = true
            load.events?.answeredLocally(exchange)
            guard exchange is HandlerExchange, load.core.cache != nil else { return exchange }
            return CacheFetch.storeHandlerResponse(exchange, hop, for: load, gathered)
        } catch {
            load.events?.failedLocally(error)
            throw error
        }
    }

    /// Answers a request with the first handler after `place` that can handle it.
    /// - Parameter gathered: collects the owners of the responses that handlers receive.
    static func answer(
        _ hop: Hop, for load: LoadContext, from line: [any ProtocolHandler], after place: Int,
        _ gathered: CollectedMarks
    ) async throws(LoadError) -> any Exchange {
        guard let next = line.indices.dropFirst(place + 1).first(where: { line[$0].canHandle(hop.request) }) else {
            throw LoadError(.unsupportedScheme, phase: .preparing, party: .local, url: hop.request.url)
        }
        if let direct = line[next] as? any DirectHandler { return try await direct.exchange(hop, for: load) }
        let client = ProtocolClient(
            load: load, scope: load.beginHandlerScope(), hop: hop, line: line, position: next, isOutermost: place < 0,
            gathered: gathered)
        return try await call(line[next], client)
    }

    /// Calls a custom handler in a task of its own.
    private static func call(
        _ handler: any ProtocolHandler, _ client: ProtocolClient
    ) async throws(LoadError) -> any Exchange {
        let (load, request) = (client.load, client.hop.request)
        let ending = await CallbackOutcome.run(load.handle) { () -> Result<ProtocolResponse, any Error> in
            do { return .success(try await handler.load(request, client: client)) } catch { return .failure(error) }
        }
        switch ending {
        case .answered(.success(let answer)):
            (answer.exchange as? HandlerExchange)?.taken(by: load)
            return answer.exchange
        case .answered(.failure(let error)):
            throw LoadError(load.stopReason, or: LoadError(handler: error, phase: .waiting)).at(request.url)
        case .stopped, .late:
            // A handler called by another handler runs inside the scope of the outermost one, which waits for it.
            if client.isOutermost { await client.scope.close() }
            throw LoadError(load.stopReason ?? .cancelled, phase: .waiting).at(request.url)
        }
    }
}
