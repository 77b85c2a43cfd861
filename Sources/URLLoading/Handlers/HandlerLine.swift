// Custom and built-in handlers: which of them answers a request, in which order they are asked.

import Synchronization
import URLLoadingIO

/// Handlers that every session of the process asks, after its own and before the built-in ones.
///
/// ```swift
/// let registration = ProtocolHandlers.register(Greeting())
/// …
/// registration.cancel()
/// ```
/// Meant for tests and for programs with one purpose: who writes a library gives its sessions
/// ``Configuration/handlers`` of their own.
public enum ProtocolHandlers {
    /// Registers a handler, to be asked before those registered until now.
    @discardableResult
    public static func register(_ handler: any ProtocolHandler) -> Registration {
        let registration = Registration()
        state.withLock { state in
            state.entries.append((registration, handler))
            count.store(state.entries.count, ordering: .releasing)
        }
        return registration
    }

    /// A handler's place among those of the process, until it is cancelled.
    public final class Registration: Sendable {
        /// Requests from now on are no longer offered to the handler; those it has, it goes on with.
        public func cancel() {
            state.withLock { state in
                state.entries.removeAll { $0.0 === self }
                count.store(state.entries.count, ordering: .releasing)
            }
        }
    }

    private struct State: Sendable {
        var entries: [(Registration, any ProtocolHandler)] = []
    }
    private static let state = Lock(State())
    private static let count = Atomic<Int>(0)

    static var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

    /// In the order of asking.
    static var registered: [any ProtocolHandler] { state.withLock { $0.entries.reversed().map(\.1) } }
}

/// The handlers of one session.
struct HandlerLine: Sendable {
    private let own: [any ProtocolHandler]
    private static let builtIn: [any ProtocolHandler] = [FileHandler(), DataHandler(), FTPHandler(), HTTPHandler()]

    init(_ configuration: Configuration) { own = configuration.handlers.reversed() }

    /// Whether http and https need not ask anybody.
    var isPlain: Bool { own.isEmpty && ProtocolHandlers.isEmpty }

    /// In the order of asking. The last takes what nobody else does, if only to refuse it.
    var inOrder: [any ProtocolHandler] { own + ProtocolHandlers.registered + Self.builtIn }
}

// MARK: Answering

extension HandlerLine {
    /// Answers a request with the first handler that can handle it.
    static func answer(_ hop: inout Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        let line = load.core.handlers.inOrder
        if let canonical = line.first(where: { $0.canHandle(hop.request) })?.canonical(hop.request) {
            load.emit(.canonicalized(canonical))
            hop.request = canonical
        }
        load.events?.beginLocal(hop.request)
        let gathered = GatheredMarks()
        do throws(LoadError) {
            let exchange = try await answer(hop, for: load, from: line, after: -1, gathered)
            (exchange as? HandlerExchange)?.isOutermost = true
            load.events?.answeredLocally(exchange)
            guard exchange is HandlerExchange, load.core.cache != nil else { return exchange }
            return CacheLine.keepHandled(exchange, hop, for: load, gathered)
        } catch {
            load.events?.failedLocally(error)
            throw error
        }
    }

    /// Answers a request with the first handler behind a place in the line that can handle it.
    /// - Parameter gathered: collects the owners of the answers that handlers are given.
    static func answer(
        _ hop: Hop, for load: LoadContext, from line: [any ProtocolHandler], after place: Int,
        _ gathered: GatheredMarks
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
        let ending = await Interruption.run(load.handle) { () -> Result<ProtocolResponse, any Error> in
            do { return .success(try await handler.load(request, client: client)) } catch { return .failure(error) }
        }
        switch ending {
        case .answered(.success(let answer)):
            (answer.exchange as? HandlerExchange)?.taken(by: load)
            return answer.exchange
        case .answered(.failure(let error)):
            throw LoadError(load.stopReason, or: LoadError(handler: error, phase: .waiting)).at(request.url)
        case .stopped, .late:
            // A handler behind another one runs inside that one's scope, which waits for it.
            if client.isOutermost { await client.scope.close() }
            throw LoadError(load.stopReason ?? .cancelled, phase: .waiting).at(request.url)
        }
    }
}
