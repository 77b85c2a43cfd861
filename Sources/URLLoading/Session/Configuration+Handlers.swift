// The custom handlers and the observers of a session.

extension Configuration {
    private enum Handlers: PropertyKey { typealias Value = [any ProtocolHandler] }
    private enum Observers: PropertyKey { typealias Value = [any LoadObserver] }

    /// Custom handlers, which answer requests before the built-in ones; the last is asked first. See
    /// ``ProtocolHandler``. Empty by default.
    ///
    /// ```swift
    /// configuration.handlers = [StubHandler()]
    /// ```
    public var handlers: [any ProtocolHandler] {
        get { attachments[Handlers.self] ?? [] }
        set { attachments[Handlers.self] = newValue }
    }

    /// Observers, which are told of every load of the session, in this order. Empty by default.
    ///
    /// ```swift
    /// configuration.observers = [LoadLogger()]
    /// ```
    public var observers: [any LoadObserver] {
        get { attachments[Observers.self] ?? [] }
        set { attachments[Observers.self] = newValue }
    }
}
