// Who decides about a server's certificate, and about ours. The session's decision goes first here: what it let through
// serves all its loads (checklist 66, 67, 69).

import Synchronization
import URLLoadingIO

struct HandshakeDecision: Sendable {
    let decision: Decision<Challenge, ChallengeDecision>
    /// 0 for the session's: its loads share connections. Others share them with whoever has the same.
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
