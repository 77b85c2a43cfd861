// SPDX-License-Identifier: Apache-2.0

// The custom handlers and the observers of a session.

extension Configuration {
    private enum Handlers: PropertyKey { typealias Value = [any ProtocolHandler] }
    private enum Observers: PropertyKey { typealias Value = [any LoadObserver] }

    /// Custom handlers, which are consulted before the built-in ones, the last first. See ``ProtocolHandler``. Empty by
    /// default.
    ///
    /// ```swift
    /// configuration.handlers = [StubHandler()]
    /// ```
    public var handlers: [any ProtocolHandler] {
        get { attachments[Handlers.self] ?? [] }
        set { attachments[Handlers.self] = newValue }
    }

    /// Observers, which are notified of the events of every load of the session, in this order. Empty by default.
    ///
    /// ```swift
    /// configuration.observers = [LoadLogger()]
    /// ```
    public var observers: [any LoadObserver] {
        get { attachments[Observers.self] ?? [] }
        set { attachments[Observers.self] = newValue }
    }
}
