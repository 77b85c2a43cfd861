// SPDX-License-Identifier: Apache-2.0

// The classic task for which decisions are called.

/// Calls the decisions of a load.
package protocol DecisionCaller: AnyObject, Sendable {
    /// True if the challenge decision may decide about server certificates.
    var decidesServerTrust: Bool { get }
    /// True if the decision about stored responses is called.
    var decidesStoring: Bool { get }
    /// Calls a decision with the classic task as its context.
    func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer
}

extension DecisionCaller {
    package var decidesServerTrust: Bool { true }
    package var decidesStoring: Bool { true }
    package func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer {
        try await decision()
    }
}
