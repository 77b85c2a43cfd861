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
    private let builtIn: [any ProtocolHandler]

    /// - Parameters:
    ///   - own: the handlers of a configuration: the last is asked first.
    ///   - builtIn: in the order of asking.
    init(own: [any ProtocolHandler], builtIn: [any ProtocolHandler]) {
        self.own = own.reversed()
        self.builtIn = builtIn
    }

    /// Whether http and https need not ask anybody.
    var isPlain: Bool { own.isEmpty && ProtocolHandlers.isEmpty }

    /// In the order of asking. The last takes what nobody else does, if only to refuse it.
    var inOrder: [any ProtocolHandler] { own + ProtocolHandlers.registered + builtIn }
}
