// The classic task on whose behalf decisions are called.

/// Calls the decisions of a load.
package protocol DecisionCaller: AnyObject, Sendable {
    /// Whether the decision about challenges may have something to say about servers.
    var judgesServers: Bool { get }
    /// Whether the decision about stored responses is asked.
    var decidesWhatIsKept: Bool { get }
    /// Calls a decision, which may want to know whose load it is about.
    func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer
}

extension DecisionCaller {
    package var judgesServers: Bool { true }
    package var decidesWhatIsKept: Bool { true }
    package func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer {
        try await decision()
    }
}
