// SPDX-License-Identifier: Apache-2.0

// The decision about a server's certificate and the client certificate. The session's decision precedes the load's,
// because all loads of the session share the connections that it has approved.

import Synchronization

struct HandshakeDecision: Sendable {
    let decision: Decision<Challenge, ChallengeDecision>
    /// 0 for the session's decision, whose loads share connections; otherwise the identity of the load's own decision,
    /// whose connections are shared with loads of the same decision only.
    let group: Int

    init?(session: Decisions?, load: Decisions?) {
        if let decision = session?.challenge {
            (self.decision, group) = (decision, 0)
        } else if let decision = load?.challenge {
            (self.decision, group) = (decision, decision.identity)
        } else {
            return nil
        }
    }
}

enum DecisionIdentity {
    private static let last = Atomic<Int>(0)
    static func next() -> Int { last.add(1, ordering: .relaxed).newValue }
}
