// SPDX-License-Identifier: Apache-2.0

// Passes a request through the handlers of a session.

import URLLoadingIO

extension HandlerChain {
    /// Answers a request with the first handler that can handle it.
    static func answer(_ hop: inout Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        let line = load.core.handlers.inOrder
        if let first = try await position(of: hop.request, in: line, after: -1, load),
            let canonical = try await ask(line[first], load, { [hop] in $0.canonical(hop.request) })
        {
            load.events?.canonicalized(canonical)
            hop.request = canonical
        }
        // The record of a local answer has one owner, and the parts of a file are requested at once.
        let events = hop.purpose.isPart ? nil : load.events
        events?.beginLocal(hop.request)
        let gathered = CollectedMarks()
        do throws(LoadError) {
            let exchange = try await answer(hop, for: load, from: line, after: -1, gathered)
            (exchange as? HandlerExchange)?.isOutermost = true
            events?.answeredLocally(exchange)
            guard exchange is HandlerExchange, load.core.cache != nil else { return exchange }
            return CacheFetch.storeHandlerResponse(exchange, hop, for: load, gathered)
        } catch {
            events?.failedLocally(error)
            throw error
        }
    }

    /// Answers a request with the first handler after `place` that can handle it.
    /// - Parameter gathered: collects the owners of the responses that handlers receive.
    static func answer(
        _ hop: Hop, for load: LoadContext, from line: [any ProtocolHandler], after place: Int,
        _ gathered: CollectedMarks
    ) async throws(LoadError) -> any Exchange {
        guard let next = try await position(of: hop.request, in: line, after: place, load) else {
            throw LoadError(.unsupportedScheme, phase: .preparing, party: .local, url: hop.request.url)
        }
        if let direct = line[next] as? any DirectHandler { return try await direct.exchange(hop, for: load) }
        let client = ProtocolClient(
            load: load, scope: load.beginHandlerScope(), hop: hop, line: line, position: next, isOutermost: place < 0,
            gathered: gathered)
        return try await call(line[next], client)
    }

    /// Returns the position of the first handler after `place` that can handle the request.
    private static func position(
        of request: Request, in line: [any ProtocolHandler], after place: Int, _ load: LoadContext
    ) async throws(LoadError) -> Int? {
        for position in line.indices.dropFirst(place + 1)
        where try await ask(line[position], load, { $0.canHandle(request) }) { return position }
        return nil
    }

    /// Asks a handler a question of which the answer is computed at once, except by the program's own objects.
    private static func ask<Answer: Sendable>(
        _ handler: any ProtocolHandler, _ load: LoadContext,
        _ question: @escaping @Sendable (any ProtocolHandler) -> Answer
    ) async throws(LoadError) -> Answer {
        guard handler is any ProgramHandler else { return question(handler) }
        guard let answer = await BlockingThreads.programs.call(load.handle, { question(handler) }) else {
            throw LoadError(load.stopReason ?? .cancelled, phase: .preparing).at(load.original.url)
        }
        return answer
    }

    /// Calls a custom handler in a task of its own.
    private static func call(
        _ handler: any ProtocolHandler, _ client: ProtocolClient
    ) async throws(LoadError) -> any Exchange {
        let (load, request) = (client.load, client.hop.request)
        let onLoop = handler is any ProgramHandler
        let ending = await CallbackOutcome.run(load.handle, onLoop: onLoop) {
            () -> Result<ProtocolResponse, any Error> in
            let call = HandlerDepth.Call()
            defer { call.end() }
            let calls = client.isOutermost ? HandlerDepth.adding(call) : HandlerDepth.calls
            guard calls.count <= HandlerDepth.maximum else { return .failure(HandlerDepth.exceeded) }
            return await HandlerDepth.$calls.withValue(calls) {
                do { return .success(try await handler.load(request, client: client)) } catch { return .failure(error) }
            }
        }
        switch ending {
        case .answered(.success(let answer)):
            (answer.exchange as? HandlerExchange)?.taken(by: load, onLoop: onLoop)
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
