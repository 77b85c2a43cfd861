// SPDX-License-Identifier: Apache-2.0

// The custom and built-in handlers of a session, and the order in which they are consulted.

import Synchronization
import URLLoadingIO

/// Handlers for every session of the process, consulted after the session's own and before the built-in ones.
///
/// ```swift
/// let registration = ProtocolHandlers.register(Greeting())
/// …
/// registration.cancel()
/// ```
/// Meant for tests and for applications. A library should set ``Configuration/handlers`` of its own sessions instead.
public enum ProtocolHandlers {
    /// Registers a handler, which is consulted before those registered earlier.
    @discardableResult
    public static func register(_ handler: any ProtocolHandler) -> Registration {
        let registration = Registration()
        state.withLock { state in
            state.entries.append((registration, handler))
            count.store(state.entries.count, ordering: .releasing)
        }
        return registration
    }

    /// The registration of a handler for the process, until it is cancelled.
    public final class Registration: Sendable {
        /// Removes the handler: later requests are not offered to it; those in progress continue.
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

    /// The registered handlers in the order of consultation.
    static var registered: [any ProtocolHandler] { state.withLock { $0.entries.reversed().map(\.1) } }
}

/// The handlers of one session.
struct HandlerChain: Sendable {
    private let own: [any ProtocolHandler]
    private let builtIn: [any ProtocolHandler]

    /// - Parameters:
    ///   - own: the handlers of a configuration: the last is consulted first.
    ///   - builtIn: the built-in handlers in the order of consultation.
    init(own: [any ProtocolHandler], builtIn: [any ProtocolHandler]) {
        self.own = own.reversed()
        self.builtIn = builtIn
    }

    /// True if there are no custom handlers, so that http and https need not consult any.
    var isPlain: Bool { own.isEmpty && ProtocolHandlers.isEmpty }

    /// All handlers in the order of consultation. The last one accepts every request, if only to fail it.
    var inOrder: [any ProtocolHandler] { own + ProtocolHandlers.registered + builtIn }
}
