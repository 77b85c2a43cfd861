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

extension LoadControl {
    /// Puts a question to the caller, and waits for the answer, its deadline, or the end of the load. The connect
    /// timeout stands still meanwhile.
    @inline(never)
    final func ask<Question: Sendable, Answer: Sendable>(
        _ decision: Decision<Question, Answer>, _ question: Question
    ) async throws(LoadError) -> Answer {
        let asker = self.asker
        let paused = pauseAttempt()
        defer { continueAttempt(paused) }
        let ending = await Interruption.run(self, within: decision.deadline) { () -> Result<Answer, any Error> in
            do {
                guard let asker else { return .success(try await decision.decide(question)) }
                return .success(try await asker.asking { try await decision.decide(question) })
            } catch { return .failure(error) }
        }
        switch ending {
        case .answered(.success(let answer)): return answer
        case .answered(.failure(let error)):
            throw LoadError(.decisionFailed, phase: .deciding, party: .local, underlying: error)
        case .late:
            if let fallback = decision.fallback { return fallback }
            throw LoadError(.decisionTimeout, phase: .deciding, party: .local)
        case .stopped: throw LoadError(stopReason ?? .cancelled, phase: .deciding)
        }
    }
}
