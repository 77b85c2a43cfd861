// What hears of a load while it runs: the classic shape.

/// Where the classic shape hears of a load. One load calls it from one task at a time.
package protocol LoadSink: AnyObject, Sendable {
    /// Whoever answers its challenges may have something to say about servers.
    var judgesServers: Bool { get }
    /// In order; must not wait.
    func emit(_ event: LoadEvent)
    /// The load reads on when this returns.
    func receive(_ chunk: Chunk) async
    /// The load begins to wait for the body to go on: what has come so far should be heard now.
    func pause()
    /// The load was stopped: a wait in `receive` must end.
    func stopped()
    /// Somebody decides what is kept of the response.
    var decidesWhatIsKept: Bool { get }
    /// Calls a decision, which may want to know whose load it is about.
    func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer
}

extension LoadSink {
    package var judgesServers: Bool { true }
    package var decidesWhatIsKept: Bool { true }
    package func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer {
        try await decision()
    }
}
