// SPDX-License-Identifier: Apache-2.0

// Server trust decided by a task's own delegate, in a session without a delegate: other tasks may not use such
// connections. Loads with the same decision share connections, so each such delegate has a decision of
// its own.

import Synchronization
import URLLoading
import URLLoadingIO

enum TaskTrustDecisions {
    private struct Entry: Sendable {
        weak var delegate: (any URLSessionTaskDelegate)?
        let decision: Decision<Challenge, ChallengeDecision>
    }
    private struct State: Sendable {
        var entries: [ObjectIdentifier: Entry] = [:]
        /// The number of entries at which entries of deallocated delegates are removed.
        var limit = 64
    }
    private static let state = Lock(State())

    static func decision(of delegate: any URLSessionTaskDelegate) -> Decision<Challenge, ChallengeDecision> {
        let key = ObjectIdentifier(delegate)
        return state.withLock { state in
            // A deallocated delegate may have had the same address.
            if let entry = state.entries[key], entry.delegate === delegate { return entry.decision }
            if state.entries.count >= state.limit {
                state.entries = state.entries.filter { $0.value.delegate != nil }
                state.limit = max(64, 2 * state.entries.count)
            }
            let decision = Decision<Challenge, ChallengeDecision>.onLoop { challenge in
                try await TaskBridge.current?.decide(challenge) ?? .performDefaultHandling
            }
            state.entries[key] = Entry(delegate: delegate, decision: decision)
            return decision
        }
    }
}

extension TaskBridge {
    /// The task's delegate that alone decides about servers; `nil` if the session's delegate does, or none.
    private var trustDelegate: (any URLSessionTaskDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        guard session?.delegates.session == nil, let own = task?.ownDelegate ?? URLSession.awaitedDelegate else {
            return nil
        }
        return AsyncForm.isKnownMissing(own, .challenge) ? nil : own
    }

    /// Returns the challenge decision of the task; loads with the same decision share connections.
    func challengeDecision() -> Decision<Challenge, ChallengeDecision>? {
        let trustDelegate = trustDelegate
        state.withLock { $0.trustDelegate = trustDelegate.map { ObjectIdentifier($0) } }
        if let trustDelegate { return TaskTrustDecisions.decision(of: trustDelegate) }
        // Without a delegate there is no decision, so no load waits for one.
        return sessionDelegate == nil && taskDelegate == nil ? nil : URLSession.decisions.challenge
    }

    /// Whether a delegate is asked about server trust. Delegates known not to implement the method are not.
    var decidesServerTrust: Bool {
        if let session = sessionDelegate, !AsyncForm.isKnownMissing(session, .connectionChallenge) { return true }
        guard let task = taskDelegate else { return false }
        return !AsyncForm.isKnownMissing(task, .challenge)
    }

    /// Whether the task's delegate was changed after its load was created and before the load begins.
    var hasChangedTrustDelegate: Bool {
        let trustDelegate = trustDelegate.map { ObjectIdentifier($0) }
        return state.withLock { $0.load != nil && !$0.isCanceled && $0.trustDelegate != trustDelegate }
    }
}
